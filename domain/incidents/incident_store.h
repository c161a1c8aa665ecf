#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/wake_queue.h"
#include "domain/cluster/focus.h"
#include "domain/cluster/world.h"
#include "domain/findings/affected_pod.h"
#include "domain/findings/suspects.h"
#include "domain/history/device_record.h"
#include "domain/limits/brake.h"
#include "domain/limits/cap_book.h"
#include "domain/policy/policy.h"

namespace dhc {

/// What one turn shows of the devices.
struct DeviceSighting {
  const World& world;
  const Policy& policy;
  const Brake& brake;
  const RejectingNodes& rejecting_nodes;
  const std::vector<AffectedPod>& affected_pods;
  const OwnerLosses& losses;
  const std::map<std::string, WallTime>& removed_rules;  ///< DeviceTaintRules that went away since the last turn, when.
  const std::map<std::string, WallTime>& removed_taints;  ///< Nodes from which our taint went away, likewise.
  Now now;
  const Focus* focus = nullptr;  ///< The devices of which something may have changed since the last turn; null: all.
  /// Of `affected_pods` those in focus; not looked at without one.
  const std::vector<const AffectedPod*>* in_focus = nullptr;
  const Suspects* suspects = nullptr;  ///< As of the last turn; null: nobody is suspected.
};

/// The incidents of every device, open and past: what taints are decided on when nobody holds the device any more. What
/// it learns from the World it learns again after a restart; the rest it writes down (`state_text`).
class IncidentStore {
 public:
  /// Opens, continues and ends incidents. Safe to repeat.
  void observe(const DeviceSighting& sighting);

  /// The record of the device in this place, or null.
  [[nodiscard]] const DeviceRecord* find(const DeviceKey& key) const;
  /// Until when one bad report of it is enough; none: it is not on probation.
  [[nodiscard]] std::optional<WallTime> probation_of(const DeviceKey& key, WallTime now) const;
  /// Those of the other devices as which a device plugin offers the same card on its node.
  [[nodiscard]] std::vector<const DeviceRecord*> replicas_of(const DeviceKey& key) const;
  /// Devices in their places.
  [[nodiscard]] const DeviceRecords& records() const { return records_; }
  /// Physical devices that have left their place, by driver and identity.
  [[nodiscard]] const std::map<std::string, DeviceRecord>& departed() const { return departed_; }

  /// The nodes from which our taint is to be removed; those that are none of them keep it. Incidents that go on
  /// remember it, and that is written down before anything is sent: the process after us must not take our own doing
  /// for an operator's word. Of the devices in focus (null: of all), of which a node has all or none. True if there is
  /// something to be written.
  bool intend_untaint(const World& world, const std::set<std::string>& nodes, const Focus* focus);

  /// Just loaded: until then, removals that were meant may come by requests of the process before us.
  void await_earlier_removals(MonoTime until);
  /// Takes out of these rules, by name, that have gone those that we meant to remove: nobody has said anything by them.
  void drop_leaving(std::map<std::string, WallTime>& removed_rules) const;
  /// Takes out of these, which went before the state was known as it is, those that its writer has seen to go and
  /// judged.
  void drop_judged(std::map<std::string, WallTime>& removed_rules) const;
  /// We have asked for the removal of our rule, or of our taint on the node: its absence is our own doing.
  void rule_removal_sent(const DeviceKey& key);
  /// We have written on our rule, which stands: until that is answered, what it looks like may be our own doing.
  void rule_write_sent(const DeviceKey& key);
  /// It stands as it was sent, or was surely not written.
  void rule_write_done(const DeviceKey& key);
  /// The answer is lost: until then it may yet be stored, and otherwise than we sent it.
  void rule_write_lost(const DeviceKey& key, MonoTime until);
  /// The server has stored it otherwise than we sent it: it is to be removed, which is written down.
  void rule_write_altered(const DeviceKey& key);
  void untaint_sent(const std::string& node) { untainting_.insert(node); }
  void card_removal_sent(const std::string& rule) { card_removals_.insert(rule); }
  /// It was refused for sure, or never sent.
  void rule_removal_failed(const DeviceKey& key);
  void untaint_failed(const std::string& node) { untainting_.erase(node); }
  void card_removal_failed(const std::string& rule) { card_removals_.erase(rule); }
  [[nodiscard]] bool is_untainting(const std::string& node) const { return untainting_.contains(node); }

  /// Devices whose incidents have opened since the last call.
  [[nodiscard]] std::set<DeviceKey> take_opened() { return std::exchange(opened_, {}); }
  /// The incidents of these devices are put down to what ran on them: penalties are taken back, and those that go on
  /// end on probation, unless somebody else holds the device and it is bad with him.
  void excuse(const std::vector<DeviceOnset>& onsets, const Suspects& suspects, const World& world,
              const Policy& policy, const Now& now);

