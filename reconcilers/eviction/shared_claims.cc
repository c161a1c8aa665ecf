#include "reconcilers/eviction/shared_claims.h"

#include <algorithm>
#include <set>
#include <string>

namespace dhc::eviction {

namespace {

std::unexpected<HoldReason> refuse(Reason reason, std::string message) {
  return std::unexpected(HoldReason{.reason = reason, .message = std::move(message), .until = {}});
}

bool is_pod(const k8s::ClaimConsumer& consumer) { return consumer.resource == "pods" && consumer.api_group.empty(); }

/// It reserves the claim for those of its pods that name it, and for itself: the claim keeps its device when none of
/// them is left. **Source:** seen on 1.37.1 (gate DRAWorkloadResourceClaims).
bool is_pod_group(const k8s::ClaimConsumer& consumer) {
  return consumer.resource == "podgroups" && consumer.api_group == "scheduling.k8s.io";
}

/// UIDs of every pod that holds the claim: by its reservations, and by the pods' own specs.
std::set<std::string> holders_of(const k8s::ResourceClaim& claim, const std::string& key, const World& world) {
  std::set<std::string> uids;
  for (const auto& consumer : claim.reserved_for) {
    if (is_pod(consumer)) uids.insert(consumer.uid);
  }
  for (const auto& uid : world.users_of(key)) {
    const auto& pod = world.pod(uid)->pod;
    if (is_live(pod) && !pod.node_name.empty()) uids.insert(uid);
  }
  return uids;
}

/// An ambiguous device is one of those of its claim, and each pod has a key of its own for it.
bool is_same_device(const HeldDevice& a, const HeldDevice& b) {
  return a.ambiguous || b.ambiguous ? a.ambiguous == b.ambiguous && a.claim_uid == b.claim_uid : a.key == b.key;
}

}  // namespace

std::expected<Unit, HoldReason> unit_of_claim(const AffectedPod& affected, const PlanInput& input) {
  const auto& held_device = *affected.held_device;
  const auto* claim = input.world.claim(held_device.claim);
  if (claim == nullptr) return refuse(Reason::SharedClaim, "claim " + held_device.claim + " is not known");
  if (const auto group = std::ranges::find_if(claim->reserved_for, is_pod_group); group != claim->reserved_for.end()) {
    return refuse(Reason::SharedClaim, "claim " + held_device.claim + " is reserved for PodGroup " + group->name +
                                           ", which keeps it, with the device, when all its pods are gone: no "
                                           "eviction moves them; delete the PodGroup and its pods");
  }
  if (!affected.policy->evict->shared_claims_together) {
    return refuse(Reason::SharedClaim, "claim " + held_device.claim +
                                           " is not the pod's own: a new pod that names it gets the same device; "
                                           "evict.sharedClaims: Together evicts all its holders in one turn");
  }
  if (input.requests.was_emptied(held_device.claim_uid)) {
    // A holder whose own eviction was refused, by a budget say, is still owed that one.
    const auto* attempt = input.requests.eviction(affected.pod().meta.uid);
    if (attempt != nullptr && attempt->state == Attempt::State::Failed) return Unit{.affected_pods = {&affected}};
    return refuse(Reason::ClaimStillPinned,
                  "all holders of claim " + held_device.claim +
                      " were evicted together and it is still allocated to this device: not evicted again");
  }
  for (const auto& consumer : claim->reserved_for) {
    if (!is_pod(consumer)) {
      return refuse(Reason::SharedClaim,
                    "claim " + held_device.claim + " is reserved for " + consumer.resource + " " + consumer.name);
    }
  }
  Unit unit;
  for (const auto& uid : holders_of(*claim, held_device.claim, input.world)) {
    const auto* record = input.world.pod(uid);
    if (record != nullptr && !is_live(record->pod)) continue;  // its reservation goes away by itself
    const auto found = std::ranges::find_if(input.affected_pods, [&](const AffectedPod& other) {
      return other.pod().meta.uid == uid && is_same_device(*other.held_device, held_device);
    });
    if (found == input.affected_pods.end()) {
      const std::string who =
          record == nullptr ? "a pod that is not known (UID " + uid + ")" : "pod " + record->pod.meta.name;
      const bool covered =
          record != nullptr && policy_for(input.world, input.policy, record->pod, affected.key) != nullptr;
      return refuse(Reason::SharedClaim, "claim " + held_device.claim + " is also held by " + who +
                                             (covered ? ", which has not reported the device Unhealthy itself"
                                                      : ", which no enforcing policy covers"));
    }
    if (found->mode != affected.mode || !found->policy->evict || !found->policy->evict->shared_claims_together) {
      return refuse(Reason::SharedClaim, "claim " + held_device.claim + " is also held by pod " +
                                             found->pod().meta.name + ", whose policy " + found->policy->name +
                                             " does not evict holders together");
    }
    unit.affected_pods.push_back(&*found);
  }
  return unit;
}

}  // namespace dhc::eviction
