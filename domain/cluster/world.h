#pragma once
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/shared_text.h"
#include "base/sorted_texts.h"
#include "base/string_index.h"
#include "base/text_set.h"
#include "domain/cluster/ailing_pod.h"
#include "domain/cluster/card_counts.h"
#include "domain/cluster/driver_taints.h"
#include "domain/cluster/ending_order.h"
#include "domain/cluster/health_tracker.h"
#include "domain/cluster/held_cards.h"
#include "domain/cluster/inventory.h"
#include "domain/cluster/lost_pods.h"
#include "domain/cluster/lost_replacements.h"
#include "domain/cluster/node_books.h"
#include "domain/cluster/noted_jobs.h"
#include "domain/cluster/owner_sight.h"
#include "domain/cluster/owner_tree.h"
#include "domain/cluster/recreations.h"
#include "domain/cluster/reporters.h"
#include "domain/cluster/resolution.h"
#include "domain/cluster/room.h"
#include "domain/cluster/speakers.h"
#include "domain/cluster/touched.h"
#include "domain/cluster/views.h"
#include "domain/contract/condition_text.h"
#include "domain/contract/job_record.h"
#include "k8s-client/protocol/delivery.h"

namespace dhc {

/// An incident that has not ended, as it is remembered.
struct OpenIncident {
  WallTime since;
  std::string host_uid;      ///< Of the device's node then; empty: unknown.
  LastWord word;             ///< What was last said of the device.
  std::string boot_id;       ///< Of its node then; empty: unknown.
  bool forgotten = false;    ///< Its reporter or node is known to have begun anew since.
  bool informed = false;     ///< A pod was seen that its plugin asks: without it every device reads Healthy.
  bool vouched_for = false;  ///< An operator has acknowledged it: any Healthy will do.
  bool reported = true;      ///< The kubelet has called the device bad in it.
  k8s::Taint taint = {};     ///< The driver's that a policy has named in it; without a key: there was none.
  bool taint_seen = false;   ///< The driver has published the device ever since that taint was last seen.
  std::string said;          ///< The driver's words that opened it.
  std::string policy;        ///< Whose rules hold in it; empty: not known.
  KnownCard card = {};       ///< The physical device.
  friend bool operator==(const OpenIncident&, const OpenIncident&) = default;
};

/// A driver's taint in an open incident that the driver has not taken back by its own word.
struct KeptTaint {
  k8s::Taint taint;        ///< Without an effect: only its key is known.
  WallTime since;          ///< Of the incident.
  WallTime last_word;      ///< When the device was last called bad anew.
  std::string said;        ///< The driver's words that opened the incident.
  std::string policy;      ///< Whose rules hold in it; empty: not known.
  bool forgotten = false;  ///< The driver has begun anew, or has come back without a word.
};

/// A condition of a claim's device as it was last seen.
struct ConditionSight {
  std::string status;
  std::optional<WallTime> transition;  ///< As the condition gives it.
  /// The later of the time that it gave and our first sight of this status; a time ahead of our clock counts as now,
  /// once.
  Moment since;
  bool from_the_start = true;  ///< It stood in the claim's first version that we saw: it may be older than we are.
};

/// One pod that can hold devices, and those it holds.
struct PodRecord {
  k8s::Pod pod;
  SlimVector<HeldDevice> held_devices;  ///< Kept while the pod lives: a template claim is gone within a second of the
                                        ///< pod's end (seen on 1.37.1).
  SlimVector<Heard> heard;              ///< What the speakers have counted of it.
  bool was_live = false;                ///< A kubelet ran it when we last drew conclusions.
  bool was_lost = false;                ///< It has been noted as lost to its Job.
  bool readable = true;                 ///< False: its last version could not be read, nothing may be decided on it.
  k8s::SharedOptional<ConditionWords> told;  ///< What our condition on it says, if it is True.
  SlimVector<ReportDoubt> doubts;            ///< What the kubelet says of it that is laid on no device.

