#include "simulator/controllers/job_indexes.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dhc::sim {
namespace {

std::int64_t index_of(const Json& pod) {
  return number(pod, {"metadata", "labels", "batch.kubernetes.io/job-completion-index"}, -1);
}

int failures_before(const Json& pod) {
  return static_cast<int>(number(pod, {"metadata", "annotations", "batch.kubernetes.io/job-index-failure-count"}));
}

bool has_successor(const JobAccount& account, const Json& pod) {
  return std::ranges::any_of(account.all, [&](const ObjectPtr& other) {
    return index_of(*other) == index_of(pod) && failures_before(*other) > failures_before(pod);
  });
}

}  // namespace

bool is_per_index(const Json& job) {
  const Json* limit = field(job, {"spec", "backoffLimitPerIndex"});
  return limit != nullptr && limit->is_number();
}

void look_at_indexes(JobAccount& account, const Json& job, IndexMemory& indexes, MonoTime now) {
  const auto limit = number(job, {"spec", "backoffLimitPerIndex"});
  std::erase_if(account.counted_now, [&](const ObjectPtr& pod) {
    const auto uid = uid_of(*pod);
    const auto index = index_of(*pod);
    if (std::ranges::find(account.newly_failed, uid) == account.newly_failed.end() || index < 0) return false;
    const int count = failures_before(*pod) + 1;
    if (count > limit || account.failed_indexes.contains(index)) {
      indexes.failed.insert(index);
      indexes.failures.erase(index);
      return false;
    }
    auto& failures = indexes.failures[index];
    if (failures.count < count) failures = {.count = count, .last = now};
    if (has_successor(account, *pod)) return false;
    std::erase(account.newly_failed, uid);
    return true;
  });
}

std::string failed_by_index(const Json& job, const IndexMemory& indexes, std::int64_t succeeded) {
  const auto failed = static_cast<std::int64_t>(indexes.failed.size());
  const Json* most = field(job, {"spec", "maxFailedIndexes"});
  if (most != nullptr && most->is_number() && failed > most->get<std::int64_t>()) return "MaxFailedIndexesExceeded";
  return failed > 0 && failed + succeeded >= number(job, {"spec", "completions"}) ? "FailedIndexes" : "";
}

std::string ranges_of(const std::set<std::int64_t>& indexes) {
  std::string text;
  for (auto at = indexes.begin(); at != indexes.end();) {
    const auto first = *at;
    auto last = first;
    for (++at; at != indexes.end() && *at == last + 1; ++at) last = *at;
    if (!text.empty()) text += ',';
    text += last == first ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
  }
  return text;
}

}  // namespace dhc::sim
