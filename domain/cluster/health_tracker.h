#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/moment.h"
#include "base/shared_text.h"
#include "base/slim_vector.h"
#include "base/sorted_texts.h"
#include "base/wake.h"
#include "domain/contract/device_key.h"
#include "k8s-client/model/pod.h"
#include "k8s-client/model/shared_list.h"

namespace dhc {

/// What is known of one device, folded from every living source.
struct DeviceState {
  k8s::Health health = k8s::Health::Unknown;
  bool has_source = false;  ///< A running pod's status speaks of it now.
  SharedText message;       ///< The driver's words at the last Unhealthy; kept while Unknown, which comes without words
                            ///< (seen on 1.37.1).
  k8s::SharedOptional<Moment> unhealthy_since;  ///< The incident: Unhealthy -> Unknown -> Unhealthy is one.
  k8s::SharedOptional<Moment>
      called_bad_at;       ///< When it was last seen to turn Unhealthy: who reports on it since has said so.
  SharedText boot_id;      ///< Of its node when it was last seen to turn Unhealthy; empty: not known.
  bool forgotten = false;  ///< Unknown only because it reads Healthy by a reporter that began after it was called bad.
  k8s::SharedOptional<Moment> not_healthy_since;  ///< Start of the time without a Healthy.
  k8s::SharedOptional<Moment> unknown_since;      ///< Set only while Unknown, and not forgotten.
  k8s::SharedOptional<Moment> recovered_at;       ///< When the last incident ended with Healthy.
  Millis last_incident{0};                        ///< How long that incident lasted.
  bool seen_healthy =
      false;            ///< Since this process began: then a pod's old condition is no memory of the present incident.
  SortedTexts holders;  ///< Pod UIDs, sorted.
  SlimVector<SharedText> witnesses;           ///< Holders that have themselves seen this incident; sorted.
  SlimVector<SharedText> relieved;            ///< The witnesses of the incident that ended last, sorted.
  k8s::SharedOptional<MonoTime> orphaned_at;  ///< Since when nobody holds it.
  friend bool operator==(const DeviceState&, const DeviceState&) = default;

  [[nodiscard]] bool is_witness(std::string_view pod_uid) const;
};

/// A kubelet's word for a device's health that is none of the three; the device is Unknown meanwhile.
struct OtherWord {
  SharedText word;
  SharedText message;                  ///< The driver's, when it was last said.
  Moment since;                        ///< Since when it has been said; Unknown in between does not end it.
  std::optional<Moment> silent_since;  ///< Since when it is said no more; none: it is said now.
  std::vector<SharedText> witnesses;   ///< UIDs of holders of which it has been said, sorted.
  friend bool operator==(const OtherWord&, const OtherWord&) = default;
};

/// How long Unknown may last between two Unhealthy for them to be one: longer than any restart of a driver, plugin or
/// kubelet. An incident that has opened is remembered elsewhere, and goes on.
inline constexpr Millis kLongestUnknown = std::chrono::minutes(15);

/// What all living sources together say at this moment.
struct Evidence {
  std::optional<k8s::Health> health;      ///< Unhealthy before Unknown before Healthy; none: no living source.
  std::optional<bool> says_healthy = {};  ///< All living reports, believed or not; none: nobody reports.
  bool forgotten = false;                 ///< As of the device: `health` is then Unknown.
  SharedText message = {};
  std::optional<WallTime> remembered = {};  ///< Since when, by our own condition on a holder.
  std::vector<SharedText> healthy_by = {};  ///< UIDs of the holders that say Healthy, believed or not.
  SharedText boot_id = {};                  ///< Of the device's node; empty: not known.
  /// UIDs of the holders that say Unhealthy, that our condition says have said so, that nobody reports on while
  /// another holder says so now, or that came to the device when its reporter had forgotten what it said of it. An
  /// incident is of no other pod's.
  std::vector<SharedText> witnesses = {};
  /// A word that is none of the three, and the UIDs of the holders of which it is said, sorted; the first of several.
  SharedText other_word = {};
  SharedText other_message = {};
  std::vector<SharedText> other_witnesses = {};
};

/// Folds observations of devices over time. Part of the World.
class HealthTracker {
 public:
  /// A pod begins or ceases to hold a device.
  void add_holder(const DeviceKey& key, const SharedText& pod_uid);
  void remove_holder(const DeviceKey& key, const SharedText& pod_uid, const Now& now);

  /// Takes in what the living sources say now. Safe to repeat.
  void observe(const DeviceKey& key, const Evidence& evidence, const Now& now);

  /// The device's reporter is known to call it bad itself, in this boot of its node.
  void note_called_bad(const DeviceKey& key, const Moment& word, const SharedText& boot_id);

  /// Another physical device sits in the place: nothing was said of it yet, also by pods' old conditions.
  void begin_anew(const DeviceKey& key);

  /// Forgets devices that nobody has held for an hour, and says which.
  [[nodiscard]] std::vector<DeviceKey> forget(const Now& now);

  /// Forgets devices that nobody holds and `is_other` names: others may sit in their places.
  void forget_unheld(const std::function<bool(const DeviceKey&)>& is_other);

  [[nodiscard]] const DeviceState* find(const DeviceKey& key) const;
  /// Null: no word but the three has been said of the device since it was last Healthy.
  [[nodiscard]] const OtherWord* other_word_of(const DeviceKey& key) const;
  /// Devices of which such a word has been said, sorted.
  [[nodiscard]] const std::map<DeviceKey, OtherWord>& other_words() const { return other_words_; }
  /// Devices that are not Healthy, sorted.
  [[nodiscard]] const std::set<DeviceKey>& not_healthy() const { return not_healthy_; }
  /// Devices whose incident ended within the last five minutes, sorted.
  [[nodiscard]] const std::set<DeviceKey>& recovered() const { return recovered_; }
  /// How many devices of a DRA driver are held, or were and are not Healthy.
  [[nodiscard]] std::int64_t count_of(std::string_view driver) const;
  [[nodiscard]] const std::unordered_map<DeviceKey, DeviceState, DeviceKeyHash>& devices() const { return devices_; }

 private:
  void count(const DeviceKey& key, std::int64_t change);
  [[nodiscard]] std::vector<DeviceKey> forget_orphans(const Now& now);
  void note_other_word(const DeviceKey& key, const DeviceState& device, const Evidence& evidence, const Now& now);

  std::unordered_map<DeviceKey, DeviceState, DeviceKeyHash> devices_;
  std::set<DeviceKey> not_healthy_;
  std::set<DeviceKey> recovered_;
  std::map<DeviceKey, OtherWord> other_words_;
  std::map<SharedText, std::int64_t, std::less<>> dra_;  // devices by driver
  Wake orphans_due_;                                     // before then no device is forgotten
};

}  // namespace dhc
