#include "k8s-client/model/node.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace dhc::k8s {

namespace {

// The most pressing first.
constexpr std::array<std::string_view, 5> kLifecycle = {"GracefulNodeShutdownInProgress", "MaintenanceInProgress",
                                                        "DrainInProgress", "Drained", "MaintenancePlanned"};

// Whoever may write the node's status must not fill our memory.
constexpr std::size_t kMostKept = 16;

}  // namespace

void note_condition(Node& node, const Condition& condition, const KeptFields& kept) {
  const bool is_true = condition.status == "True";
  if (condition.type == "Ready") node.ready = is_true;
  const auto* const found = std::ranges::find(kLifecycle, condition.type);
  if (is_true && found < std::ranges::find(kLifecycle, node.lifecycle)) node.lifecycle = condition.type;
  if (std::ranges::find(kept.node_reasons, condition.reason) == kept.node_reasons.end()) return;
  const auto at = std::ranges::lower_bound(node.kept, condition.type, {}, &Condition::type);
  if (at != node.kept.end() && at->type == condition.type) return;
  node.kept.insert(at, condition);
  if (node.kept.size() > kMostKept) node.kept.pop_back();
}

std::int64_t amount_of(std::span<const ResourceAmount> amounts, std::string_view resource) {
  const auto at = std::ranges::find(amounts, resource, &ResourceAmount::resource);
  return at == amounts.end() ? 0 : at->amount;
}

}  // namespace dhc::k8s
