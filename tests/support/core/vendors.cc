#include "tests/support/core/vendors.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "domain/policy/config_text.h"
#include "tests/support/core/fixtures.h"
#include "tests/support/core/stage.h"

namespace dhc::test {

namespace {

k8s::Health health_of(const std::string& word) {
  if (word == "Unhealthy") return k8s::Health::Unhealthy;
  if (word == "Healthy") return k8s::Health::Healthy;
  REQUIRE(word == "Unknown");
  return k8s::Health::Unknown;
}

std::string text_of(const VendorWord& word) { return fmt::format("{} '{}'", to_string(word.health), word.message); }

Vendor read_vendor(const std::string& file) {
  const auto file_json = nlohmann::json::parse(read_fixture("vendors/" + file));
  Vendor vendor;
  vendor.file = file;
  vendor.resources = file_json.at("resources").get<std::vector<std::string>>();
  vendor.drivers = file_json.at("drivers").get<std::vector<std::string>>();
  for (const auto& word : file_json.at("words")) {
    vendor.words.push_back({.health = health_of(word.at("health")), .message = word.at("message")});
  }
  for (const auto& taint : file_json.value("taints", nlohmann::json::array())) {
    vendor.taints.push_back(
        {.taint = {taint.at("key"), taint.at("value"), taint.at("effect")}, .is_fault = taint.at("means") == "fault"});
  }
  for (const auto& source : file_json.at("sources")) {
    vendor.sources += source.at("files").size();
    CHECK(source.at("repository").get<std::string>().contains('/'));
    CHECK(source.at("commit").get<std::string>().size() >= 7);
  }
  vendor.not_read = file_json.contains("not_read");
  return vendor;
}

bool is_taken_up(const Stage& stage, const std::string& policy) {
  return std::ranges::any_of(stage.verdicts(), [&](const Verdict& verdict) {
    return verdict.subject.name == "train" && verdict.policy == policy && verdict.reason != Reason::NoPolicy;
  });
}

/// The policy alone, for every pod, at once.
Stage stage_with(DevicePolicy policy) {
  policy.match.namespaces = policy.match.pods = policy.match.nodes = {};
  policy.after = Millis(0);
  Stage stage;
  stage.whole_policy().policies = {std::move(policy)};
  stage.send_policy();
  stage.node("node-a", 2);
  return stage;
}

/// Whether the policy alone, given to a controller, takes up a device that this driver has so tainted, and of which the
/// kubelet says nothing.
bool takes_up_taint(const DevicePolicy& policy, const std::string& driver, const k8s::Taint& taint) {
  auto stage = stage_with(policy);
  auto& claim = stage.claim("train-gpu", {"gpu-0"}, "train");
  claim.results.front().driver = driver;
  stage.upsert_claim("train-gpu");
  stage.pod({.name = "train", .health = k8s::Health::Healthy, .claim = "train-gpu"});
  k8s::ResourceSlice slice;
  slice.meta.name = slice.meta.uid = "slice";
  slice.driver = driver;
  slice.pool = slice.node_name = "node-a";
  slice.devices = {{.name = "gpu-0", .taints = {taint}}};
  stage.put(std::move(slice));
  stage.upsert_pod("train");
  stage.run_for(Seconds(2));
  return is_taken_up(stage, policy.name);
}

/// Whether the policy alone, given to a controller, takes up a device of this name in this state.
bool takes_up(const DevicePolicy& policy, const std::string& name, bool plugin, const VendorWord& word) {
  auto stage = stage_with(policy);
  if (plugin) {
    auto& pod = stage.pod({.name = "train", .device = "id-0"});
    pod.requests = {{name, 1}};
    pod.allocated = {{name, {{"id-0", word.health, word.message}}}};
  } else {
    auto& claim = stage.claim("train-gpu", {"gpu-0"}, "train");
    claim.results.front().driver = name;
    stage.upsert_claim("train-gpu");
    stage.pod({.name = "train", .health = word.health, .message = word.message, .claim = "train-gpu"});
  }
  stage.upsert_pod("train");
  stage.run_for(Seconds(2));
  return is_taken_up(stage, policy.name);
}

class Inspection {
 public:
  Inspection(const DevicePolicy& policy, bool all_words, std::vector<std::string>& faults)
      : policy_(policy), all_words_(all_words), faults_(faults) {}

