#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "domain/policy/config_documents.h"

namespace dhc {

namespace {

constexpr std::int64_t kMostCount = 1000;
/// So many entries fit in the annotation that records them.
constexpr std::int64_t kMostCredits = 100;

void read_rejecting_node(const YamlNode& node, JobRetryRules& rules, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 3> kKeys = {"rejections", "within", "node"};
  if (!check_map(node, "spec.jobRetry.blackHole", kKeys, mistakes)) return;
  if (const YamlNode* given = node.find("rejections")) {
    set(rules.rejections, read_number(*given, "spec.jobRetry.blackHole.rejections", 1, kMostCount, mistakes));
  }
  if (const YamlNode* given = node.find("within")) {
    set(rules.rejections_within, read_duration(*given, "spec.jobRetry.blackHole.within", Seconds(1), mistakes));
  }
  if (const YamlNode* given = node.find("node")) {
    set(rules.taints_rejecting_node, read_node_taint(*given, "spec.jobRetry.blackHole.node", mistakes));
  }
}

/// Without credit the keys that shape it would look as if they did something.
void check_credit(const YamlNode& node, const JobRetryRules& rules, MistakeList& mistakes) {
  if (rules.credit) return;
  std::vector<std::string_view> idle;
  for (const std::string_view key : {"maxPerJob", "settle"}) {
    if (node.find(key) != nullptr) idle.push_back(key);
  }
  if (rules.take_back) idle.emplace_back("takeBack");
  if (rules.recreate_once) idle.emplace_back("recreate");
  if (idle.empty()) return;
  mistakes.add(
      node.find("credit")->place,
      fmt::format("spec.jobRetry.credit is false, so {} would have no effect", fmt::join(idle, ", ")),
      idle.size() == 1 ? "write credit: true, or remove that key" : "write credit: true, or remove those keys");
}

}  // namespace

JobRetryRules read_job_retry(const YamlNode& node, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 7> kKeys = {"credit",   "maxPerJob", "settle",   "whenNotCreditable",
                                                            "takeBack", "recreate",  "blackHole"};
  static constexpr std::array<std::string_view, 3> kWhenNot = {"Evict", "HoldIfFatal", "Hold"};
  static constexpr std::array<std::string_view, 2> kRecreate = {"Never", "Once"};
  JobRetryRules rules;
  if (!check_map(node, "spec.jobRetry", kKeys, mistakes)) return rules;
  if (const YamlNode* given = node.find("credit")) {
    set(rules.credit, read_flag(*given, "spec.jobRetry.credit", mistakes));
  }
  if (const YamlNode* given = node.find("maxPerJob")) {
    set(rules.max_per_job, read_number(*given, "spec.jobRetry.maxPerJob", 1, kMostCredits, mistakes));
  }
  if (const YamlNode* given = node.find("settle")) {
    set(rules.settle, read_duration(*given, "spec.jobRetry.settle", Seconds(1), mistakes));
  }
  if (const YamlNode* given = node.find("whenNotCreditable")) {
    // In the order of NotCreditable.
    rules.not_creditable = static_cast<JobRetryRules::NotCreditable>(
        read_word(*given, "spec.jobRetry.whenNotCreditable", kWhenNot, mistakes).value_or(1));
  }
  if (const YamlNode* given = node.find("takeBack")) {
    set(rules.take_back, read_flag(*given, "spec.jobRetry.takeBack", mistakes));
  }
  if (const YamlNode* given = node.find("recreate")) {
    rules.recreate_once = read_word(*given, "spec.jobRetry.recreate", kRecreate, mistakes).value_or(0) == 1;
  }
  if (const YamlNode* given = node.find("blackHole")) read_rejecting_node(*given, rules, mistakes);
  check_credit(node, rules, mistakes);
  return rules;
}

}  // namespace dhc
