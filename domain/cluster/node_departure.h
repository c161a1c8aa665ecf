#pragma once
#include <optional>
#include <string>

#include "base/now.h"
#include "k8s-client/model/node.h"

namespace dhc {

/// Why the node is about to leave, or to be worked on, in words: its pods are somebody else's to move, and what breaks
/// on it says nothing of its devices. None: it stays, as far as anybody has said; a cordon alone does not say so.
/// **Source:** a deletionTimestamp; `Node::lifecycle`; `ToBeDeletedByClusterAutoscaler` (kubernetes/autoscaler:
/// cluster-autoscaler/utils/taints/taints.go, 0af55ac; its `DeletionCandidateOfClusterAutoscaler` is a wish and does
/// not count); `karpenter.sh/disrupted`, which Karpenter also sets when it terminates a node
/// (kubernetes-sigs/karpenter: pkg/apis/v1/taints.go, 09ae891), `karpenter.sh/disruption` up to v0.37 (v1beta1).
[[nodiscard]] std::optional<std::string> why_leaving(const k8s::Node& node);

/// When its cordon's taint was added, by the API server's clock; none: it is not cordoned, or the taint does not say.
/// **Source:** kube-controller-manager's node lifecycle controller adds `node.kubernetes.io/unschedulable` to each node
/// with `spec.unschedulable`, with `timeAdded`.
[[nodiscard]] std::optional<WallTime> cordoned_at(const k8s::Node& node);

}  // namespace dhc
