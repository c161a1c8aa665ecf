#include "domain/cluster/node_departure.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "k8s-client/model/scheduling.h"

namespace dhc {

namespace {

// The last is Karpenter's before its v1.
constexpr std::array<std::string_view, 3> kDeletionTaints = {"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted",
                                                             "karpenter.sh/disruption"};
constexpr std::string_view kCordonTaint = "node.kubernetes.io/unschedulable";

}  // namespace

std::optional<std::string> why_leaving(const k8s::Node& node) {
  if (node.meta.deletion) return "is being deleted";
  if (!node.lifecycle.empty()) return "has condition " + node.lifecycle;
  for (const auto& taint : node.taints) {
    if (k8s::keeps_pods_off(taint) && std::ranges::find(kDeletionTaints, taint.key) != kDeletionTaints.end())
      return "has the taint " + taint.key;
  }
  return std::nullopt;
}

std::optional<WallTime> cordoned_at(const k8s::Node& node) {
  if (!node.unschedulable) return std::nullopt;
  const auto taint = std::ranges::find(node.taints, kCordonTaint, &k8s::Taint::key);
  return taint == node.taints.end() ? std::nullopt : taint->time_added;
}

}  // namespace dhc
