#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/moment.h"
#include "domain/contract/device_key.h"
#include "k8s-client/model/object.h"
#include "k8s-client/protocol/delivery.h"

namespace dhc {

/// One device as its driver publishes it.
struct PublishedDevice {
  std::vector<k8s::Taint> taints;
  k8s::StringMap attributes;
  std::string card;  ///< The physical card in its pool: what its partitions have in common.
  friend bool operator==(const PublishedDevice&, const PublishedDevice&) = default;
};

/// A slice attribute that names one physical device.
struct DeviceIdentity {
  std::string attribute;
  std::string value;
  friend bool operator==(const DeviceIdentity&, const DeviceIdentity&) = default;
};

[[nodiscard]] inline DeviceIdentity no_identity() { return {.attribute = {}, .value = {}}; }

/// Short hashes of the names of cards, sorted; of many cards a few, always the same ones.
using CardMarks = std::vector<std::string>;

/// A card as it is remembered in its place.
struct KnownCard {
  DeviceIdentity identity;  ///< Empty: its driver did not name it.
  CardMarks beside = {};    ///< Of the other cards of its pool then; empty: there was none, or they had no names.
  std::string wanted = {};  ///< The attribute that its policy asks for; empty: a well-known one.
  friend bool operator==(const KnownCard&, const KnownCard&) = default;
};

/// The devices of one pool, from the slices of its highest generation that its own node publishes.
struct Pool {
  std::string node;         ///< Empty for network-attached devices, and while nobody knows whose the pool is.
  bool is_settled = false;  ///< Its node is known, or that it has none.
  bool contested = false;   ///< Several nodes claim it and nothing says whose it is: none of them is believed.
  bool published = true;  ///< False: its slices are gone, the devices are remembered (a driver's restart removes them:
                          ///< seen on 1.37.1).
  std::map<std::string, PublishedDevice> devices = {};
  std::map<std::string, PublishedDevice> awaited = {};     ///< Not published anew yet: the generation is not whole.
  bool is_whole = true;                                    ///< All slices of its generation are there.
  std::map<std::string, PublishedDevice> last_whole = {};  ///< While they are not: the devices when they last were.
  /// The devices of each card that is more than one, those that are awaited among them.
  std::map<std::string, std::set<std::string>, std::less<>> partitions = {};
  /// Values of well-known attributes that several cards carry: they name none of them.
  std::set<std::string, std::less<>> shared_identities = {};
  std::int64_t cards = 0;  ///< Physical ones; while a generation is not whole, those of the older ones too.

  [[nodiscard]] bool is_network_attached() const { return is_settled && node.empty(); }
};

/// What is remembered of whose a pool was.
struct PoolHome {
  std::optional<std::string> node;  ///< Empty: it was no node's; none: its name is not known.
  std::string node_uid;             ///< Of one that had this UID; empty: not known.
};

/// What DRA drivers publish, and the taint rules over it. Changed only by slices and rules.
class Inventory {
 public:
  /// UIDs of rules, by a device; each sorted.
  using RuleIndex = std::map<DeviceKey, std::set<std::string>>;

  using PoolName = std::pair<std::string, std::string>;  ///< Driver and pool.
  void upsert(k8s::ResourceSlice slice);
  void remove_slice(std::string_view uid);
  /// Every slice anew, but for those that are there and could not be read: what is known of them stands.
  void replace_slices(std::vector<k8s::ResourceSlice> slices, const k8s::UnreadableNames& unreadable = {});
  void upsert(k8s::DeviceTaintRule rule);
  void remove_rule(std::string_view uid);
  /// Every rule anew, but for those that are there and could not be read. `api_version` is empty where the server has
  /// no such kind: then nobody has removed anything.
  void replace_rules(std::vector<k8s::DeviceTaintRule> rules, std::string api_version, bool went_back = false,
                     const k8s::UnreadableNames& unreadable = {});
  /// Whether a node of this name exists: a pool of its name is its own.
  void note_node(const std::string& name, bool exists);
  /// Draws what the nodes that exist say of pools whose slices have not changed: those that are named after one, and
  /// remembered ones whose node is gone, which are dropped unless they are `kept`.
  void settle_by_nodes(const std::set<PoolName>& kept);
  /// The pool is this node's, and its slices alone count, unless it is named after the node that it has.
  void give_home(const PoolName& name, const std::string& node);
  /// The pool is no node's until its slices say whose; without slices nothing is known of it any more.
  void take_home(const PoolName& name);
  /// Pools of which some slices count for nothing.
  [[nodiscard]] const std::set<PoolName>& disputed_pools() const { return disputed_; }
  /// The nodes that publish slices of the pool (empty: a slice that names none).
  [[nodiscard]] std::set<std::string> claimants_of(const PoolName& name) const;
  /// Pools that have been looked at since the last call.
  [[nodiscard]] std::set<PoolName> take_changed() { return std::exchange(changed_, {}); }
  /// Devices in whose places another physical one has been published since the last call, by the attribute that says
  /// so.
  [[nodiscard]] std::map<DeviceKey, std::string> take_replaced() { return std::exchange(replaced_, {}); }
  /// Pools that have begun anew since the last call: what was seen of them before is another node's.
  [[nodiscard]] std::set<PoolName> take_begun_anew() { return std::exchange(begun_anew_, {}); }

