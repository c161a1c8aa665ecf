#include "domain/cluster/world.h"

#include <algorithm>
#include <utility>

#include "domain/cluster/repeated.h"
#include "domain/contract/names.h"
#include "domain/contract/our_taint.h"

namespace dhc {

namespace {

std::string key_of(const k8s::ResourceClaim& claim) { return claim_key(claim.meta.ns, claim.meta.name); }

bool has_health_conditions(const k8s::ResourceClaim& claim) {
  return std::ranges::any_of(claim.devices, [](const auto& device) { return !device.conditions.empty(); });
}

/// Gives one after the other away, so that a big list is not there twice.
template <class T>
void each_of(std::vector<k8s::Object>& objects, const auto& take) {
  for (auto& object : objects) {
    if (auto* value = std::get_if<T>(&object)) take(std::move(*value));
  }
}

/// Where all are needed at once.
template <class T>
std::vector<T> take_all(std::vector<k8s::Object>& objects) {
  std::vector<T> taken;
  taken.reserve(objects.size());
  each_of<T>(objects, [&](T&& value) { taken.push_back(std::move(value)); });
  return taken;
}

// What it is asked of stands in a map. NOLINTNEXTLINE(bugprone-return-const-ref-from-parameter)
const k8s::Meta& meta_in(const k8s::Meta& meta) { return meta; }
const k8s::Meta& meta_in(const k8s::Node& node) { return node.meta; }
const k8s::Meta& meta_in(const k8s::Owner& owner) { return owner.meta; }
const k8s::Meta& meta_in(const k8s::DisruptionBudget& budget) { return budget.meta; }
const k8s::Meta& meta_in(const PodRecord& record) { return record.pod.meta; }
const k8s::Meta& meta_in(const JobRecord& record) { return record.job.meta; }
const k8s::Meta& meta_in(const auto& record) { return record.claim.meta; }

SharedText uid_of(const k8s::Meta& meta) { return meta.uid; }
SharedText name_of(const k8s::Meta& meta) { return meta.name; }
SharedText claim_of(const k8s::Meta& meta) { return claim_key(meta.ns, meta.name); }

/// The keys of `map` that a list does not have, neither readable nor unreadable.
template <class Map, class KeyOf>
std::vector<SharedText> stale_keys(const Map& map, KeyOf key_of, const std::vector<k8s::Object>& objects,
                                   const k8s::UnreadableNames& unreadable) {
  TextSet keep;
  for (const auto& object : objects) keep.insert(key_of(k8s::meta_of(object)));
  std::vector<SharedText> stale;
  for (const auto& [key, value] : map) {
    if (!keep.contains(key) && !unreadable.contains(meta_in(value))) stale.push_back(key);
  }
  return stale;
}

}  // namespace

bool is_live(const k8s::Pod& pod) { return pod.phase == k8s::PodPhase::Running || pod.phase == k8s::PodPhase::Pending; }

bool World::apply(k8s::Delivery delivery, const Now& now) {
  const bool is_news =
      std::visit([&]<class T>(T&& value) { return apply_one(std::forward<T>(value), now); }, std::move(delivery));
  // What waits until its watches have been heard after its time is decided by that word alone.
  return is_news || is_heard_since({k8s::Kind::Pod, k8s::Kind::Node}, standing_due_) ||
         is_heard_since({k8s::Kind::Pod}, new_cards_due_);
}

bool World::is_heard_since(KindSet kinds, std::optional<MonoTime> due) const {
  const auto heard = due ? views_.heard_at(kinds) : std::nullopt;
  return heard && *heard >= *due;
}

bool World::synced() const {
  return std::ranges::all_of(k8s::kAllKinds,
                             [this](k8s::Kind kind) { return kind == k8s::Kind::ConfigMap || seen_.contains(kind); });
}

void World::touch(const k8s::Pod& pod) {
  if (!pod.meta.uid.empty()) touched_.pod(pod.meta.uid);
  if (!pod.node_name.empty()) touched_.node(pod.node_name);
  if (!pod.meta.controller) return;
  auto owner = pod.meta.controller_identity();
  // A Job's pods are judged together.
  if (pod.meta.controller->kind == "Job") touched_.owner(owner);
  touched_.pods_of(std::move(owner));
}

void World::touch(const k8s::ResourceClaim& claim) {
  for (const auto& result : claim.results) {
    touched_.device(DeviceKey::dra(result.driver, result.pool, result.device));
  }
}

/// A rule that may select more than one device may concern all.
void World::touch_rule(const k8s::DeviceTaintRule& rule) {
  if (rule.driver && rule.pool && rule.device) {
    auto key = DeviceKey::dra(*rule.driver, *rule.pool, *rule.device);
    for (auto& other : inventory_.others_on_card(key)) touched_.device(std::move(other));
    if (auto bad = same_card_as(rule)) touched_.device(*std::move(bad));
    touched_.device(std::move(key));
  } else {
    touched_.everything();
  }
}

bool World::apply_one(k8s::Snapshot&& snapshot, const Now& now) {
  touched_.everything();
  seen_.insert(snapshot.kind);
  views_.listed(snapshot.kind, snapshot.served);
  const k8s::UnreadableNames unreadable(snapshot.unreadable);
  switch (snapshot.kind) {
    case k8s::Kind::Pod:
      for (const auto& uid : stale_keys(pods_, uid_of, snapshot.objects, unreadable)) drop_pod(uid, now);
      for (const auto& uid : reporters_.missing_in(snapshot.objects, unreadable))
        note_reporters(reporters_.drop(uid, now));
      doubt_pods(unreadable);  // those that the list can read are put after it
      each_of<k8s::Pod>(snapshot.objects, [&](k8s::Pod&& pod) { put(std::move(pod), now, false); });
      break;
    case k8s::Kind::ResourceClaim:
      for (const auto& key : stale_keys(claims_, claim_of, snapshot.objects, unreadable)) drop_claim(key);
      each_of<k8s::ResourceClaim>(snapshot.objects, [&](k8s::ResourceClaim&& claim) { put(std::move(claim), now); });
      break;
    case k8s::Kind::Node:
      if (snapshot.went_back) note_lost_taints(snapshot.objects);
      for (const auto& name : stale_keys(nodes_, name_of, snapshot.objects, unreadable)) drop_node(name);
      each_of<k8s::Node>(snapshot.objects, [&](k8s::Node&& node) { put(std::move(node)); });
      break;
    case k8s::Kind::ResourceSlice:
      pools_may_be_stale_ = true;
      inventory_.replace_slices(take_all<k8s::ResourceSlice>(snapshot.objects), unreadable);
      look_at_pools(now);
      break;
    case k8s::Kind::DeviceTaintRule:
      // A server that has lost the kind has not lost the rules: nobody removed them.
      if (snapshot.served && snapshot.api_version.empty()) snapshot.api_version = "resource.k8s.io/v1";
      inventory_.replace_rules(take_all<k8s::DeviceTaintRule>(snapshot.objects),
                               snapshot.served ? std::move(snapshot.api_version) : std::string(), snapshot.went_back,
                               unreadable);
      break;
    case k8s::Kind::Namespace:
      for (const auto& name : stale_keys(namespaces_, name_of, snapshot.objects, unreadable)) namespaces_.erase(name);
      for (auto& ns : take_all<k8s::Namespace>(snapshot.objects)) {
        const std::string name = ns.meta.name;
        namespaces_.insert_or_assign(name, std::move(ns.meta));
      }
      break;
    case k8s::Kind::Job:
      // A credit that a restore has taken away was taken by nobody, and is owed again.
      if (snapshot.went_back) {
        recreations_.forget_all();
        note_failures_anew(now);
      }
      for (const auto& uid :
           stale_keys(jobs_, uid_of, snapshot.went_back ? std::vector<k8s::Object>() : snapshot.objects, unreadable)) {
        drop_job(uid);
      }
      each_of<k8s::Job>(snapshot.objects, [&](k8s::Job&& job) { put(std::move(job), now); });
      break;
    case k8s::Kind::ReplicaSet:
    case k8s::Kind::StatefulSet:
      for (const auto& uid : stale_keys(owners_, uid_of, snapshot.objects, unreadable)) {
        if (owners_.at(uid).kind == snapshot.kind) drop_owner(uid);
      }
      each_of<k8s::Owner>(snapshot.objects, [&](k8s::Owner&& owner) { put(std::move(owner)); });
      break;
    case k8s::Kind::PodDisruptionBudget:
      for (const auto& key : stale_keys(budgets_, claim_of, snapshot.objects, unreadable)) budgets_.erase(key);
      each_of<k8s::DisruptionBudget>(snapshot.objects, [&](k8s::DisruptionBudget&& budget) { put(std::move(budget)); });
      break;
    case k8s::Kind::PodGroup:
      for (const auto& key : stale_keys(indivisible_, claim_of, snapshot.objects, unreadable)) indivisible_.erase(key);
      each_of<k8s::PodGroup>(snapshot.objects, [&](k8s::PodGroup&& group) { put(std::move(group)); });
      break;
    case k8s::Kind::ConfigMap:
    case k8s::Kind::Lease:
      break;  // configuration and election, not state: read by others
  }
  return true;
}

bool World::apply_one(k8s::Upsert&& upsert, const Now& now) {
  return std::visit(
      [&]<class T>(T&& object) {
        using Value = std::remove_cvref_t<T>;
        if constexpr (std::is_same_v<Value, k8s::Pod>) {
          return put(std::forward<T>(object), now, true);
        } else if constexpr (std::is_same_v<Value, k8s::Job> || std::is_same_v<Value, k8s::ResourceClaim>) {
          return put(std::forward<T>(object), now);
        } else if constexpr (std::is_same_v<Value, k8s::Node> || std::is_same_v<Value, k8s::DisruptionBudget> ||
                             std::is_same_v<Value, k8s::PodGroup> || std::is_same_v<Value, k8s::Owner>) {
          return put(std::forward<T>(object));
        } else {
          if constexpr (std::is_same_v<Value, k8s::ResourceSlice>) put(std::forward<T>(object), now);
          if constexpr (std::is_same_v<Value, k8s::DeviceTaintRule>) {
            if (const auto* known = inventory_.rule_named(object.meta.name)) touch_rule(*known);
            touch_rule(object);
            inventory_.upsert(std::forward<T>(object));
          }
          if constexpr (std::is_same_v<Value, k8s::Namespace>) {
            const std::string name = object.meta.name;
            const auto known = namespaces_.find(name);
            const bool is_same = known != namespaces_.end() && known->second.labels == object.meta.labels &&
                                 known->second.annotations == object.meta.annotations;
            if (!is_same) touched_.everything();
            namespaces_.insert_or_assign(name, std::forward<T>(object).meta);
          }
          return true;
        }
      },
      std::move(upsert.object));
}

bool World::apply_one(k8s::Remove&& remove, const Now& now) {
  switch (remove.kind) {
    case k8s::Kind::Pod: {
      const auto node = reporters_.drop(remove.uid, now);
      note_reporters(node);
      return drop_pod(remove.uid, now) || !node.empty();
    }
    case k8s::Kind::ResourceClaim: {
      // A claim of the same name may have been made anew: only the one that was deleted goes.
      const auto key = claim_key(remove.ns, remove.name);
      const auto found = claims_.find(key);
      if (found != claims_.end() && (remove.uid.empty() || found->second.claim.meta.uid == remove.uid)) drop_claim(key);
      break;
    }
    case k8s::Kind::Node: {
      const auto found = nodes_.find(remove.name);
      if (found != nodes_.end() && (remove.uid.empty() || found->second.meta.uid == remove.uid)) drop_node(remove.name);
      break;
    }
    case k8s::Kind::ResourceSlice:
      drop_slice(remove.uid, now);
      break;
    case k8s::Kind::DeviceTaintRule:
      if (const auto found = inventory_.rules().find(remove.uid); found != inventory_.rules().end())
        touch_rule(found->second);
      inventory_.remove_rule(remove.uid);
      break;
    case k8s::Kind::Namespace:
      touched_.everything();
      namespaces_.erase(remove.name);
      break;
    case k8s::Kind::Job:
      drop_job(remove.uid);
      break;
    case k8s::Kind::ReplicaSet:
    case k8s::Kind::StatefulSet:
      drop_owner(remove.uid);
      break;
    case k8s::Kind::PodDisruptionBudget:
      drop_budget(remove);
      break;
    case k8s::Kind::PodGroup: {
      // One of the same name may have been made anew.
      const auto key = claim_key(remove.ns, remove.name);
      const auto found = indivisible_.find(key);
      if (found != indivisible_.end() && (remove.uid.empty() || found->second.uid == remove.uid)) drop_pod_group(key);
      break;
    }
    case k8s::Kind::ConfigMap:
    case k8s::Kind::Lease:
      break;
  }
  return true;
}

bool World::apply_one(k8s::Unreadable&& unreadable, const Now& /*now*/) {
  // The old object stands until a readable one comes; of what has no name nobody knows which one it was.
  if (unreadable.kind != k8s::Kind::Pod || (unreadable.uid.empty() && unreadable.name.empty())) return true;
  if (unreadable.uid.empty()) {
    doubt_pods(k8s::UnreadableNames({unreadable}));
  } else if (const auto found = pods_.find(unreadable.uid); found != pods_.end()) {
    found->second.readable = false;
    dirty_pods_.insert(found->first);
  }
  return true;
}

void World::doubt_pods(const k8s::UnreadableNames& unreadable) {
  if (unreadable.empty()) return;
  for (auto& [uid, record] : pods_) {
    if (!unreadable.contains(record.pod.meta)) continue;
    record.readable = false;
    dirty_pods_.insert(uid);
  }
}

bool World::put(k8s::Pod&& pod, const Now& now, bool is_news) {
  const auto reporting = reporters_.put(pod, server_ahead_, is_news, now);
  note_reporters(reporting);
  if (!k8s::is_kept_whole(pod)) return drop_pod(SharedText(pod.meta.uid), now) || !reporting.empty();
  auto& [known_uid, record] = *pods_.try_emplace(pod.meta.uid).first;
  // Each version comes with texts of its own: what is there already stays, so that all indexes share it.
  pod.meta.uid = known_uid;
  const SharedText uid = known_uid;
  if (record.readable && is_repeated(record.pod, pod)) return !reporting.empty();
  // What the pod said last of its device must be known before it ends: both may arrive in one turn.
  if (dirty_pods_.contains(uid) && is_live(record.pod) && !is_live(pod)) {
    refresh_pod(uid, now);
    for (const auto& held_device : record.held_devices) refresh_device(held_device.key, now);
  }
  touch(record.pod);
  touch(pod);
  if (is_live(record.pod) && !is_live(pod)) note_lost_replacement(pod, now);
  index_owned_pod(record.pod, false);
  index_owned_pod(pod, true);
  index_gang(record.pod, false);
  index_gang(pod, true);
  if (record.pod.node_name != pod.node_name) {
    if (!record.pod.node_name.empty()) pods_on_[record.pod.node_name].erase(uid);
    speakers_.remove(record.pod.node_name, std::exchange(record.heard, {}));
    if (!pod.node_name.empty()) pods_on_[pod.node_name].insert(uid);
  }
  for (const auto& claim : record.pod.claims) claim_users_[claim_key(record.pod.meta.ns, claim.claim_name)].erase(uid);
  std::vector<std::string> left;
  for (const auto& claim : record.pod.claims) left.push_back(claim_key(record.pod.meta.ns, claim.claim_name));
  const auto* condition = our_condition(pod);
  const bool tells = condition != nullptr && condition->status == "True";
  const auto* known = our_condition(record.pod);
  const bool told = known != nullptr && known->status == "True";
  if (!tells) {
    record.told.reset();
  } else if (!told || known->message != condition->message) {
    record.told = read_condition(condition->message);
  }
  if (!(record.pod.images == pod.images)) {
    for (const auto& held_device : record.held_devices) held_cards_.note_holder(held_device.key);
  }
  if (record.pod.allocated == pod.allocated) pod.allocated = std::move(record.pod.allocated);
  record.pod = std::move(pod);
  scheduling_.share(record.pod.scheduling);
  record.readable = true;
  index_pod(record);
  for (const auto& claim : record.pod.claims) {
    if (!claim.claim_name.empty()) claim_users_[claim_key(record.pod.meta.ns, claim.claim_name)].insert(uid);
  }
  for (const auto& key : left) release_claim_if_unused(key);
  dirty_pods_.insert(uid);
  return true;
}

void World::index_pod(const PodRecord& record) {
  const auto& uid = record.pod.meta.uid;
  const auto index = [&](TextSet& uids, bool is_in) { is_in ? (void)uids.insert(uid) : (void)uids.erase(uid); };
  index(unbound_, record.pod.node_name.empty() && is_live(record.pod));
  index(terminating_, record.pod.meta.deletion.has_value());
  index(with_condition_, our_condition(record.pod) != nullptr);
  index(with_notice_, k8s::find(record.pod.meta.annotations, kNoticeAnnotation).has_value());
}

bool World::drop_pod(const SharedText& uid, const Now& now) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return false;
  const auto record = std::move(found->second);
  pods_.erase(found);
  touch(record.pod);
  if (is_live(record.pod)) note_lost_replacement(record.pod, now);
  index_owned_pod(record.pod, false);
  index_gang(record.pod, false);
  note_departure(record, now);
  speakers_.remove(record.pod.node_name, record.heard);
  if (has_disputed_device(record.held_devices)) pools_may_be_stale_ = true;
  for (const auto& held_device : record.held_devices) {
    remove_holder(held_device.key, uid, now);
    dirty_devices_.insert(held_device.key);
    touched_.device(held_device.key);
  }
  if (!record.pod.node_name.empty()) {
    pods_on_[record.pod.node_name].erase(uid);
    dirty_nodes_.insert(record.pod.node_name);
  }
  for (const auto& claim : record.pod.claims) {
    const auto key = claim_key(record.pod.meta.ns, claim.claim_name);
    claim_users_[key].erase(uid);
    release_claim_if_unused(key);
  }
  terminating_.erase(uid);
  unbound_.erase(uid);
  with_condition_.erase(uid);
  with_notice_.erase(uid);
  with_doubts_.erase(uid);
  dirty_pods_.erase(uid);
  return true;
}

