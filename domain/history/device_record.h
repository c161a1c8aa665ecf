#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/moment.h"
#include "domain/cluster/reporters.h"
#include "domain/contract/device_key.h"
#include "domain/history/incident.h"
#include "domain/history/our_mark.h"
#include "domain/history/owner_loss.h"
#include "domain/history/rule_doubt.h"
#include "domain/policy/policy.h"

namespace dhc {

class World;

/// One time that a device broke.
struct PastIncident {
  WallTime at;
  std::string reason;            ///< The driver's words, short and printable.
  bool without_penalty = false;  ///< It added none.
  friend bool operator==(const PastIncident&, const PastIncident&) = default;
};

/// Which physical device it is, as far as that is known.
struct CardIdentity {
  std::string value;      ///< If its driver names it: the value
  std::string attribute;  ///< of this slice attribute. Only values of one attribute are compared.
  std::string host_uid;  ///< Of its node when it was last known to be the same device; empty: not known, or its name is
                         ///< the hardware's.
  std::optional<std::string> host =
      {};  ///< The name of its pool's node, empty: the pool is no node's; none: not known.
  std::vector<std::string> beside = {};  ///< Marks of the other cards of its pool then, as `KnownCard` has them.
};

/// What is remembered of it, whether an incident goes on or not.
struct DeviceHistory {
  std::string policy;                  ///< Whose rules hold: that of the last incident.
  std::deque<PastIncident> incidents;  ///< Newest last; at most ten.
  std::int64_t count = 0;              ///< All that are remembered as a number.
  double penalty = 0;                  ///< As of `penalty_at`: one more for each incident, halved with time.
  WallTime penalty_at;
  bool is_lemon = false;          ///< Above the policy's limit, and no operator has vouched for it since.
  std::vector<OwnerLoss> losses;  ///< Oldest first, one an owner.
  // of this process alone
  MonoTime last_word = MonoTime::min();  ///< The last bad word of it that its incidents have taken in.
};

/// What of ours stands in the cluster for it.
struct OurMarks {
  OurMark rule;  ///< Its DeviceTaintRule.
  OurMark node;  ///< Our taint on its node.
  /// Other devices of its card whose rules somebody has deleted, or acknowledged, in this incident.
  std::set<std::string> let_go = {};
  // of this process alone
  RuleDoubt rule_doubt;
  /// Until then a removal may come that the process before us has asked for: it is nobody's word.
  MonoTime earlier_removal_by = MonoTime::min();
  bool knows_rule = false;     ///< What our rule remembers has been compared.
  std::uint64_t noted_by = 0;  ///< The incident store's revision that must be written down before anything is removed.

  [[nodiscard]] bool any() const { return rule.stands() || node.stands(); }
};

/// What is remembered of one device. All but what is of this process alone is written down and survives restarts.
struct DeviceRecord {
  DeviceKey key;
  CardIdentity card;
  DeviceHistory past;
  Incident incident;
  OurMarks ours;

  [[nodiscard]] bool is_open() const { return incident.is_open(); }
  [[nodiscard]] bool is_acknowledged() const { return incident.is_acknowledged(); }
  [[nodiscard]] bool is_quarantined() const { return incident.phase() == IncidentPhase::Quarantined; }
};

/// Devices in their places.
using DeviceRecords = std::map<DeviceKey, DeviceRecord>;

/// The record of the device in this place, or null.
[[nodiscard]] const DeviceRecord* find_record(const DeviceRecords& records, const DeviceKey& key);

/// The node of the device, as the World knows it; else the one it was last known on: its driver may have withdrawn its
/// pool meanwhile. Empty if it is no node's.
[[nodiscard]] std::string node_of(const DeviceRecord& record, const World& world);

/// The penalty as of `now`. **Source:** exponential decay, as route flap damping (RFC 2439) uses it.
[[nodiscard]] double penalty_of(const DeviceHistory& past, const RecoverRules& rules, WallTime now);

/// A penalty that is as good as none: a device without an open incident that has no more is forgotten.
[[nodiscard]] bool is_negligible(const DeviceHistory& past, const RecoverRules& rules, WallTime now);
/// When it will, if no incident comes before.
[[nodiscard]] WallTime negligible_at(const DeviceHistory& past, const RecoverRules& rules);

/// Whether a device may become quarantined: only what a taint of ours would keep pods off. Without one nobody would see
/// that the device is out of service, and its incident would never end.
enum class Quarantine : std::uint8_t { Never, AboveLimit };

/// Whether the device has not been well since its last incident as far as anybody can tell: the hold alone has ended
/// that, it is on probation, and no pod has worked on it since. What opens then is the same break.
[[nodiscard]] bool is_same_break(const Incident& incident, WallTime now);

/// Adds an incident that opens now, without a penalty: the next hold is longer, and nothing else.
void count_without_penalty(DeviceHistory& past);

/// Adds an incident that opens now: one more penalty, and quarantine above the policy's limit.
void count_incident(DeviceHistory& past, const RecoverRules& rules, WallTime now,
                    Quarantine quarantine = Quarantine::AboveLimit);

/// The incident that opened then, among those that are remembered, was not the device's fault: what it added is taken
/// away again, once.
void take_back_incident(DeviceHistory& past, const RecoverRules& rules, WallTime opened_at, WallTime now);

/// How long the device is held without evidence: `hold` doubled with each incident after the first, at most 7 days.
[[nodiscard]] Millis hold_of(const DeviceHistory& past, const RecoverRules& rules);

/// An operator vouches for the device: its penalty is paid. False if that says nothing: no incident goes on, or it is
/// acknowledged already.
bool acknowledge(DeviceRecord& record, Acknowledged how);

/// What was last said of it in an incident that goes on, by whoever reports on it.
[[nodiscard]] LastWord last_word_of(const DeviceKey& key, const IncidentFacts& facts);

/// Whether a Healthy is no evidence of a repair: who reports on the device has begun anew since it was called bad.
[[nodiscard]] bool is_forgotten(const DeviceRecord& record);
/// The same in words; nothing: it is evidence.
[[nodiscard]] std::optional<std::string> why_forgotten(const DeviceRecord& record);

/// Whether and when an open incident ends.
struct Recovery {
  bool over = false;
  bool on_probation = false;        ///< It ends without evidence,
  bool is_unproven = false;         ///< by the hold alone, and nobody has called the device Healthy in it.
  std::string why;                  ///< The evidence, or what is waited for.
  std::optional<WallTime> at = {};  ///< When time alone would end it.
};

/// What ends the open incident of this device: the driver's taint that went away or a holder that reports Healthy, both
/// by a reporter that has called it bad itself; a new boot of the node; an operator's word; or the end of the hold.
/// Without rules (null: the policy is gone, or could not be read) only an operator's word does. A replaced device is
/// the incident store's own affair.
[[nodiscard]] Recovery recovery_of(const DeviceRecord& record, const RecoverRules* rules, const Now& now);

}  // namespace dhc