  /// What our condition says of the device; null: nothing.
  [[nodiscard]] const ConditionWords::Word* word_of(std::string_view device) const {
    return told ? told->find(device) : nullptr;
  }
};

/// What this process has seen of one credit.
struct CreditSeen {
  MonoTime at;                               ///< Since when it has been on the Job, with its limit.
  std::int64_t counted = 0;                  ///< Failures that the Job had counted then.
  bool suspended = false;                    ///< The Job has been suspended since.
  std::optional<MonoTime> pod_went_at = {};  ///< The pod was there, and has gone since then.
  bool went_unevicted = false;               ///< While it ran, and nobody had evicted it.
};

/// A credit that another client took out of the Job's annotation: an acknowledgement, not to be made again.
struct RemovedCredit {
  std::int64_t limit = 0;  ///< That it had produced.
  MonoTime seen_at;        ///< Since when it had been seen.
};

/// That the Job's limit is, or was, lower than its credits say. Who does that every minute has done one thing.
struct Reverted {
  WallTime since;    ///< The newest credit's time, as it was when this was first seen.
  MonoTime seen_at;  ///< The last time.
};

/// One Job, and what has been seen of it.
struct JobRecord {
  k8s::Job job;
  RetryCredits credits;                           ///< As the Job's annotation says; empty if there is none.
  std::vector<JobLoss> losses;                    ///< As the Job's annotation says.
  bool credits_readable = true;                   ///< False: the annotation is not what we wrote.
  std::map<std::string, CreditSeen> credit_seen;  ///< By pod UID.
  std::map<std::string, RemovedCredit> removed;   ///< By pod UID, of pods that are still remembered.
  std::optional<Reverted> reverted;               ///< None: another client has not taken a credit back lately.
};

/// A Job's pod that has ended, or any pod that a kubelet rejected. Kept in memory for an hour, the newest few thousand:
/// the dead pod itself will never say what its device was like (seen on 1.37.1). To the next process only `AilingPod`
/// says it.
struct PodEnding {
  struct Device {
    DeviceKey key;
    bool was_unhealthy = false;      ///< When the pod ended.
    std::string message;             ///< The driver's words then.
    std::vector<k8s::Taint> taints;  ///< The driver's own, then.
    std::string other_word;          ///< What the kubelet said of it then that is none of its three words.
    std::string other_message;
  };
  k8s::Pod pod;  ///< As it ended.
  std::vector<Device> devices;
  Moment at;
  std::string told;  ///< What the Job's annotation was last seen to say of it; empty: nothing.
  /// Of a rejected pod: by what the node said it had what the pod asked for, so that its kubelet contradicts it.
  bool node_had_room = false;
};

/// The last known state of the cluster, changed only by deliveries; `refresh` draws the conclusions. Copies nothing
/// out.
class World {
 public:
  /// True if something that is kept has changed by it, or a watch has spoken again for which something waits: of a
  /// real cluster's updates most change nothing but a version.
  bool apply(k8s::Delivery delivery, const Now& now);

  /// Devices with an open incident, and since when they have been bad: a report about a device that the tracker has
  /// forgotten, also by a restart, continues its incident, and what ends it must last.
  void note_incidents(std::map<DeviceKey, OpenIncident> incidents);
  /// The same of what was read late: that it knows nothing of an incident which was open here has ended none, and makes
  /// nobody's Healthy believed.
  void recall_incidents(std::map<DeviceKey, OpenIncident> incidents);
  /// The same of one device; none: it has no open incident.
  void note_incident(const DeviceKey& key, std::optional<OpenIncident> incident);

  /// Pools with a device that is kept out of service: they pass to no other node, also while their own is gone.
  void note_guarded_pools(std::set<Inventory::PoolName> pools);

  /// The nodes that pools are known to have had, also by a process before this one.
  void note_homes(std::map<Inventory::PoolName, PoolHome> homes) { homes_ = std::move(homes); }

  /// The Jobs' pods that a process before us has left word of: of those that have failed since the ends are known, and
  /// of what devices. Replaces what was noted before.
  void note_ailing(std::vector<AilingPod> pods);

  /// Whoever calls the device healthy is believed until it is called bad anew.
  void believe(const DeviceKey& key);

  /// Resolves what has changed since the last call and feeds the tracker: once a turn, after the deliveries, so that
  /// their order within the turn cannot matter.
  void refresh(const Now& now);

