#pragma once
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/now.h"
#include "domain/cluster/ailing_pod.h"
#include "domain/cluster/world.h"
#include "domain/findings/affected_pod.h"
#include "domain/policy/policy.h"

namespace dhc {

/// How long a pod's word stays in the state after its device has recovered: what flaps is not written with each flap.
inline constexpr Millis kAilingLinger = std::chrono::minutes(1);
/// After how long the word about a pod that stays where it is is given again, as it counts for an hour.
inline constexpr Millis kAilingRenewal = std::chrono::minutes(30);

/// Which Jobs' pods the next process must know to have been on a bad device, if they are found dead then: those under a
/// policy that gives retries back, and those that have ended on one within the hour.
class AilingPods {
 public:
  AilingPods() = default;
  /// After what the state said when it was loaded.
  AilingPods(const std::vector<AilingPod>& written, const Now& now);

  /// Looks at them anew. True if that is to be written down now: a pod, or a device of one, has come; one that was
  /// written has been well for a minute; or the word is half an hour old.
  [[nodiscard]] bool look(const std::vector<AffectedPod>& affected_pods, const World& world, const Policy& policy,
                          const Now& now);

  /// As they are now, by UID.
  [[nodiscard]] const std::vector<AilingPod>& all() const { return all_; }

  /// When `look` would find something to be written by time alone; a renewal is left to the next plan that comes.
  [[nodiscard]] std::optional<MonoTime> next_change_at() const;

 private:
  using Places = std::set<std::pair<std::string, DeviceKey>>;  // pod UIDs and devices

  std::vector<AilingPod> all_;
  Places written_;  // as of the last time that something was to be written
  MonoTime written_at_;
  std::optional<MonoTime> stale_since_;  // since when something of it is no more
};

}  // namespace dhc
