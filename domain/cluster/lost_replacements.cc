#include "domain/cluster/lost_replacements.h"

#include <algorithm>
#include <utility>

namespace dhc {

namespace {

/// A creationTimestamp has whole seconds: a pod made right after another's end may seem older than that.
constexpr Millis kCoarseCreation = std::chrono::seconds(1);
/// As many rounds as one a second would be in two minutes; of a longer storm the newest are kept.
constexpr std::size_t kMostStormRounds = 120;

}  // namespace

void LostReplacements::note(const std::string& workload, LostReplacement lost, const Now& now) {
  ++count_;
  if (storms_.size() >= kMost && !storms_.contains(workload)) {
    const auto at = [](const auto& entry) { return entry.second.rounds.back().mono; };
    storms_.erase(std::ranges::min_element(storms_, {}, at));
  }
  auto& storm = storms_[workload];
  std::erase_if(storm.rounds, [&](const Moment& round) { return now.mono - round.mono >= kWithin; });
  if (storm.rounds.empty()) storm.pods = 0;
  if (storm.rounds.empty() || lost.made + kCoarseCreation >= storm.rounds.back().wall)
    storm.rounds.push_back(moment_of(now));
  if (storm.rounds.size() > kMostStormRounds) storm.rounds.erase(storm.rounds.begin());
  ++storm.pods;
  storm.last = std::move(lost);
}

bool rages(const Storm& storm, const Now& now) {
  const auto count = storm.rounds.size();
  return count >= LostReplacements::kStorm &&
         now.mono - storm.rounds[count - LostReplacements::kStorm].mono < LostReplacements::kWithin;
}

}  // namespace dhc
