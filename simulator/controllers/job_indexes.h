#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "base/now.h"
#include "simulator/controllers/job_account.h"

namespace dhc::sim {

/// What has become of the indexes of a Job with backoffLimitPerIndex.
struct IndexMemory {
  struct Failures {
    int count = 0;
    MonoTime last;
  };
  std::map<std::int64_t, Failures> failures;  ///< Of those that may still be tried.
  std::set<std::int64_t> failed;              ///< For good.
};

[[nodiscard]] bool is_per_index(const Json& job);

/// Takes in the failed pods of a Job with backoffLimitPerIndex. One whose index is tried again is counted when its
/// successor is there, and not before. **Source:** KEP-3850, seen on 1.37.1.
void look_at_indexes(JobAccount& account, const Json& job, IndexMemory& indexes, MonoTime now);

/// Why the Job fails by its indexes; empty: it does not.
[[nodiscard]] std::string failed_by_index(const Json& job, const IndexMemory& indexes, std::int64_t succeeded);

/// Such as `0,2-4`.
[[nodiscard]] std::string ranges_of(const std::set<std::int64_t>& indexes);

}  // namespace dhc::sim