  /// True once every kind but ConfigMap has had its first Snapshot.
  [[nodiscard]] bool synced() const;

  /// How old what is known here is.
  [[nodiscard]] const Views& views() const { return views_; }

  /// What has changed since the last call.
  [[nodiscard]] Touched take_touched() { return std::exchange(touched_, {}); }

  /// How far the API server's clock is ahead of ours.
  void note_server_ahead(Millis ahead) {
    if (server_ahead_ != ahead) touched_.everything();
    server_ahead_ = ahead;
  }
  /// A time that the API server has written (creationTimestamp, deletionTimestamp), by our clock.
  [[nodiscard]] WallTime ours(WallTime theirs) const { return theirs - server_ahead_; }

  /// When `refresh` would conclude something new by time alone.
  [[nodiscard]] std::optional<MonoTime> next_change_at(const Now& now) const;

  [[nodiscard]] const PodRecord* pod(std::string_view uid) const;
  [[nodiscard]] const StringIndex<PodRecord>& pods() const { return pods_; }
  /// UIDs of the pods with devices on a node, sorted.
  [[nodiscard]] const SortedTexts& pods_on(std::string_view node) const;
  /// UIDs of pods with a deletionTimestamp, sorted.
  [[nodiscard]] const TextSet& terminating() const { return terminating_; }
  /// UIDs of pods that no node has yet, sorted.
  [[nodiscard]] const TextSet& unbound() const { return unbound_; }
  /// UIDs of pods with our condition, whatever its status, sorted.
  [[nodiscard]] const TextSet& with_condition() const { return with_condition_; }
  /// UIDs of the pods with the annotation of a notice, whoever wrote it.
  [[nodiscard]] const TextSet& with_notice() const { return with_notice_; }
  /// UIDs of pods with reports that are laid on no device, sorted.
  [[nodiscard]] const TextSet& with_doubts() const { return with_doubts_; }
  [[nodiscard]] const k8s::ResourceClaim* claim(std::string_view key) const;
  /// As above; null also for one that has been deleted and is remembered for the pods that still name it.
  [[nodiscard]] const k8s::ResourceClaim* standing_claim(std::string_view key) const;
  /// Null: no such condition stands on the claim's device.
  [[nodiscard]] const ConditionSight* claim_condition(std::string_view claim, const DeviceKey& key,
                                                      std::string_view type) const;
  [[nodiscard]] std::size_t claim_count() const { return claims_.size(); }
  /// UIDs of the pods of a gang, by its key, sorted.
  [[nodiscard]] const SortedTexts& members_of(std::string_view gang) const;
  /// Its pods that were lost lately.
  [[nodiscard]] const std::map<SharedText, LostPod, std::less<>>& lost_pods_of(const k8s::Job& job) const;
  /// Whose replacements end before they run, because of nodes with our taint.
  [[nodiscard]] const LostReplacements& lost_replacements() const { return lost_replacements_; }
  /// Whether the pod is of a PodGroup that is disrupted only as a whole; false also for one that is not known.
  [[nodiscard]] bool is_indivisible(const k8s::Pod& pod) const;
  /// UIDs of the pods that name the same PodGroup as this one, itself included, sorted.
  [[nodiscard]] const SortedTexts& pod_group_of(const k8s::Pod& pod) const;
  /// The PodDisruptionBudgets of a namespace, by name.
  [[nodiscard]] std::vector<const k8s::DisruptionBudget*> budgets_in(std::string_view ns) const;
  /// UIDs of the pods whose spec names the claim, sorted.
  [[nodiscard]] const SortedTexts& users_of(std::string_view claim) const;
  /// Claims on which a driver has written device conditions (KEP-4817), sorted by key.
  [[nodiscard]] const TextSet& claims_with_conditions() const { return claims_with_conditions_; }
  /// The driver whose devices claims of this DeviceClass were given; empty: no claim shows it.
  [[nodiscard]] std::string driver_of_class(std::string_view device_class) const;
  /// True if some claim holds the device now.
  [[nodiscard]] bool is_allocated(const DeviceKey& key) const { return allocated_.contains(key); }
  /// True if the claim with this UID exists and is allocated.
  [[nodiscard]] bool is_claim_allocated(std::string_view uid) const { return allocated_claims_.contains(uid); }
  [[nodiscard]] const k8s::Node* node(std::string_view name) const;
  /// The node of a device; empty: unknown, or network-attached.
  [[nodiscard]] std::string node_of(const DeviceKey& key) const { return inventory_.node_of(key); }
  /// Where something may be free.
  [[nodiscard]] const Room& room() const { return room_; }
  /// The node under a device; null: network-attached, or not known.
  [[nodiscard]] const k8s::Node* node_under(const DeviceKey& key) const { return node(inventory_.node_of(key)); }
  /// Whether what is said of a pod's hold on the device may be about another card, which sat in its place until a few
  /// minutes ago.
  [[nodiscard]] bool may_be_of_card_before(const DeviceKey& key, const HeldDevice& held_device) const;
  /// The physical card that the device is a replica or a partition of.
  [[nodiscard]] DeviceKey card_of(DeviceKey key) const {
    key.device = std::string(inventory_.card_of(key));
    return key;
  }
  /// UIDs of the pods that hold the device, or another replica of its card that a device plugin offers; sorted.
  [[nodiscard]] std::vector<std::string> holders_of_card(const DeviceKey& key) const;
  [[nodiscard]] const std::map<std::string, k8s::Node, std::less<>>& nodes() const { return nodes_; }
  [[nodiscard]] const std::map<std::string, NodeBook, std::less<>>& books() const { return books_; }
  /// What a node says of one device-plugin resource; null: it lists none, and no pod there holds one.
  [[nodiscard]] const ResourceBook* resource_book(std::string_view node, std::string_view resource) const;
  /// Who reports on the device, of several the one that began last; none: not known, as where its driver runs in no
  /// pod.
  [[nodiscard]] std::optional<Reporter> reporter_of(const DeviceKey& key) const;
  /// Whether a pod is seen that its plugin asks for its health, and without which that calls it healthy.
  [[nodiscard]] bool has_informer(const DeviceKey& key) const;
  /// The roll-out of the device's driver or plugin on its node, over or not, by our clock; none: its pod is not known,
  /// or has come with the node, or with its DaemonSet.
  [[nodiscard]] std::optional<Rollout> rollout_of(const DeviceKey& key) const;
  /// The releases of drivers or plugins that may serve the device on its node, by our clock.
  [[nodiscard]] std::vector<ServingRelease> releases_of(const DeviceKey& key) const;
  /// The DaemonSet of a driver or plugin; none: none of its pods is known.
  [[nodiscard]] std::optional<k8s::OwnerRef> daemon_set(std::string_view ns, std::string_view name) const {
    return reporters_.daemon_set(ns, name);
  }
  /// When the first pod of its revision was made that is still there, by the API server's clock.
  [[nodiscard]] WallTime revision_began(const Rollout& rollout) const {
    return reporters_.revision_began(rollout.owner.uid, rollout.revision).value_or(rollout.made);
  }
  /// The physical cards of drivers and device-plugin resources.
  [[nodiscard]] const CardCounts& cards() const { return cards_; }
  /// Nodes with an annotation of an operator for us, sorted.
  [[nodiscard]] const TextSet& annotated_nodes() const { return annotated_nodes_; }
  /// Names of the nodes that have conditions of ours.
  [[nodiscard]] const TextSet& nodes_with_conditions() const { return nodes_with_conditions_; }
  /// Nodes on which a plugin is silent or a device has vanished, however short.
  [[nodiscard]] const TextSet& suspicious_nodes() const { return suspicious_; }
  [[nodiscard]] const k8s::Meta* namespace_of(std::string_view name) const;
  /// A Job, ReplicaSet or StatefulSet of this namespace.
  [[nodiscard]] const k8s::Meta* owner(std::string_view ns, std::string_view uid) const;
  /// Owners of every other kind, as far as they have been read.
  [[nodiscard]] const OwnerSights& owner_sights() const { return owner_sights_; }
  [[nodiscard]] OwnerSights& owner_sights() { return owner_sights_; }
  [[nodiscard]] const JobRecord* job(std::string_view uid) const;
  /// As above; null also for a Job of another namespace.
  [[nodiscard]] const JobRecord* job(std::string_view ns, std::string_view uid) const;
  /// The Job that manages the object; null: none that is known, in its namespace.
  [[nodiscard]] const JobRecord* job_of(const k8s::Meta& meta) const;
  /// The Jobs that carry an annotation of ours.
  [[nodiscard]] const NotedJobs& noted_jobs() const { return noted_jobs_; }
  /// Whether a replacement of the Job is there, in its namespace.
  [[nodiscard]] bool is_recreated(const k8s::Job& job) const { return recreations_.contains(job.meta.identity()); }
  /// UIDs of a Job's pods that can hold devices, sorted.
  [[nodiscard]] const SortedTexts& pods_of_job(const k8s::Job& job) const;
  /// UIDs of the pods that can hold devices and whose controller has this identity: those that call it a Job, and the
  /// others; each sorted.
  [[nodiscard]] std::array<const SortedTexts*, 2> pods_owned_by(std::string_view identity) const;
  /// Which controllers those and the Jobs, ReplicaSets and StatefulSets are under.
  [[nodiscard]] const OwnerTree& owner_tree() const { return owner_tree_; }
  /// Pods that ended or were rejected within the last hour, by UID.
  [[nodiscard]] const std::map<std::string, PodEnding, std::less<>>& endings() const { return endings_; }
  /// Pods that were noted, run, and have neither failed nor had their devices called healthy, by UID.
  [[nodiscard]] const std::map<std::string, AilingPod, std::less<>>& noted_ailing() const { return ailing_; }
  [[nodiscard]] const HealthTracker& tracker() const { return tracker_; }
  /// The physical devices that pods hold.
  [[nodiscard]] const HeldCards& held_cards() const { return held_cards_; }
  [[nodiscard]] const Inventory& inventory() const { return inventory_; }
  /// What the drivers say of their devices by taints in their slices.
  [[nodiscard]] const DriverTaints& driver_taints() const { return driver_taints_; }
  /// Pools of which some slices count for nothing, and since when.
  [[nodiscard]] const std::map<Inventory::PoolName, WallTime>& disputed_pools() const { return disputed_since_; }
  /// None: no driver's taint is part of the device's open incident, or its driver has taken it back.
  [[nodiscard]] std::optional<KeptTaint> kept_taint(const DeviceKey& key) const;
  /// Devices with such a taint in their open incident, sorted.
  [[nodiscard]] std::vector<DeviceKey> tainted_incidents() const;
  [[nodiscard]] const Speakers& speakers() const { return speakers_; }
  /// Names of the DeviceTaintRules that went away since the last call.
  [[nodiscard]] std::set<std::string> take_removed_rules() { return inventory_.take_removed_rules(); }
  /// Nodes from which our taint went away since the last call; not those that are gone themselves.
  [[nodiscard]] std::set<std::string> take_removed_taints() { return std::exchange(removed_taints_, {}); }
  /// Whether the rule or the node's taint of ours went away because the server's data went back, until it is seen
  /// again: nobody has said anything by that.
  [[nodiscard]] bool is_lost_rule(const std::string& name) const { return inventory_.is_lost_rule(name); }
  [[nodiscard]] bool is_lost_taint(std::string_view node) const { return lost_taints_.contains(node); }

