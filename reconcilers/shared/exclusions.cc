#include "reconcilers/shared/exclusions.h"

#include <string>
#include <string_view>
#include <utility>

#include "domain/cluster/owner_chain.h"
#include "domain/contract/names.h"

namespace dhc {

namespace {

bool is_ours(const k8s::Pod& pod, const Scene& scene) {
  if (scene.policy.own_pod_uid.empty()) return false;
  if (pod.meta.uid == scene.policy.own_pod_uid) return true;
  const auto* own = scene.world.pod(scene.policy.own_pod_uid);
  return own != nullptr && own->pod.meta.controller &&
         own->pod.meta.controller_identity() == pod.meta.controller_identity();
}

std::optional<Ruling> by_kind(const k8s::Pod& pod, const Scene& scene) {
  if (k8s::find(pod.meta.annotations, kMirrorAnnotation) ||
      (pod.meta.controller && pod.meta.controller->kind == "Node")) {
    return Ruling{.reason = Reason::MirrorPod,
                  .message = "a static pod: the kubelet would start it again on the same node",
                  .until = {}};
  }
  if (is_ours(pod, scene)) return Ruling{.reason = Reason::OwnPod, .message = "this controller's own pod", .until = {}};
  if (pod.kubelet_plugin) {
    return Ruling{.reason = Reason::DriverPod,
                  .message = "it mounts the kubelet's plugin folders: a device driver or plugin",
                  .until = {}};
  }
  if (pod.meta.controller && pod.meta.controller->kind == "DaemonSet") {
    return Ruling{.reason = Reason::DaemonSetPod,
                  .message = "DaemonSet " + pod.meta.controller->name + " would start it again on the same node",
                  .until = {}};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Ruling> opted_out(const k8s::Pod& pod, const World& world) {
  const auto ruling = [](std::string where) {
    return Ruling{
        .reason = Reason::OptedOut, .message = std::string(kOptOutAnnotation) + ": \"true\" on " + where, .until = {}};
  };
  if (says_opt_out(pod.meta)) return ruling("the pod");
  const auto chain = chain_above(pod.meta, world);
  if (chain.opted_out != nullptr) return ruling("its " + words_of(*chain.opted_out));
  const auto* ns = world.namespace_of(pod.meta.ns);
  if (ns != nullptr && says_opt_out(*ns)) return ruling("Namespace " + pod.meta.ns);
  const auto unknown = [](std::string message) {
    return Ruling{.reason = Reason::OptOutUnknown, .message = std::move(message), .until = {}};
  };
  if (ns == nullptr) return unknown("Namespace " + pod.meta.ns + " is not known just now, it may have opted out");
  if (chain.unknown != nullptr) return unknown(chain.why);
  return std::nullopt;
}

std::optional<Ruling> owner_word_too_old(const k8s::Pod& pod, const World& world, const Now& now) {
  const auto chain = chain_above(pod.meta, world);
  if (!chain.oldest_at || now.mono - *chain.oldest_at < kOwnerWordAge) return std::nullopt;
  return Ruling{.reason = Reason::OptOutUnknown,
                .message = words_of(*chain.oldest) +
                           " was last read more than five minutes ago: it is read again before the "
                           "eviction, it may have opted out",
                .until = {}};
}

std::optional<Ruling> excluded_because(const Exposure& exposure, const Scene& scene) {
  const auto& pod = exposure.pod();
  if (!exposure.record->readable) {
    return Ruling{.reason = Reason::UnreadablePod, .message = "the pod's last version could not be read", .until = {}};
  }
  if (auto ruling = by_kind(pod, scene)) return ruling;
  if (auto ruling = opted_out(pod, scene.world)) return ruling;
  const auto* node = scene.world.node(pod.node_name);
  if (node == nullptr || !node->ready) {
    return Ruling{.reason = Reason::NodeNotReady,
                  .message = "node " + pod.node_name + (node == nullptr ? " is not known" : " is not Ready") +
                             ": its kubelet can neither be believed nor obeyed",
                  .until = {}};
  }
  if (pod.phase == k8s::PodPhase::Pending && !exposure.holding->reported && exposure.holding->claim.empty()) {
    return Ruling{
        .reason = Reason::PendingWithoutDevice, .message = "the pod is Pending and holds no device yet", .until = {}};
  }
  if (!pod.meta.controller && !(exposure.policy->evict && exposure.policy->evict->bare_pods)) {
    return Ruling{.reason = Reason::BarePod,
                  .message = "no controller would replace it; evict.barePods: true in policy " + exposure.policy->name +
                             " overrides",
                  .until = {}};
  }
  return std::nullopt;
}

}  // namespace dhc
