// The part of World that knows which pods need each other, and what budgets allow.
#include "domain/cluster/gang.h"
#include "domain/cluster/repeated.h"
#include "domain/cluster/world.h"

namespace dhc {

void World::index_gang(const k8s::Pod& pod, bool add) {
  const auto index = [&](std::map<SharedText, SortedTexts, std::less<>>& groups, const std::string& key) {
    auto& members = groups[key];
    if (add) {
      members.insert(pod.meta.uid);
    } else {
      members.erase(pod.meta.uid);
    }
    if (members.empty()) groups.erase(key);
  };
  if (const auto gang = gang_of(pod)) index(gang_pods_, gang->key);
  if (!pod.pod_group.empty()) index(group_pods_, claim_key(pod.meta.ns, pod.pod_group));
}

bool World::is_indivisible(const k8s::Pod& pod) const {
  return !pod.pod_group.empty() && indivisible_.contains(claim_key(pod.meta.ns, pod.pod_group));
}

const SortedTexts& World::pod_group_of(const k8s::Pod& pod) const {
  const auto found = group_pods_.find(claim_key(pod.meta.ns, pod.pod_group));
  return found == group_pods_.end() ? nobody_ : found->second;
}

/// Only those that say something are kept: a group may be disrupted pod by pod unless it says otherwise.
bool World::put(k8s::PodGroup&& group) {
  const auto key = claim_key(group.meta.ns, group.meta.name);
  const auto known = indivisible_.find(key);
  if (!group.is_indivisible) {
    const bool is_news = known != indivisible_.end();
    if (is_news) drop_pod_group(key);
    return is_news;
  }
  if (known != indivisible_.end() && known->second.uid == group.meta.uid) return false;
  touched_.owners_in(group.meta.ns);
  indivisible_.insert_or_assign(key, std::move(group.meta));
  return true;
}

void World::drop_pod_group(const std::string& key) {
  const auto found = indivisible_.find(key);
  touched_.owners_in(found->second.ns);
  indivisible_.erase(found);
}

const SortedTexts& World::members_of(std::string_view gang) const {
  const auto found = gang_pods_.find(gang);
  return found == gang_pods_.end() ? nobody_ : found->second;
}

bool World::put(k8s::DisruptionBudget&& budget) {
  const auto key = claim_key(budget.meta.ns, budget.meta.name);
  const auto known = budgets_.find(key);
  if (known != budgets_.end() && is_repeated(known->second, budget)) return false;
  touched_.owners_in(budget.meta.ns);
  budgets_.insert_or_assign(key, std::move(budget));
  return true;
}

/// One of the same name may have been made anew: only the one that was deleted goes.
void World::drop_budget(const k8s::Remove& remove) {
  const auto found = budgets_.find(claim_key(remove.ns, remove.name));
  if (found == budgets_.end() || (!remove.uid.empty() && found->second.meta.uid != remove.uid)) return;
  touched_.owners_in(remove.ns);
  budgets_.erase(found);
}

std::vector<const k8s::DisruptionBudget*> World::budgets_in(std::string_view ns) const {
  std::vector<const k8s::DisruptionBudget*> found;
  const auto prefix = claim_key(ns, {});
  for (auto at = budgets_.lower_bound(prefix); at != budgets_.end() && at->first.starts_with(prefix); ++at) {
    found.push_back(&at->second);
  }
  return found;
}

}  // namespace dhc