  /// Which taint keeps the scheduler off the device (NoSchedule or NoExecute), in words; none: it may hand the device
  /// out.
  /// **Source:** KEP-5055; only slices of the pool's highest generation count.
  /// Neither a rule named `ignored` counts, nor a taint that is tolerated.
  [[nodiscard]] std::optional<std::string> unschedulable_because(
      const DeviceKey& key, std::string_view ignored = {}, const std::vector<k8s::Toleration>& tolerations = {}) const;

  /// The rule of this name, or null.
  [[nodiscard]] const k8s::DeviceTaintRule* rule_named(std::string_view name) const;
  /// The rule that bears our name for this device, as we name it or as 0.1.0 did; or null.
  [[nodiscard]] const k8s::DeviceTaintRule* rule_named_for(const DeviceKey& key) const;
  /// Its name, or the one that a new rule gets.
  [[nodiscard]] std::string rule_name_for(const DeviceKey& key) const;
  [[nodiscard]] const std::map<std::string, k8s::DeviceTaintRule, std::less<>>& rules() const { return rules_; }
  /// The rules that bear a name of ours, by the one device that they select; sorted.
  [[nodiscard]] const RuleIndex& named_rules() const { return named_rules_; }
  [[nodiscard]] std::vector<const k8s::DeviceTaintRule*> named_rules_for(const DeviceKey& key) const {
    return rules_in(named_rules_, key);
  }
  /// Such as `resource.k8s.io/v1`; empty: the server has no DeviceTaintRules.
  [[nodiscard]] const std::string& rules_api_version() const { return rules_api_version_; }
  /// Names of the rules that went away since the last call, of those that were as we make them: of others nobody
  /// concludes anything.
  [[nodiscard]] std::set<std::string> take_removed_rules() { return std::exchange(removed_rules_, {}); }
  /// Whether the rule went away because the server's data went back, and has not been seen again.
  [[nodiscard]] bool is_lost_rule(const std::string& name) const { return lost_rules_.contains(name); }

  /// The driver and pool of the slice with this UID, or nothing.
  [[nodiscard]] std::optional<std::pair<std::string, std::string>> pool_of_slice(std::string_view uid) const;
  /// The slice with this UID, or null.
  [[nodiscard]] const k8s::ResourceSlice* slice_with(std::string_view uid) const;
  /// The slice that publishes the device now, or null.
  [[nodiscard]] const k8s::ResourceSlice* slice_of(const DeviceKey& key) const;