void World::look_at_conditions(ClaimRecord& record, bool is_first, const Now& now) {
  const auto before = std::exchange(record.sights, {});
  for (const auto& device : record.claim.devices) {
    const auto key = DeviceKey::dra(device.driver, device.pool, device.device);
    for (const auto& condition : device.conditions) {
      ConditionSight sight{.status = condition.status,
                           .transition = condition.last_transition,
                           .since = moment_of(now),
                           .from_the_start = is_first};
      const auto known = before.find({key, condition.type});
      if (known != before.end() && known->second.status == sight.status) {
        const auto& old = known->second;
        // Another time with the same status: it was another in between, which we have not seen.
        const bool moved = sight.transition && sight.transition != old.transition;
        sight.since = moved ? std::max(old.since, moment_of(*sight.transition, now)) : old.since;
        sight.from_the_start = old.from_the_start && !moved;
      }
      record.sights.insert_or_assign({key, condition.type}, std::move(sight));
    }
  }
}

bool World::put(k8s::ResourceClaim&& claim, const Now& now) {
  const auto key = key_of(claim);
  auto& record = claims_[key];
  if (!record.gone && is_repeated(record.claim, claim)) return false;
  touch(record.claim);
  touch(claim);
  if (!record.gone) index_claim(record.claim, false);
  const bool is_first = record.claim.meta.uid != claim.meta.uid;
  if (is_first) record.sights.clear();
  record.claim = std::move(claim);
  requests_.share(record.claim.requests);
  record.gone = false;
  look_at_conditions(record, is_first, now);
  speakers_.note(record.claim);
  index_claim(record.claim, true);
  if (has_health_conditions(record.claim)) {
    claims_with_conditions_.insert(key);
  } else {
    claims_with_conditions_.erase(key);
  }
  const auto& users = users_of(key);
  dirty_pods_.insert(users.begin(), users.end());
  return true;
}