  void look_at(const std::string& glob, bool plugin, const std::vector<Vendor>& vendors) {
    bool known = false;
    taken_ = all_ = 0;
    known_taints_.clear();
    for (const auto& vendor : vendors) {
      const auto& names = plugin ? vendor.resources : vendor.drivers;
      const auto name = std::ranges::find_if(names, [&](const std::string& one) { return glob_matches(glob, one); });
      if (name == names.end()) continue;
      known = true;
      look_at_words(*name, plugin, vendor);
      if (!plugin) look_at_taints(*name, vendor);
    }
    if (!known) say(fmt::format("no vendor that is known has the name {}", glob));
    for (const auto& one : policy_.match.device_taints) {
      if (!plugin && !known_taints_.contains(one.key)) say(fmt::format("no driver {} has a taint {}", glob, one.key));
    }
    if (all_ > 0 && taken_ == 0) say(fmt::format("matches none of the {} words for a bad {}", all_, glob));
  }

 private:
  void look_at_words(const std::string& name, bool plugin, const Vendor& vendor) {
    if (!vendor.reports_faults()) {
      if (policy_.mode == Mode::Enforce) say(fmt::format("enforces for {}, which never reports a fault", name));
      return;
    }
    for (const auto& word : vendor.words) {
      const bool takes = takes_up(policy_, name, plugin, word);
      if (word.health == k8s::Health::Unhealthy) {
        ++all_;
        taken_ += takes ? 1 : 0;
        if (all_words_ && !takes) say(fmt::format("passes by {} of {}", text_of(word), name));
      } else if (takes && (policy_.mode == Mode::Enforce || word.health == k8s::Health::Healthy)) {
        say(fmt::format("acts on {} of {}", text_of(word), name));
      }
    }
  }

  void look_at_taints(const std::string& name, const Vendor& vendor) {
    if (policy_.match.device_taints.empty()) return;
    for (const auto& [taint, is_fault] : vendor.taints) {
      for (const auto& one : policy_.match.device_taints) {
        if (glob_matches(one.key, taint.key)) known_taints_.insert(one.key);
      }
      const bool takes = takes_up_taint(policy_, name, taint);
      if (takes && !is_fault) say(fmt::format("acts on taint {} of {}, which is no fault", to_string(taint), name));
      if (!takes && is_fault && all_words_) say(fmt::format("passes by taint {} of {}", to_string(taint), name));
    }
  }

  void say(std::string fault) { faults_.push_back(fmt::format("{}: {}", policy_.name, fault)); }

  const DevicePolicy& policy_;
  bool all_words_;
  std::vector<std::string>& faults_;
  std::set<std::string> known_taints_;  // keys of the policy, under the glob that is looked at
  std::size_t taken_ = 0;               // of all_ words for a bad device, under the glob that is looked at
  std::size_t all_ = 0;
};

}  // namespace

bool Vendor::reports_faults() const {
  return std::ranges::any_of(words, [](const VendorWord& word) { return word.health == k8s::Health::Unhealthy; });
}

std::vector<Vendor> every_vendor() {
  std::vector<Vendor> vendors;
  for (const auto& entry : std::filesystem::directory_iterator("tests/fixtures/vendors")) {
    if (entry.path().extension() == ".json") vendors.push_back(read_vendor(entry.path().filename().string()));
  }
  std::ranges::sort(vendors, {}, &Vendor::file);
  return vendors;
}

std::vector<std::string> faults_of_policies(const std::string& yaml, const std::vector<Vendor>& vendors,
                                            bool all_words) {
  const std::array files = {ConfigFile{"policies.yaml", yaml}};
  const auto config = parse_config(files);
  if (!config) return {format_mistake(config.error().front())};
  std::vector<std::string> faults;
  for (const auto& policy : config->policies) {
    Inspection inspection(policy, all_words, faults);
    for (const auto& glob : policy.match.resources) inspection.look_at(glob, true, vendors);
    for (const auto& glob : policy.match.drivers) inspection.look_at(glob, false, vendors);
  }
  return faults;
}

}  // namespace dhc::test
