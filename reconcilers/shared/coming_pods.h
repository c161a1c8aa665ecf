#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "domain/cluster/demand.h"
#include "domain/cluster/touched.h"
#include "domain/limits/request_tracker.h"

namespace dhc {

/// How long an offered device keeps being counted for a pod that waits: the scheduler binds within seconds, and one
/// that it leaves alone for a minute has other reasons to wait. Else a tenant's Pending pods would hold everybody's
/// evictions.
inline constexpr Millis kOfferPatience = Seconds(60);
/// How long pods of other namespaces, however many and however often made anew, may keep the place that a pod on a bad
/// device would go to: their tenants decide how long they wait.
inline constexpr Millis kOthersPatience = std::chrono::minutes(10);
/// How long the replacement of an evicted pod is waited for. **Source:** the Job controller's longest back-off.
inline constexpr Millis kReplacementPatience = std::chrono::minutes(10);

/// Pods that will take devices soon: those that wait for a node, and the replacements of pods that we evicted, which
/// are not there yet. Owned by the controller, observed once a turn.
class ComingPods {
 public:
  struct Coming {
    std::string uid;  ///< Empty: a replacement that is not there yet.
    std::string ns;
    std::shared_ptr<const Demand> demand;
  };

  /// Whose pods may be others than at the last observation.
  void note_changed(const Touched& touched);

  void observe(const World& world, const RequestTracker& requests, const Now& now);

  /// In the order in which they are likely to be served.
  [[nodiscard]] std::vector<Coming> list(const World& world, const Now& now) const;

  /// UIDs of the pods that give back all that they hold: evicted by us, and not stuck.
  [[nodiscard]] const std::set<std::string>& leaving() const { return leaving_; }

  /// Pods that wait although a place is free for them, as of this turn; nothing if nobody has looked.
  void note_offered(const std::optional<std::set<std::string>>& uids, const Now& now);

  /// Pods that would have a place but for pods of other namespaces that wait, by UID, as of this turn.
  void note_crowded(const std::set<std::string>& uids, const Now& now);

  /// Whether what waits in other namespaces counts against this pod no longer.
  [[nodiscard]] bool is_past_others(const std::string& uid, const Now& now) const;

  /// When time alone changes the list, or who counts in it.
  [[nodiscard]] std::optional<MonoTime> next_change_at(const Now& now) const;

 private:
  struct Departure {
    std::string ns;
    k8s::OwnerRef owner;
    std::string owner_identity;
    std::shared_ptr<const Demand> demand;
    WallTime at;     ///< By the API server's clock once it is known.
    MonoTime since;  ///< When we saw it first.
  };
  void note_departures(const World& world, const RequestTracker& requests, const Now& now);
  void forget_departures(const World& world, const Now& now);
  void count_replacements(const World& world);
  void count_replacements(const std::string& owner, WallTime since, const World& world);

  std::set<std::string> leaving_;
  std::map<std::string, Departure> departures_;  // by the evicted pod's UID
  std::map<std::string, std::size_t> replaced_;  // by the owner's identity: pods made since
  std::set<std::string> uncounted_;              // owners whose number may be another
  bool all_uncounted_ = true;
  std::map<std::string, MonoTime> offered_since_;  // by the waiting pod's UID
  std::map<std::string, MonoTime>
      crowded_since_;  // by the UID of the pod on the bad device: in all, not without a break
};

}  // namespace dhc