void World::drop_claim(const std::string& key) {
  const auto found = claims_.find(key);
  if (found == claims_.end() || found->second.gone) return;
  index_claim(found->second.claim, false);
  touch(found->second.claim);
  for (const auto& uid : users_of(key)) touched_.pod(uid);
  found->second.gone = true;
  claims_with_conditions_.erase(key);
  release_claim_if_unused(key);
}

void World::release_claim_if_unused(const std::string& key) {
  const auto users = claim_users_.find(key);
  if (users != claim_users_.end() && !users->second.empty()) return;
  if (users != claim_users_.end()) claim_users_.erase(users);
  const auto found = claims_.find(key);
  if (found != claims_.end() && found->second.gone) claims_.erase(found);
}

void World::index_claim(const k8s::ResourceClaim& claim, bool add) {
  if (add && claim.allocated) {
    allocated_claims_.insert(claim.meta.uid);
  } else {
    allocated_claims_.erase(claim.meta.uid);
  }
  for (const auto& result : claim.results) {
    index_class(claim, result, add);
    if (result.admin_access) continue;
    const auto key = DeviceKey::dra(result.driver, result.pool, result.device);
    if (add) {
      if (++allocated_[key] == 1) room_.note_pool({result.driver, result.pool});
    } else if (const auto found = allocated_.find(key); found != allocated_.end() && --found->second == 0) {
      allocated_.erase(found);
      room_.note_pool({result.driver, result.pool});
    }
  }
}