 private:
  struct ClaimRecord {
    k8s::ResourceClaim claim;
    bool gone = false;  ///< Deleted, kept for the pods that still name it.
    std::map<std::pair<DeviceKey, std::string>, ConditionSight> sights = {};  ///< By device and type.
  };

  /// An Unhealthy that a reporter's start has not ended, and since when that has been seen.
  struct Standing {
    WallTime start;
    MonoTime since;
  };

  void touch(const k8s::Pod& pod);
  void touch(const k8s::ResourceClaim& claim);
  void touch_rule(const k8s::DeviceTaintRule& rule);
  bool apply_one(k8s::Snapshot&& snapshot, const Now& now);
  bool apply_one(k8s::Upsert&& upsert, const Now& now);
  bool apply_one(k8s::Remove&& remove, const Now& now);
  bool apply_one(k8s::Unreadable&& unreadable, const Now& now);
  void doubt_pods(const k8s::UnreadableNames& unreadable);
  bool put(k8s::Pod&& pod, const Now& now, bool is_news);
  void note_lost_replacement(const k8s::Pod& pod, const Now& now);
  [[nodiscard]] const k8s::Node* only_tainted_place(const k8s::Pod& pod) const;
  bool put(k8s::DisruptionBudget&& budget);
  bool put(k8s::PodGroup&& group);
  void drop_pod_group(const std::string& key);
  void drop_budget(const k8s::Remove& remove);
  void index_pod(const PodRecord& record);
  void index_gang(const k8s::Pod& pod, bool add);
  bool put(k8s::ResourceClaim&& claim, const Now& now);
  static void look_at_conditions(ClaimRecord& record, bool is_first, const Now& now);
  bool put(k8s::Job&& job, const Now& now);
  void drop_job(const SharedText& uid);
  bool put(k8s::Owner&& owner);
  void drop_owner(const std::string& uid);
  void index_owned_pod(const k8s::Pod& pod, bool add);
  void note_ending(const PodRecord& record, const Now& now);
  void forget_endings(const Now& now);
  void follow_ailing(const Now& now);
  void recall_ending(const PodRecord& record, const AilingPod& ailing, const Now& now);
  void add_ailing(const AilingPod& ailing, PodEnding& ending) const;
  /// What the Job's annotation says of the pod.
  [[nodiscard]] std::string told_of(const k8s::Pod& pod) const;
  void keep_ending(PodEnding ending);
  [[nodiscard]] bool had_room(const k8s::Pod& pod) const;
  void note_admitted(const k8s::Pod& pod);
  void note_departure(const PodRecord& record, const Now& now);
  void note_failure(PodRecord& record, const Now& now);
  void note_failures_anew(const Now& now);
  [[nodiscard]] bool counts_as_it_goes(const k8s::Pod& pod) const;
  void look_again_at_terminating_pods(const k8s::Job& job);
  [[nodiscard]] bool is_heard_since(KindSet kinds, std::optional<MonoTime> due) const;
  void note_removed(JobRecord& record, const RetryCredits& before) const;
  bool apply_one(k8s::Told&& word, const Now& now);
  bool put(k8s::Node&& node);
  void put(k8s::ResourceSlice&& slice, const Now& now);
  void drop_slice(const std::string& uid, const Now& now);
  void look_at_pools(const Now& now);
  void count_pools(const Now& now);
  void forget_cards_of_turned_nodes();
  void bound_pools();
  void forget_pools(const Now& now);
  [[nodiscard]] bool is_in_use(const Inventory::PoolName& pool) const;
  void settle_pools(const Now& now);
  void settle_remembered_pools();
  void settle_disputed_pools(const Now& now);
  void settle_disputed_pool(const Inventory::PoolName& name, const std::set<std::string>& held_on, const Now& now);
  [[nodiscard]] bool has_disputed_device(std::span<const HeldDevice> held_devices) const;
  [[nodiscard]] std::map<Inventory::PoolName, std::set<std::string>> holders_of_disputed_pools() const;
  void note_lost_taints(const std::vector<k8s::Object>& nodes);
  bool drop_pod(const SharedText& uid, const Now& now);
  void drop_claim(const std::string& key);
  void drop_node(const SharedText& name);
  void forget_devices_of(std::string_view node);
  void index_claim(const k8s::ResourceClaim& claim, bool add);
  void index_class(const k8s::ResourceClaim& claim, const k8s::AllocationResult& result, bool add);
  void refresh_pod(const SharedText& uid, const Now& now);
  void add_holder(const DeviceKey& key, const SharedText& uid);
  void remove_holder(const DeviceKey& key, const SharedText& uid, const Now& now);
  /// A claim is deallocated once its pod has ended, and a watch of its own may say so before the pod's: until that says
  /// it too, the pod holds what it held. So it does while its claim is known as another than it has.
  void keep_deallocated(const PodRecord& record, Resolution& resolved) const;
  void refresh_node(const SharedText& name, const Now& now);
  void refresh_device(const DeviceKey& key, const Now& now);
  [[nodiscard]] const OpenIncident* remembered(const DeviceKey& key) const;
  [[nodiscard]] const OpenIncident* reported_incident(const DeviceKey& key) const;
  [[nodiscard]] bool is_of_other_card(const DeviceKey& key, const OpenIncident& incident) const;
  void note_other_cards(const std::map<DeviceKey, std::string>& replaced, const Now& now);
  void note_other_card(const DeviceKey& key, const Now& now);
  void look_at_card(const DeviceKey& key, const Now& now);
  void look_again_at_incidents_of(const Inventory::PoolName& pool);
  void note_reporters(std::string_view node);
  [[nodiscard]] std::optional<Reporter> publisher_of(const DeviceKey& key) const;
  void follow_kept_taints(const Now& now);
  [[nodiscard]] bool is_without_informer(const DeviceKey& key, const OpenIncident& incident) const;
  [[nodiscard]] bool has_forgotten(const DeviceKey& key, const OpenIncident& incident) const;
  /// Also one that began before the node was made anew.
  [[nodiscard]] bool has_reported_incident(const DeviceKey& key) const;
  /// It has been called bad, and its incident is not open yet.
  [[nodiscard]] bool is_called_bad(const DeviceKey& key, const DeviceState& state) const;
  [[nodiscard]] bool is_reporter_known(const DeviceKey& key) const;
  /// A start of its reporter that is not seen yet may be behind its Healthy.
  [[nodiscard]] bool may_be_forgotten(const DeviceKey& key, const DeviceState& state) const;
  [[nodiscard]] std::optional<LastWord> last_word(const DeviceKey& key, const DeviceState& state) const;
  /// Whether the kubelet passes on what the device's driver or plugin says now.
  [[nodiscard]] bool is_passed_on(const DeviceKey& key) const;
  void look_at_standing(const DeviceKey& key, const Now& now);
  [[nodiscard]] bool is_reset(const DeviceKey& key, const DeviceState& state, WallTime called_bad_at) const;
  /// Its Healthy is said by one that began after it was called bad.
  [[nodiscard]] bool is_forgotten(const DeviceKey& key, const DeviceState& state) const;
  [[nodiscard]] Evidence evidence_of(const DeviceKey& key, const DeviceState& state, const Now& now) const;
  static void note_other_word(Evidence& evidence, const HeldDevice& held_device, const SharedText& uid);
  void release_claim_if_unused(const std::string& key);

