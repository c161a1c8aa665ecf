#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/moment.h"
#include "base/wake_queue.h"
#include "domain/cluster/focus.h"
#include "domain/cluster/world.h"
#include "domain/findings/affected_pod.h"
#include "domain/findings/rejecting_node.h"
#include "domain/history/device_record.h"
#include "domain/history/owner_loss.h"
#include "domain/policy/policy.h"

namespace dhc {

/// What one brake covers: a driver or resource, on one node or (empty node) in the cluster; of the cluster's devices
/// perhaps only those of which the driver says the same, or that one workload holds.
struct BrakeScope {
  std::string scope;  ///< Driver or resource.
  std::string node;
  bool nodes = false;         ///< It counts rejecting nodes, not devices; in the cluster alone.
  std::string words = {};     ///< As `folded_words` gives them; empty: whatever is said.
  std::string workload = {};  ///< As `workload_of` says; empty: whoever holds them.
  friend auto operator<=>(const BrakeScope&, const BrakeScope&) = default;
};

/// The one pod that a half-open brake tries.
struct BrakeTrial {
  DeviceKey key;
  std::string ns;
  std::string pod;
  std::string pod_uid;
  std::string owner_uid;
  bool owner_is_watched = false;  ///< Then its absence means that no later pod can come.
  Moment chosen;
  std::optional<Moment> evicted;       ///< When its pod was asked to go: `mono` as we saw it, `wall` by the server.
  std::string later_uid = {};          ///< The pod of the same owner that came after it; empty: none yet.
  std::optional<MonoTime> well_since;  ///< Since when that runs on devices that no signal calls bad.
  std::uint64_t revision = 0;          ///< Of the incident store: nothing is evicted before that much is written.
  bool is_written = false;
  MonoTime looked_at;  ///< When a later pod was last looked for.
};

/// One engaged brake.
struct EngagedBrake {
  Moment since;
  std::int64_t devices = 0;                   ///< Physical cards that are bad now and count.
  std::int64_t known = 0;                     ///< Physical cards of the scope.
  std::int64_t most = 0;                      ///< It is released when no more than so many count.
  std::optional<MonoTime> low_since;          ///< Since when no more than `most` count.
  std::int64_t trials = 0;                    ///< Pods that were evicted on trial since it engaged.
  Moment waits_from;                          ///< The wait for the next trial counts from here.
  std::optional<BrakeTrial> trial;            ///< It is half-open, and this one is under way.
  std::string last_trial;                     ///< How the last one ended, in words; empty: there was none.
  std::map<std::string, MonoTime> not_again;  ///< UIDs of pods that could not be evicted on trial, and until when.
};

/// An engaged brake with what it covers.
using HeldScope = std::pair<const BrakeScope, EngagedBrake>;

/// As many of `known` may be bad without a brake. In a large cluster a share alone is more than anybody wants to lose
/// at once.
[[nodiscard]] std::int64_t most_bad(const Limits& limits, const BrakeScope& scope, std::int64_t known);

/// Whether so many that went bad within `brake.within` engage it.
[[nodiscard]] bool engages(const Limits& limits, const BrakeScope& scope, std::int64_t recent, std::int64_t known);

/// What one turn shows the brake.
struct BrakeSighting {
  const World& world;
  const Policy& policy;
  const std::vector<AffectedPod>& affected_pods;
  const DeviceRecords& records;
  const OwnerLosses& losses;
  const RejectingNodes& rejecting_nodes;
  std::optional<std::uint64_t> saved_revision;  ///< As in PlanInput.
  Now now;
  const Focus* focus = nullptr;  ///< The devices that may have changed since the last sighting; null: all.
  /// Of `affected_pods` those in focus; not looked at without one.
  const std::vector<const AffectedPod*>* in_focus = nullptr;
};

/// A device that a policy means and that has not been seen well since.
struct BadDevice {
  std::string node;        ///< Of the pod that holds it, or held it last.
  std::string card;        ///< The physical card, on its node or in its pool.
  std::string words = {};  ///< Of its driver, folded, where brakes count by them.
  std::string workload =
      {};        ///< That holds it, or held it last, where brakes count by it; empty: it has no controller.
  Moment onset;  ///< When a policy first meant it.
  MonoTime words_since = MonoTime::min();     ///< Since when its driver says that, if that is later.
  MonoTime workload_since = MonoTime::min();  ///< Since when that workload holds it, if that is later.
  WallTime began;                             ///< Since when it has been bad, by the report.
  bool speaks = false;                        ///< It is reported now.
  bool acknowledged = false;                  ///< An operator vouches for it.
  bool out = false;                           ///< Out of service on our account, and nobody holds it.
  std::optional<MonoTime> unheld_since;
};

/// Bad devices that were known before a restart, and for whose names there was no room in the state. They go the way of
/// those of their scope whose names were kept.
struct UnnamedDevices {
  std::int64_t cards = 0;    ///< Physical cards.
  std::set<DeviceKey> like;  ///< The devices that have names.
  WallTime before;           ///< All went bad before.
};

/// What a process before us has written of the brake.
struct BrakeMemory {
  std::map<BrakeScope, EngagedBrake> engaged;
  std::map<DeviceKey, BadDevice> unheld;            ///< Bad devices that nobody holds.
  std::map<BrakeScope, std::int64_t> unnamed = {};  ///< Cards of more such devices.
};

/// How long no more than `most` devices must count before a brake is released: the reports of one node's pods change
/// one after the other, and the last of them would be evicted while they do.
inline constexpr Millis kReleaseSettle = Seconds(30);

/// Stops new evictions, credits and taints of a scope when too many of its devices go bad at once, or too many nodes
/// reject the pods that ask for them: then suspect the reporting fault. It holds as long as the fault lasts, over
/// restarts and changes of leader; what stands for long is tried, one pod at a time.
class Brake {
 public:
  /// Takes in what policies mean now. Safe to repeat.
  void observe(const BrakeSighting& seen);