bool World::apply_one(k8s::Told&& word, const Now& /*now*/) {
  // An Unhealthy that a reporter's start has not ended waits for the word itself.
  return views_.told(word) || !standing_.empty();
}

void World::note_lost_taints(const std::vector<k8s::Object>& nodes) {
  std::set<std::string> tainted;
  for (const auto& [name, node] : nodes_) {
    if (our_taint_on(node)) tainted.insert(name);
  }
  for (const auto& object : nodes) {
    const auto* node = std::get_if<k8s::Node>(&object);
    if (node != nullptr && tainted.contains(node->meta.name)) lost_taints_.insert(node->meta.name);
  }
}

void World::index_class(const k8s::ResourceClaim& claim, const k8s::AllocationResult& result, bool add) {
  const auto name = std::string_view(result.request).substr(0, result.request.find('/'));
  const auto request = std::ranges::find(*claim.requests, name, &k8s::DeviceRequest::name);
  if (request == claim.requests->end() || request->device_class.empty()) return;
  touched_classes_.try_emplace(request->device_class, driver_of_class(request->device_class));
  auto& drivers = class_drivers_[request->device_class];
  auto& count = drivers[result.driver];
  count += add ? 1 : -1;
  if (count == 0) drivers.erase(result.driver);
  if (drivers.empty()) class_drivers_.erase(request->device_class);
}