  /// The device as its driver publishes it now; null: not published, or remembered only.
  [[nodiscard]] const PublishedDevice* published(const DeviceKey& key) const;
  /// Whether several nodes claim the device's pool and nothing says whose it is.
  [[nodiscard]] bool is_contested(const DeviceKey& key) const;
  /// Whether the driver's own taint keeps the scheduler off; none: the device is not published now.
  [[nodiscard]] std::optional<bool> tainted_by_driver(const DeviceKey& key) const;
  /// Whether the driver publishes the device with a taint of this key, whatever its value and effect.
  [[nodiscard]] bool has_taint(const DeviceKey& device, std::string_view taint_key) const;
  /// What names the physical device: `attribute`, or a well-known one (`parentUUID`, `uuid`, `serialNumber`, `serial`,
  /// in any domain) if that is empty. Nothing if there is none or the device is not published now. A partition is named
  /// by its card and its own name in the pool, so that one that is made again is the same.
  [[nodiscard]] std::optional<DeviceIdentity> identity_of(const DeviceKey& key, std::string_view attribute) const;
  /// The same by the attribute that the card is known by, or by another where its policy asks for that, or where it is
  /// known by a partition's own name, which an earlier version wrote.
  [[nodiscard]] std::optional<DeviceIdentity> identity_now(const DeviceKey& key, const KnownCard& known) const;
  /// Whether another physical device sits in the place than this one. Not where every card of the pool, of two or more,
  /// has got another name: some drivers make the names at each start. Nor as long as the generation is not whole, or by
  /// another attribute than it was known by.
  [[nodiscard]] bool is_other_card(const DeviceKey& key, const KnownCard& known) const;
  /// Of the other cards of its pool, by this attribute where they have it; none: the generation is not whole.
  [[nodiscard]] std::optional<CardMarks> marks_beside(const DeviceKey& key, std::string_view attribute) const;
  /// The node of the device's pool, also while it is not published; empty: unknown, or network-attached.
  [[nodiscard]] std::string node_of(const DeviceKey& key) const;

  /// The physical card in the device's pool, also while it is not published: partitions of one card share it, as the
  /// replicas of a plugin's device do. The device's own name if nothing tells. Points into the key or the inventory.
  [[nodiscard]] std::string_view card_of(const DeviceKey& key) const;

  /// Our rules that were made because this device is bad and another is on its card.
  [[nodiscard]] std::vector<const k8s::DeviceTaintRule*> rules_for_card_of(const DeviceKey& key) const {
    return rules_in(card_rules_, key);
  }
  /// The devices for whose cards there are such rules, sorted.
  [[nodiscard]] const RuleIndex& card_rules() const { return card_rules_; }

  /// The other devices of its physical card, sorted. None of a card of more than 64: what has so many is a node's or a
  /// network's counters rather than one piece of hardware; a GPU has about thirty places for MIG devices.
  [[nodiscard]] std::vector<DeviceKey> others_on_card(const DeviceKey& key) const;

  /// Pools by (driver, pool name).
  [[nodiscard]] const std::map<PoolName, Pool>& pools() const { return pools_; }

 private:
  [[nodiscard]] std::vector<const k8s::DeviceTaintRule*> rules_in(const RuleIndex& index, const DeviceKey& key) const;
  [[nodiscard]] std::optional<std::string> home_of(const std::string& name, const std::set<std::string>& claimants,
                                                   const Pool& pool) const;
  void settle_home(const PoolName& name, Pool& pool);
  [[nodiscard]] std::vector<const k8s::ResourceSlice*> slices_that_count(const PoolName& name, const Pool& pool) const;
  [[nodiscard]] std::int64_t cards_listed(const PoolName& name, const Pool& pool,
                                          const std::vector<const k8s::ResourceSlice*>& newest) const;
  void rebuild(const std::string& driver, const std::string& pool);
  void note_replaced(const PoolName& name, const Pool& before, const Pool& after);
  void begin_anew(const PoolName& name, Pool fresh);
  void index(const k8s::DeviceTaintRule& rule, bool add);

  std::map<std::string, k8s::ResourceSlice, std::less<>> slices_;   // by UID
  std::map<std::string, k8s::DeviceTaintRule, std::less<>> rules_;  // by UID
  std::map<std::string, std::string, std::less<>> rule_names_;      // name -> UID
  RuleIndex exact_rules_;                                           // UIDs of rules that select one device
  RuleIndex card_rules_;                                            // UIDs, by the bad device for whose card they are
  RuleIndex named_rules_;                                           // UIDs of those that bear a name of ours
  std::set<std::string> wide_rules_;                                // UIDs of the others
  std::set<std::string> removed_rules_;
  std::set<std::string> lost_rules_;  // by name
  std::string rules_api_version_ = "resource.k8s.io/v1";
  std::map<PoolName, std::set<std::string>> slices_of_pool_;
  std::map<PoolName, Pool> pools_;
  std::set<std::string, std::less<>> nodes_;  // that exist
  std::set<PoolName> disputed_;
  std::set<PoolName> changed_;
  std::set<PoolName> begun_anew_;
  std::map<DeviceKey, std::string> replaced_;
};

}  // namespace dhc
