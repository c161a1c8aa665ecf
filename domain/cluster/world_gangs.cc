// The part of World that knows which pods need each other, and what budgets allow.
#include "domain/cluster/gang.h"
#include "domain/cluster/repeated.h"
#include "domain/cluster/world.h"

namespace dhc {

void World::index_gang(const k8s::Pod& pod, bool add) {
  const auto gang = gang_of(pod);
  if (!gang) return;
  auto& members = gang_pods_[gang->key];
  if (add) {
    members.insert(pod.meta.uid);
  } else {
    members.erase(pod.meta.uid);
  }
  if (members.empty()) gang_pods_.erase(gang->key);
}

const std::set<std::string>& World::members_of(const std::string& gang) const {
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

std::vector<const k8s::DisruptionBudget*> World::budgets_in(const std::string& ns) const {
  std::vector<const k8s::DisruptionBudget*> found;
  const auto prefix = ns + "/";
  for (auto at = budgets_.lower_bound(prefix); at != budgets_.end() && at->first.starts_with(prefix); ++at) {
    found.push_back(&at->second);
  }
  return found;
}

}  // namespace dhc