std::string World::driver_of_class(std::string_view device_class) const {
  const auto found = class_drivers_.find(device_class);
  return found == class_drivers_.end() ? std::string() : found->second.begin()->first;
}

bool World::put(k8s::Node&& node) {
  const std::string name = node.meta.name;
  const auto known = nodes_.find(name);
  if (our_taint_on(node)) lost_taints_.erase(name);
  if (known != nodes_.end() && is_repeated(known->second, node)) return false;
  touched_.node(name);
  if (known == nodes_.end() || known->second.meta.uid != node.meta.uid) {
    touched_.everything();
    forget_devices_of(name);
  }
  if (known != nodes_.end() && known->second.meta.uid != node.meta.uid) turned_nodes_.insert(name);
  if (known == nodes_.end()) {
    inventory_.note_node(name, true);
    pools_may_be_stale_ = true;
  }
  const bool is_annotated = k8s::find(node.meta.annotations, kBrakeReleaseAnnotation) ||
                            k8s::find(node.meta.annotations, kCapReleaseAnnotation) ||
                            k8s::find(node.meta.annotations, kAcknowledgeAnnotation);
  is_annotated ? (void)annotated_nodes_.insert(name) : (void)annotated_nodes_.erase(name);
  if (our_taint_on(node)) {
    our_tainted_nodes_.insert(name);
  } else if (our_tainted_nodes_.erase(name) > 0 && !lost_taints_.contains(name) && !turned_nodes_.contains(name)) {
    removed_taints_.insert(name);
  }
  node.kept.empty() ? (void)nodes_with_conditions_.erase(name) : (void)nodes_with_conditions_.insert(name);
  nodes_.insert_or_assign(name, std::move(node));
  dirty_nodes_.insert(name);
  return true;
}

/// A node made anew under a name has other devices, unless their names say that they are the same. What has opened an
/// incident is remembered elsewhere, with its node.
void World::forget_devices_of(std::string_view node) {
  tracker_.forget_unheld([&](const DeviceKey& key) {
    const auto home = inventory_.node_of(key);
    return (home.empty() ? key.place.view() : std::string_view(home)) == node && !names_hardware(key);
  });
}

void World::drop_node(const SharedText& name) {
  touched_.everything();
  reporters_.forget_gone(name);
  nodes_.erase(name);
  annotated_nodes_.erase(name);
  nodes_with_conditions_.erase(name);
  our_tainted_nodes_.erase(name);
  lost_taints_.erase(name);
  turned_nodes_.insert(name);
  inventory_.note_node(name, false);
  pools_may_be_stale_ = true;
  dirty_nodes_.insert(name);
}

}  // namespace dhc