  /// The brake that holds this device on this node, if any. A trial's device is not held; with a pod's UID, only the
  /// trial's pod is not.
  [[nodiscard]] const HeldScope* holding(const DeviceKey& key, const std::string& node,
                                         std::string_view pod_uid = {}) const;

  /// Whether one holds it that doubts the reports. What breaks under a workload is an incident all the same: that is
  /// what speaks against the workload.
  [[nodiscard]] bool doubts(const DeviceKey& key, const std::string& node) const;

  /// Whether a brake is engaged that counts this device, also if it is its trial's.
  [[nodiscard]] bool covers(const DeviceKey& key, const std::string& node) const;

  [[nodiscard]] const std::map<BrakeScope, EngagedBrake>& engaged() const { return engaged_; }
  /// What counts or may count again, by device.
  [[nodiscard]] const std::map<DeviceKey, BadDevice>& bad() const { return bad_; }

  /// True if a brake holds this device on this node, and each that does is half-open with no trial under way.
  [[nodiscard]] bool may_try(const DeviceKey& key, const std::string& node, const std::string& pod_uid,
                             const Limits& limits, const Now& now) const;
  /// Engaged brakes whose next trial is due or under way.
  [[nodiscard]] std::size_t count_half_open(const Limits& limits, const Now& now) const;
  /// Each brake that holds the device on this node lets this pod go, once that is written down.
  void begin_trial(const BrakeTrial& trial, const std::string& node);

  /// Takes in what a process before us has written. What this process has engaged itself stays engaged.
  void load(BrakeMemory memory, const Now& now);
  /// The incidents and brakes that were read tell of bad devices since when they are bad: those that this process has
  /// not seen well before are old news, and a brake that it has engaged on them alone is released with the next
  /// sighting.
  void recall_onsets(const DeviceRecords& records, const World& world, const Now& now);
  /// How many cards of this scope count that have no names.
  [[nodiscard]] std::int64_t unnamed(const BrakeScope& scope, std::optional<WallTime> released = {}) const;
  /// Counts changes of what is to be written down.
  [[nodiscard]] std::uint64_t revision() const { return revision_; }

  /// Devices that are to be looked at again although nothing of them has changed.
  [[nodiscard]] std::vector<DeviceKey> due(const Now& now) const;

  /// When an engaged brake changes by time alone.
  [[nodiscard]] std::optional<MonoTime> next_change_at(const Limits& limits, const Now& now) const;

