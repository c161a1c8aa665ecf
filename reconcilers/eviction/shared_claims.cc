#include "reconcilers/eviction/shared_claims.h"

#include <algorithm>
#include <set>
#include <string>

namespace dhc::eviction {

namespace {

std::unexpected<Ruling> refuse(Reason reason, std::string message) {
  return std::unexpected(Ruling{.reason = reason, .message = std::move(message), .until = {}});
}

/// UIDs of every pod that holds the claim: by its reservations, and by the pods' own specs.
std::set<std::string> holders_of(const k8s::ResourceClaim& claim, const std::string& key, const World& world) {
  std::set<std::string> uids;
  for (const auto& consumer : claim.reserved_for) uids.insert(consumer.uid);
  for (const auto& uid : world.users_of(key)) {
    const auto& pod = world.pod(uid)->pod;
    if (is_live(pod) && !pod.node_name.empty()) uids.insert(uid);
  }
  return uids;
}

/// An ambiguous device is one of those of its claim, and each pod has a key of its own for it.
bool is_same_device(const Holding& a, const Holding& b) {
  return a.ambiguous || b.ambiguous ? a.ambiguous == b.ambiguous && a.claim_uid == b.claim_uid : a.key == b.key;
}

}  // namespace

std::expected<Unit, Ruling> unit_of_claim(const Exposure& exposure, const Scene& scene) {
  const auto& holding = *exposure.holding;
  const auto* claim = scene.world.claim(holding.claim);
  if (claim == nullptr) return refuse(Reason::SharedClaim, "claim " + holding.claim + " is not known");
  if (!exposure.policy->evict->shared_claims_together) {
    return refuse(Reason::SharedClaim, "claim " + holding.claim +
                                           " is not the pod's own: a new pod that names it gets the same device; "
                                           "evict.sharedClaims: Together evicts all its holders in one turn");
  }
  if (scene.ledger.was_emptied(holding.claim_uid)) {
    // A holder whose own eviction was refused, by a budget say, is still owed that one.
    const auto* attempt = scene.ledger.eviction(exposure.pod().meta.uid);
    if (attempt != nullptr && attempt->state == Attempt::State::Failed) return Unit{.exposures = {&exposure}};
    return refuse(Reason::ClaimStillPinned,
                  "all holders of claim " + holding.claim +
                      " were evicted together and it is still allocated to this device: not evicted again");
  }
  for (const auto& consumer : claim->reserved_for) {
    if (consumer.resource != "pods" || !consumer.api_group.empty()) {
      return refuse(Reason::SharedClaim,
                    "claim " + holding.claim + " is reserved for " + consumer.resource + " " + consumer.name);
    }
  }
  Unit unit;
  for (const auto& uid : holders_of(*claim, holding.claim, scene.world)) {
    const auto* record = scene.world.pod(uid);
    if (record != nullptr && !is_live(record->pod)) continue;  // its reservation goes away by itself
    const auto found = std::ranges::find_if(scene.exposures, [&](const Exposure& other) {
      return other.pod().meta.uid == uid && is_same_device(*other.holding, holding);
    });
    if (found == scene.exposures.end()) {
      const std::string who =
          record == nullptr ? "a pod that is not known (UID " + uid + ")" : "pod " + record->pod.meta.name;
      const bool covered =
          record != nullptr && policy_for(scene.world, scene.policy, record->pod, exposure.key) != nullptr;
      return refuse(Reason::SharedClaim, "claim " + holding.claim + " is also held by " + who +
                                             (covered ? ", which has not reported the device Unhealthy itself"
                                                      : ", which no enforcing policy covers"));
    }
    if (found->mode != exposure.mode || !found->policy->evict || !found->policy->evict->shared_claims_together) {
      return refuse(Reason::SharedClaim, "claim " + holding.claim + " is also held by pod " + found->pod().meta.name +
                                             ", whose policy " + found->policy->name +
                                             " does not evict holders together");
    }
    unit.exposures.push_back(&*found);
  }
  return unit;
}

}  // namespace dhc::eviction
