#include "reconcilers/shared/exclusions.h"

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "domain/cluster/node_departure.h"
#include "domain/cluster/owner_chain.h"
#include "domain/cluster/workload.h"
#include "domain/contract/names.h"
#include "domain/incidents/suspect_watch.h"

namespace dhc {

namespace {

bool is_ours(const k8s::Pod& pod, const PlanInput& input) {
  if (input.policy.own_pod_uid.empty()) return false;
  if (pod.meta.uid == input.policy.own_pod_uid) return true;
  const auto* own = input.world.pod(input.policy.own_pod_uid);
  return own != nullptr && own->pod.meta.controller &&
         own->pod.meta.controller_identity() == pod.meta.controller_identity();
}

std::optional<HoldReason> by_kind(const k8s::Pod& pod, const PlanInput& input) {
  if (k8s::find(pod.meta.annotations, kMirrorAnnotation) ||
      (pod.meta.controller && pod.meta.controller->kind == "Node")) {
    return HoldReason{.reason = Reason::MirrorPod,
                      .message = "a static pod: the kubelet would start it again on the same node",
                      .until = {}};
  }
  if (is_ours(pod, input))
    return HoldReason{.reason = Reason::OwnPod, .message = "this controller's own pod", .until = {}};
  if (pod.kubelet_plugin) {
    return HoldReason{.reason = Reason::DriverPod,
                      .message = "it mounts the kubelet's plugin folders: a device driver or plugin",
                      .until = {}};
  }
  if (pod.meta.controller && pod.meta.controller->kind == "DaemonSet") {
    return HoldReason{.reason = Reason::DaemonSetPod,
                      .message = "DaemonSet " + pod.meta.controller->name + " would start it again on the same node",
                      .until = {}};
  }
  return std::nullopt;
}

}  // namespace

std::optional<HoldReason> opted_out(const k8s::Pod& pod, const World& world) {
  const auto hold = [](std::string where) {
    return HoldReason{
        .reason = Reason::OptedOut, .message = std::string(kOptOutAnnotation) + ": \"true\" on " + where, .until = {}};
  };
  if (says_opt_out(pod.meta)) return hold("the pod");
  const auto chain = chain_above(pod.meta, world);
  if (chain.opted_out != nullptr) return hold("its " + words_of(*chain.opted_out));
  const auto* ns = world.namespace_of(pod.meta.ns);
  if (ns != nullptr && says_opt_out(*ns)) return hold("Namespace " + pod.meta.ns);
  const auto unknown = [](std::string message) {
    return HoldReason{.reason = Reason::OptOutUnknown, .message = std::move(message), .until = {}};
  };
  if (ns == nullptr) return unknown("Namespace " + pod.meta.ns + " is not known just now, it may have opted out");
  if (chain.unknown != nullptr) return unknown(chain.why);
  return std::nullopt;
}

std::optional<HoldReason> owner_word_too_old(const k8s::Pod& pod, const World& world, const Now& now) {
  const auto chain = chain_above(pod.meta, world);
  if (!chain.oldest_at || now.mono - *chain.oldest_at < kOwnerWordAge) return std::nullopt;
  return HoldReason{.reason = Reason::OptOutUnknown,
                    .message = words_of(*chain.oldest) +
                               " was last read more than five minutes ago: it is read again before the "
                               "eviction, it may have opted out",
                    .until = {}};
}

std::optional<HoldReason> suspected(const k8s::Pod& pod, const std::string& scope, const PlanInput& input) {
  if (input.suspects == nullptr) return std::nullopt;
  const auto found = suspected_as(*input.suspects, pod, scope, input.world);
  if (!found) return std::nullopt;
  return HoldReason{
      .reason = Reason::WorkloadSuspected, .message = words_of_suspicion(found->who, *found->suspicion), .until = {}};
}

std::optional<HoldReason> excluded_because(const AffectedPod& affected, const PlanInput& input) {
  const auto& pod = affected.pod();
  if (!affected.record->readable) {
    return HoldReason{
        .reason = Reason::UnreadablePod, .message = "the pod's last version could not be read", .until = {}};
  }
  if (auto hold = by_kind(pod, input)) return hold;
  if (auto hold = opted_out(pod, input.world)) return hold;
  const auto* node = input.world.node(pod.node_name);
  if (node == nullptr || !node->ready) {
    return HoldReason{.reason = Reason::NodeNotReady,
                      .message = "node " + pod.node_name + (node == nullptr ? " is not known" : " is not Ready") +
                                 ": its kubelet can neither be believed nor obeyed",
                      .until = {}};
  }
  if (const auto leaving = why_leaving(*node)) {
    return HoldReason{
        .reason = Reason::NodeLeaving,
        .message = fmt::format("node {} {}: its pods are moved by whoever did that", pod.node_name, *leaving),
        .until = {}};
  }
  if (auto hold = suspected(pod, affected.key.scope, input)) return hold;
  const bool is_for_own = affected.goes_with == nullptr;
  if (is_for_own && pod.phase == k8s::PodPhase::Pending && !affected.held_device->reported &&
      affected.held_device->claim.empty()) {
    return HoldReason{
        .reason = Reason::PendingWithoutDevice, .message = "the pod is Pending and holds no device yet", .until = {}};
  }
  if (!pod.meta.controller && !(affected.policy->evict && affected.policy->evict->bare_pods)) {
    return HoldReason{.reason = Reason::BarePod,
                      .message = "no controller would replace it; evict.barePods: true in policy " +
                                 affected.policy->name + " overrides",
                      .until = {}};
  }
  return std::nullopt;
}

}  // namespace dhc