 private:
  struct Tally;
  /// What counts in one scope, by the place and name of its card.
  struct Group {
    std::map<std::pair<std::string, std::string>, std::int64_t> cards;
    std::set<DeviceKey> devices;
  };
  [[nodiscard]] std::vector<BrakeScope> scopes_on(const DeviceKey& key, const std::string& node) const;
  void note_signals(const BrakeSighting& seen);
  void note_signal(const AffectedPod& affected, const BrakeSighting& seen);
  void look_at_silent(const DeviceKey& key, const BrakeSighting& seen);
  void count(const DeviceKey& key);
  void count_unheld(const DeviceKey& key);
  void drop_most(const World& world);
  void look_at_silent(const BrakeSighting& seen);
  bool is_over(const DeviceKey& key, BadDevice& bad, const BrakeSighting& seen);
  void weigh_devices(const BrakeSighting& seen);
  [[nodiscard]] Tally tally_of(const BrakeScope& scope, const Group& group, const BrakeSighting& seen) const;
  [[nodiscard]] std::int64_t known_of(const BrakeScope& scope, const Group& group, const World& world) const;
  void weigh_nodes(const BrakeSighting& seen);
  void judge(const BrakeScope& scope, const Tally& tally, const BrakeSighting& seen);
  void release(std::map<BrakeScope, EngagedBrake>::iterator engaged);
  void note_grounds(const BrakeScope& scope, const BrakeSighting& seen);
  [[nodiscard]] bool has_grounds(const BrakeScope& scope, std::int64_t known, const Limits& limits) const;
  void follow_trials(const BrakeSighting& seen);

  std::map<DeviceKey, BadDevice> bad_;
  std::map<BrakeScope, Group> groups_;                // of bad_
  std::set<BrakeScope> several_;                      // of groups_, those of two devices or more
  std::map<DeviceKey, BadDevice> counted_;            // as it stands in the groups
  using Place = std::pair<std::string, std::string>;  // a driver or resource, and a node
  std::map<DeviceKey, Place> unheld_;                 // of bad_, those that nobody holds
  std::map<Place, std::size_t> unheld_on_;            // how many
  std::set<Place> crowded_;                           // where more are than are remembered without a look at the node
  WakeQueue<DeviceKey> due_;                          // silent devices that time alone may end
  std::set<DeviceKey> asked_again_;                   // whose acknowledgement is not valid yet
  // What is looked at for the first time is as old as its device is bad.
  bool looked_at_words_ = false;
  bool looked_at_workloads_ = false;
  bool has_new_unheld_ = false;
  std::map<BrakeScope, EngagedBrake> engaged_;
  std::map<BrakeScope, UnnamedDevices> unnamed_;  // of engaged_
  // Of those of engaged_ that this process has engaged: on which devices, and their cards.
  std::map<BrakeScope, std::map<DeviceKey, std::string>> grounds_;
  // The same of those that a state which was read has engaged too: a later one may not.
  std::map<BrakeScope, std::map<DeviceKey, std::string>> grounds_set_aside_;
  std::set<BrakeScope> doubted_;  // of grounds_, those that have lost some since
  std::uint64_t revision_ = 0;
};

/// When time alone takes a trial one step further.
[[nodiscard]] MonoTime next_step_at(const BrakeTrial& trial, const Limits& limits);

/// When a trial may begin: `trialAfter` from `waits_from`, doubled with each trial, at most a day.
[[nodiscard]] MonoTime next_trial_at(const EngagedBrake& brake, const Limits& limits);

/// What has engaged it, as `3 of 8 devices of R on node N are bad`.
[[nodiscard]] std::string to_string(const BrakeScope& scope, const EngagedBrake& brake);

/// Whom it suspects, as `a reporting fault`.
[[nodiscard]] std::string_view suspect_of(const BrakeScope& scope);

/// What an engaged brake waits for, in words.
[[nodiscard]] std::string waits_for(const EngagedBrake& brake, const Limits& limits, const Now& now);

/// The brakes that count this device.
[[nodiscard]] std::vector<BrakeScope> scopes_of(const DeviceKey& key, const BadDevice& bad);

/// How many physical cards of a scope are known: node capacities by what one card is offered as, and published pools,
/// over time as `CardCounts` has it; and devices that pods hold.
[[nodiscard]] std::int64_t known_cards(const World& world, const BrakeScope& scope);

/// How many are there, also those that are too new to be known.
[[nodiscard]] std::int64_t cards_there(const World& world, const std::string& scope, const std::string& node);

}  // namespace dhc