  /// What counts against the caps.
  [[nodiscard]] const CapBook& caps() const { return caps_; }
  /// Writes evictions down before they are sent; each may be sent once its revision is saved.
  /// Where room is short what may give way does so, but for the pods that are evicted in this turn, by UID.
  void charge(std::vector<EvictionCharge> charges, const std::set<std::string>& going, const RequestTracker& requests,
              const Now& now);
  /// What became of charged evictions, before the request tracker forgets the pods that are gone.
  void settle_charges(const World& world, const RequestTracker& requests, const Policy& policy, const Now& now);
  /// Which devices are still out of service, by the records of those in focus (null: of all).
  void follow_out_of_service(const World& world, const Policy& policy, const Now& now, const Focus* focus);

  /// Takes in what a process before us has written; replaces everything.
  void load(std::vector<DeviceRecord> records, std::vector<DeviceRecord> departed, CapBook caps = {});
  /// An operator has deleted what was written: past incidents are forgotten, open ones stay.
  void forget_past();
  /// Counts changes of what is to be written down.
  [[nodiscard]] std::uint64_t revision() const { return revision_; }
  /// Something else that is written with it has changed.
  void note_change() { ++revision_; }
  /// The nodes whose devices pools were, for `World::note_homes`.
  [[nodiscard]] std::map<Inventory::PoolName, PoolHome> homes() const;
  /// DRA pools with a device that is kept out of service and has not been away for long, for
  /// `World::note_guarded_pools`.
  [[nodiscard]] std::set<Inventory::PoolName> guarded_pools(const World& world, WallTime now) const;
  /// The open incidents of devices that have been bad without a Healthy, for `World::note_incidents`.
  /// `policy` says what cards are to be known by; null: not known.
  [[nodiscard]] std::map<DeviceKey, OpenIncident> open_incidents(const Policy* policy) const;

  /// The same of one device; none: it has no such incident.
  [[nodiscard]] std::optional<OpenIncident> open_incident(const DeviceKey& key, const Policy* policy) const;

  /// Devices of which something has changed since the last call that others rest on.
  [[nodiscard]] std::set<DeviceKey> take_touched() { return std::exchange(touched_, {}); }
  /// The same of pods whose charges have changed, by UID.
  [[nodiscard]] std::set<std::string> take_touched_pods() { return std::exchange(touched_pods_, {}); }
  /// Devices that are to be observed again at this time although nothing of them has changed.
  [[nodiscard]] std::vector<DeviceKey> due(const Now& now) const;

  /// Devices whose Healthy is to be believed although it is said by one that began after they were called bad: no
  /// incident is or will be open, for no policy speaks of them or the brake is engaged.
  [[nodiscard]] const std::set<DeviceKey>& believed() const { return believed_; }

  /// The same at the beginning of a term: what could have become an incident by then, the leader before has opened, or
  /// found that it is none.
  [[nodiscard]] std::set<DeviceKey> judged_before(const World& world, const std::vector<AffectedPod>& affected_pods,
                                                  MonoTime term_began) const;

  /// When an observation would conclude something new by time alone.
  [[nodiscard]] std::optional<MonoTime> next_change_at() const { return next_change_at_; }

 private:
  friend class IncidentTurn;
  DeviceRecords records_;
  std::map<std::string, DeviceRecord> departed_;
  CapBook caps_;
  std::set<std::string> untainting_;     // nodes
  std::set<std::string> card_removals_;  // names of rules
  std::set<DeviceKey> believed_;
  std::uint64_t revision_ = 0;
  std::optional<MonoTime> next_change_at_;
  WakeQueue<DeviceKey> wakes_;
  std::set<DeviceKey> touched_;
  std::set<DeviceKey> opened_;
  std::set<std::string> touched_pods_;
};

/// How long one bad report is enough after an incident that ended without evidence.
inline constexpr Millis kProbation = std::chrono::hours(24);

/// The same physical device wherever it sits.
[[nodiscard]] std::string identity_key(const DeviceKey& key, const std::string& identity);

/// The policy that holds for a record: that of its last incident; null if it is gone.
[[nodiscard]] const DevicePolicy* policy_of(const DeviceRecord& record, const Policy& policy);

/// Its card, and by what its policy asks to know that.
[[nodiscard]] KnownCard known_card(const DeviceRecord& record, const Policy* policy);

/// Its recovery rules; null if it is gone.
[[nodiscard]] const RecoverRules* rules_of(const DeviceRecord& record, const Policy& policy);

/// After how long that nobody publishes or holds a device its rule is collected: a day; a week if its node stands,
/// whose driver may be away for a repair. The incident goes on if it turns up again.
[[nodiscard]] Millis absence_of(const World& world, const DeviceRecord& record);
[[nodiscard]] bool is_long_absent(const DeviceRecord& record, const World& world, WallTime now);

}  // namespace dhc
