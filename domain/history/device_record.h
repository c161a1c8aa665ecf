#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/moment.h"
#include "domain/cluster/reporters.h"
#include "domain/contract/device_key.h"
#include "domain/contract/signal_source.h"
#include "domain/history/owner_loss.h"
#include "domain/policy/policy.h"

namespace dhc {

/// One time that a device broke.
struct Incident {
  WallTime at;
  std::string reason;  ///< The driver's words, short and printable.
  friend bool operator==(const Incident&, const Incident&) = default;
};

/// How an operator has acknowledged an incident.
enum class Acknowledged : std::uint8_t {
  No,
  Removed,    ///< By removing our rule or taint.
  Changed,    ///< By changing it: it is left as it is.
  Annotated,  ///< By the annotation `device-health.io/acknowledge`.
};

/// What is remembered of one device. All but the last members is written down and survives restarts.
struct DeviceRecord {
  DeviceKey key;
  std::string identity;            ///< The physical device, if its driver names it: the value
  std::string identity_attribute;  ///< of this slice attribute. Only values of one attribute are compared.
  std::string policy;              ///< Whose rules hold: that of the last incident.
  std::deque<Incident> history;    ///< Newest last; at most ten.
  std::int64_t incidents = 0;      ///< All that are remembered as a number.
  double penalty = 0;              ///< As of `penalty_at`: one more for each incident, halved with time.
  WallTime penalty_at;

  bool open = false;                           ///< An incident is going on.
  WallTime since;                              ///< Since when the device has been in the state that opened it.
  WallTime opened_at;                          ///< When it opened.
  SignalSource source = SignalSource::Report;  ///< What says that it is bad.
  bool quarantined = false;
  Acknowledged acknowledged = Acknowledged::No;
  std::string rule_uid;       ///< Of our rule, once seen; empty: there is none.
  bool untainting = false;    ///< Our taint on its node is to be removed by us while the incident goes on.
  bool node_tainted = false;  ///< Our taint has been seen on its node in this incident.
  std::string node_uid;       ///< Of that node: another one under its name is nobody's word.
  std::string host_uid;       ///< Of its node when it was last known to be the same device; empty: not known, or its
                              ///< name is the hardware's.
  std::optional<std::string> host;  ///< The name of its pool's node, empty: the pool is no node's; none: not known.
  bool was_tainted = false;         ///< Either has been seen since the incident opened.
  bool removing = false;            ///< Our rule is to be removed by us: its absence is no word of an operator.
  std::string
      taint_key;  ///< Of the driver's own taint that a policy has named in this incident; empty: there was none.
  bool driver_tainted = false;                  ///< The driver's own taint has been seen in this incident.
  std::optional<WallTime> driver_untainted_at;  ///< When it was gone again.
  WallTime called_bad_at;                       ///< When it was last called bad anew in this incident.
  std::string reporter;  ///< Which driver or plugin began after that, in words: it has not called it bad;
  std::optional<WallTime> reporter_since;     ///< and when; none: none did.
  std::optional<WallTime> reporter_start;     ///< `Reporter::newest` of who reported on it then.
  std::optional<WallTime> called_healthy_at;  ///< When Healthy was first believed after that.
  std::string boot_id;                        ///< Of its node when it was called bad.
  std::optional<WallTime> booted_at;          ///< When another boot of the node was seen after that.
  std::optional<WallTime> quiet_since;        ///< Since when nobody reports the device bad; the hold counts from here.
  std::optional<WallTime> absent_since;       ///< Since when nobody publishes or holds it.

  std::vector<OwnerLoss> losses;  ///< Oldest first, one an owner.

  std::optional<WallTime> closed_at;
  std::string closed_because;
  std::optional<WallTime> probation_until;

  // evidence of this process alone
  bool knows_reporter = false;                 ///< Who reports on it, and since when, is seen.
  MonoTime called_bad_word = MonoTime::min();  ///< The last word of it that `called_bad_at` has taken in.
  std::optional<Moment> healthy_since;  ///< Since when a living source has called it Healthy without interruption.
  std::uint64_t closed_revision = 0;    ///< Of the incident store at its end: written down before anything is undone.
  bool removal_sent = false;            ///< A request to remove our rule may be under way.
  bool knows_rule = false;              ///< What our rule remembers has been compared.
  bool healthy_between = false;         ///< It was Healthy since the incident opened: the next opening is another one.

  [[nodiscard]] bool is_removing() const { return removing || removal_sent; }
};

/// Devices in their places.
using DeviceRecords = std::map<DeviceKey, DeviceRecord>;

/// The record of the device in this place, or null.
[[nodiscard]] const DeviceRecord* find_record(const DeviceRecords& records, const DeviceKey& key);

/// The penalty as of `now`. **Source:** exponential decay, as route flap damping (RFC 2439) uses it.
[[nodiscard]] double penalty_of(const DeviceRecord& record, const RecoverRules& rules, WallTime now);

/// A penalty that is as good as none: a device without an open incident that has no more is forgotten.
[[nodiscard]] bool is_negligible(const DeviceRecord& record, const RecoverRules& rules, WallTime now);

/// Whether a device may become quarantined: only what a taint of ours would keep pods off. Without one nobody would see
/// that the device is out of service, and its incident would never end.
enum class Quarantine : std::uint8_t { Never, AboveLimit };

/// Adds an incident that opens now: one more penalty, and quarantine above the policy's limit.
void count_incident(DeviceRecord& record, const RecoverRules& rules, WallTime now,
                    Quarantine quarantine = Quarantine::AboveLimit);

/// How long the device is held without evidence: `hold` doubled with each incident after the first, at most 7 days.
[[nodiscard]] Millis hold_of(const DeviceRecord& record, const RecoverRules& rules);

/// What was last said of it, by whoever reports on it.
[[nodiscard]] LastWord last_word_of(const DeviceRecord& record);

/// Whether a Healthy is no evidence of a repair: who reports on the device has begun anew since it was called bad.
[[nodiscard]] bool is_forgotten(const DeviceRecord& record);
/// The same in words; nothing: it is evidence.
[[nodiscard]] std::optional<std::string> why_forgotten(const DeviceRecord& record);

/// Whether and when an open incident ends.
struct Recovery {
  bool over = false;
  bool on_probation = false;        ///< It ends without evidence.
  std::string why;                  ///< The evidence, or what is waited for.
  std::optional<WallTime> at = {};  ///< When time alone would end it.
};

/// What ends the open incident of this device: the driver's taint that went away or a holder that reports Healthy, both
/// by a reporter that has called it bad itself; a new boot of the node; an operator's word; or the end of the hold.
/// Without rules (null: the policy is gone, or could not be read) only an operator's word does. A replaced device is
/// the incident store's own affair.
[[nodiscard]] Recovery recovery_of(const DeviceRecord& record, const RecoverRules* rules, const Now& now);

}  // namespace dhc