  StringIndex<PodRecord> pods_;                             // by UID
  std::map<SharedText, SortedTexts, std::less<>> pods_on_;  // by node
  TextSet terminating_;
  TextSet unbound_;
  TextSet with_condition_;
  TextSet with_notice_;
  TextSet with_doubts_;
  std::map<SharedText, SortedTexts, std::less<>> gang_pods_;           // by the gang's key
  std::map<SharedText, SortedTexts, std::less<>> group_pods_;          // by namespace and PodGroup
  std::map<std::string, k8s::Meta, std::less<>> indivisible_;          // PodGroups, likewise
  std::map<std::string, k8s::DisruptionBudget, std::less<>> budgets_;  // by namespace and name
  std::map<SharedText, SortedTexts, std::less<>> claim_users_;         // by claim key
  StringIndex<ClaimRecord> claims_;                                    // by claim key
  TextSet claims_with_conditions_;
  std::unordered_map<DeviceKey, int, DeviceKeyHash> allocated_;
  std::unordered_set<SharedText, StringHash, std::equal_to<>> allocated_claims_;  // UIDs
  std::map<std::string, std::map<std::string, int>, std::less<>> class_drivers_;  // DeviceClass -> driver -> requests
  k8s::SharedPool<k8s::SchedulingTerms> scheduling_;
  k8s::SharedPool<std::vector<k8s::DeviceRequest>> requests_;
  std::map<std::string, k8s::Node, std::less<>> nodes_;
  std::map<std::string, NodeBook, std::less<>> books_;
  Reporters reporters_;
  std::map<DeviceKey, Standing> standing_;  // Unhealthy devices whose reporter has begun anew
  TextSet annotated_nodes_;
  TextSet nodes_with_conditions_;
  TextSet our_tainted_nodes_;
  std::map<std::string, k8s::Meta, std::less<>> namespaces_;
  StringIndex<k8s::Owner> owners_;
  OwnerSights owner_sights_;
  OwnerTree owner_tree_;
  StringIndex<JobRecord> jobs_;  // by UID
  NotedJobs noted_jobs_;
  Recreations recreations_;
  StringIndex<SortedTexts> job_pods_;    // by the Job's identity
  StringIndex<SortedTexts> other_pods_;  // by the identity of their controller, if it is no Job
  LostPods lost_pods_;
  LostReplacements lost_replacements_;
  std::map<std::string, PodEnding, std::less<>> endings_;  // by pod UID
  // Of endings: of Jobs' pods that ran, and of pods that kubelets rejected, of which one node makes thousands in
  // minutes.
  EndingOrder ending_order_{5'000};
  EndingOrder rejection_order_{2'000};
  // The most of a resource that a kubelet has been seen to give one pod.
  std::map<SharedText, std::int64_t, std::less<>> most_admitted_;
  std::map<std::string, AilingPod, std::less<>> ailing_;  // by pod UID
  bool ailing_due_ = false;                               // they have not been looked at since they were noted
  Views views_;
  Millis server_ahead_{0};
  TextSet lost_taints_;                   // nodes
  std::set<std::string> removed_taints_;  // nodes
  Inventory inventory_;
  CardCounts cards_;
  TextSet turned_nodes_;                                       // gone or made anew since the last refresh
  std::set<Inventory::PoolName> dirty_pools_;                  // to be counted anew
  std::map<Inventory::PoolName, MonoTime> unpublished_pools_;  // since when, or since they were last in use
  DriverTaints driver_taints_;
  Speakers speakers_;
  bool pools_may_be_stale_ = false;  // what says whose a pool is has changed since the last refresh
  std::set<Inventory::PoolName> guarded_pools_;
  std::map<Inventory::PoolName, WallTime> disputed_since_;
  std::map<Inventory::PoolName, MonoTime> left_pools_;  // disputed, and published by their own node no longer, since
  std::map<Inventory::PoolName, PoolHome> homes_;       // what was noted of them, until the next refresh
  HealthTracker tracker_;
  HeldCards held_cards_;
  Room room_;
  std::map<DeviceKey, OpenIncident> incidents_;
  std::set<DeviceKey> by_taint_;             // of incidents_, those that a driver's taint speaks of
  std::set<DeviceKey> believed_;             // whoever calls them healthy
  std::optional<MonoTime> standing_due_;     // from when on a word of their watches decides about one of them,
  std::optional<MonoTime> new_cards_due_;    // and about one of these
  bool heard_again_ = false;                 // some of them are to be looked at again
  std::map<DeviceKey, MonoTime> doubted_;    // devices called bad that say Healthy, and since when
  std::map<DeviceKey, MonoTime> new_cards_;  // in another one's place since, while its holders' reports may be in view
  std::map<DeviceKey, MonoTime> bare_;       // published without the taint of their incident, and when that counts
  MonoTime refreshed_at_;
  Touched touched_;
  std::size_t first_words_ = 0;                         // of drivers and plugins, at the last refresh
  std::map<std::string, std::string> touched_classes_;  // and whose devices they were given before
  SortedTexts nobody_;                                  // what an index without an entry answers
  std::set<k8s::Kind> seen_;
  TextSet dirty_pods_;
  TextSet dirty_nodes_;
  std::set<DeviceKey> dirty_devices_;
  TextSet suspicious_;
  TextSet settling_;  // nodes whose plugins' Healthy is not believed yet
};

/// Our condition on the pod, or null.
[[nodiscard]] const k8s::Condition* our_condition(const k8s::Pod& pod);

/// True while a kubelet runs the pod: its reports are evidence, and it can be evicted.
[[nodiscard]] bool is_live(const k8s::Pod& pod);

}  // namespace dhc
