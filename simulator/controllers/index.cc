#include "simulator/controllers/index.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "simulator/api/target.h"
#include "simulator/controllers/state.h"

namespace dhc::sim {
namespace {

std::string owner_uid(const Json& object) {
  const Json* owner = controller_of(object);
  return owner == nullptr ? std::string() : text(*owner, {"uid"});
}

void put(std::map<std::string, std::set<Name>>& groups, const std::string& key, const Name& name, bool there) {
  if (there) {
    groups[key].insert(name);
    return;
  }
  const auto group = groups.find(key);
  if (group == groups.end()) return;
  group->second.erase(name);
  if (group->second.empty()) groups.erase(group);
}

std::string label_key(const std::string& ns, const std::string& label, const std::string& value) {
  return ns + "/" + label + "=" + value;
}

/// Whether the change is one of a spec or of the object's existence.
bool changes_spec(const Change& change) {
  return change.type != ChangeType::Modified ||
         number(*change.before, {"metadata", "generation"}) != number(*change.object, {"metadata", "generation"});
}

}  // namespace

const std::set<Name>& Index::found(const Groups& groups, const std::string& key) const {
  const auto group = groups.find(key);
  return group == groups.end() ? none_ : group->second;
}

const std::set<Name>& Index::pods_labelled(const std::string& ns, const std::string& label,
                                           const std::string& value) const {
  return found(pods_labelled_, label_key(ns, label, value));
}

int Index::load_of(const std::string& node) const {
  const auto load = load_.find(node);
  return load == load_.end() ? 0 : load->second;
}

bool Index::follow(const Store& store) {
  if (started_ && server_ == store.server() && at_ == store.rv()) return false;
  const auto missed = [&](const ResourceType& type) { return store.oldest_rv(type.id) > at_; };
  const bool anew = !started_ || server_ != store.server() || std::ranges::any_of(all_types(), missed);
  if (anew) {
    *this = Index();
    started_ = true;
    server_ = store.server();
  }
  for (const auto& type : all_types()) {
    if (type.id == Res::Events || type.id == Res::Leases) continue;
    if (anew) {
      for (const auto& [name, object] : store.all(type.id)) {
        take(store, type.id, {ChangeType::Added, store.rv(), store.now().mono, object, nullptr});
      }
      continue;
    }
    const auto& changes = store.changes(type.id);
    const auto first =
        std::partition_point(changes.begin(), changes.end(), [&](const Change& change) { return change.rv <= at_; });
    for (auto change = first; change != changes.end(); ++change) take(store, type.id, *change);
  }
  at_ = store.rv();
  return anew;
}

void Index::place(Res res, const Name& name, const Json& object, bool there) {
  if (res == Res::Pods) {
    const auto node = text(object, {"spec", "nodeName"});
    put(pods_on_, node, name, there);
    if (const auto owner = owner_uid(object); !owner.empty()) put(pods_of_, owner, name, there);
    if (const Json* labels = field(object, {"metadata", "labels"}); labels != nullptr) {
      for (const auto& [label, value] : labels->items())
        put(pods_labelled_, label_key(name.ns, label, value.get<std::string>()), name, there);
    }
    if (!is_terminal(object)) load_[node] += there ? 1 : -1;
  } else if (res == Res::Slices) {
    put(slices_of_, text(object, {"spec", "nodeName"}), name, there);
  } else if (res == Res::ReplicaSets) {
    if (const auto owner = owner_uid(object); !owner.empty()) put(sets_of_, owner, name, there);
  } else if (res == Res::Claims) {
    for (const auto& result : list(object, {"status", "allocation", "devices", "results"})) {
      put(claims_on_, text(result, {"driver"}) + "/" + text(result, {"pool"}) + "/" + text(result, {"device"}), name,
          there);
    }
  }
}

void Index::touch_budgets(const Store& store, const std::string& ns, const Json* pod) {
  const auto& budgets = store.all(Res::Budgets);
  for (auto it = budgets.lower_bound({ns, {}}); it != budgets.end() && it->first.ns == ns; ++it) {
    const Json* selector = field(*it->second, {"spec", "selector"});
    if (pod == nullptr || (selector != nullptr && label_selector_matches(*selector, *pod)))
      restless.budgets.insert(it->first);
  }
}

void Index::touch_pod(const Store& store, const Name& name, const Json& pod, bool there) {
  if (there && field(pod, {"spec", "resourceClaims"}) != nullptr) restless.claimants.insert(name);
  if (const auto node = text(pod, {"spec", "nodeName"}); !node.empty()) restless.kubelets.insert(node);
  for (const auto& pod_claim : list(pod, {"spec", "resourceClaims"})) {
    if (auto claim = claim_name_of(pod, pod_claim); !claim.empty()) restless.claims.insert({name.ns, std::move(claim)});
  }
  const Json* owner = controller_of(pod);
  if (owner != nullptr && text(*owner, {"kind"}) == "ReplicaSet") {
    restless.replica_sets.insert({name.ns, text(*owner, {"name"})});
  }
  touch_budgets(store, name.ns, &pod);
}

/// An owner that nobody knows, or that is not written yet: the first look decides.
void Index::touch_ownerless(Res res, const Name& name, const Json& object) {
  const auto owner = owner_uid(object);
  if (owner.empty() || lives(owner)) return;
  (res == Res::Pods ? restless.ownerless_pods : restless.ownerless_sets).insert(name);
}

void Index::release_owned(const std::string& uid) {
  restless.ownerless_pods.insert(pods_of(uid).begin(), pods_of(uid).end());
  const auto& sets = found(sets_of_, uid);
  restless.ownerless_sets.insert(sets.begin(), sets.end());
}

void Index::take(const Store& store, Res res, const Change& change) {
  const auto& object = *change.object;
  const Name name{ns_of(object), name_of(object)};
  const bool there = change.type != ChangeType::Deleted;
  const auto uid = uid_of(object);
  if (change.before != nullptr) place(res, name, *change.before, false);
  if (there) place(res, name, object, true);
  if (there) {
    uids_.insert(uid);
  } else {
    uids_.erase(uid);
    release_owned(uid);
  }
  switch (res) {
    case Res::Pods: {
      touch_pod(store, name, object, there);
      if (change.before != nullptr) touch_budgets(store, name.ns, &*change.before);
      const bool moves = change.type != ChangeType::Modified || is_terminal(object) != is_terminal(*change.before) ||
                         text(object, {"spec", "nodeName"}) != text(*change.before, {"spec", "nodeName"});
      room_ += moves ? 1 : 0;
      if (there) touch_ownerless(res, name, object);
      break;
    }
    case Res::Claims:
      restless.claims.insert(name);
      ++room_;
      break;
    case Res::PodGroups:
      for (const auto& claim : list(object, {"spec", "resourceClaims"})) {
        restless.claims.insert({name.ns, text(claim, {"resourceClaimName"})});
      }
      break;
    case Res::ClaimTemplates:
      restless.claimants.insert(unbound().begin(), unbound().end());
      break;
    case Res::Deployments:
      restless.deployments.insert(name);
      break;
    case Res::ReplicaSets:
      restless.replica_sets.insert(name);
      if (const Json* owner = controller_of(object); owner != nullptr) {
        restless.deployments.insert({name.ns, text(*owner, {"name"})});
      }
      if (there) touch_ownerless(res, name, object);
      if (changes_spec(change)) touch_budgets(store, name.ns, nullptr);
      break;
    case Res::StatefulSets:
      if (changes_spec(change)) touch_budgets(store, name.ns, nullptr);
      break;
    case Res::Budgets:
      restless.budgets.insert(name);
      break;
    case Res::TaintRules:
      restless.rules.insert(name);
      ++room_;
      break;
    case Res::Nodes:
    case Res::Slices:
      ++room_;
      break;
    default:
      break;
  }
}

}  // namespace dhc::sim
