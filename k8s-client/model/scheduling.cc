#include "k8s-client/model/scheduling.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace dhc::k8s {

namespace {

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool compares(const NodeRequirement& requirement, std::optional<std::string_view> value) {
  if (!value || requirement.values.size() != 1) return false;
  const auto have = whole_number(*value);
  const auto limit = whole_number(requirement.values.front());
  if (!have || !limit) return false;
  return requirement.op == NodeRequirement::Operator::Gt ? *have > *limit : *have < *limit;
}

bool is_met(const NodeRequirement& requirement, const Node& node) {
  const bool names_node = requirement.is_field && requirement.key == "metadata.name";
  if (requirement.is_field && !names_node) return false;
  const auto value =
      names_node ? std::optional<std::string_view>(node.meta.name) : find(node.meta.labels, requirement.key);
  const bool listed = value && std::ranges::find(requirement.values, *value) != requirement.values.end();
  switch (requirement.op) {
    case NodeRequirement::Operator::In:
      return listed;
    case NodeRequirement::Operator::NotIn:
      return !listed;
    case NodeRequirement::Operator::Exists:
      return value.has_value();
    case NodeRequirement::Operator::DoesNotExist:
      return !value.has_value();
    case NodeRequirement::Operator::Gt:
    case NodeRequirement::Operator::Lt:
      return compares(requirement, value);
    case NodeRequirement::Operator::Unknown:
      return false;
  }
  return false;
}

bool is_tolerated(const Toleration& toleration, const Taint& taint) {
  if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
  if (toleration.key.empty() ? !toleration.exists : toleration.key != taint.key) return false;
  return toleration.exists || toleration.value == taint.value;
}

}  // namespace

bool tolerates(const std::vector<Toleration>& tolerations, const Taint& taint) {
  return std::ranges::any_of(tolerations,
                             [&](const Toleration& toleration) { return is_tolerated(toleration, taint); });
}

bool selects_node(const SchedulingTerms& terms, const Node& node) {
  const bool labels_fit = std::ranges::all_of(terms.node_selector, [&](const auto& wanted) {
    return find(node.meta.labels, wanted.first) == std::string_view(wanted.second);
  });
  if (!labels_fit) return false;
  if (!terms.has_node_terms) return true;
  return std::ranges::any_of(terms.node_terms, [&](const NodeTerm& term) {
    return !term.empty() &&
           std::ranges::all_of(term, [&](const auto& requirement) { return is_met(requirement, node); });
  });
}

bool keeps_pods_off(const Taint& taint) { return taint.effect == "NoSchedule" || taint.effect == "NoExecute"; }

bool tolerates_taints(const SchedulingTerms& terms, const Node& node) {
  return std::ranges::all_of(
      node.taints, [&](const Taint& taint) { return !keeps_pods_off(taint) || tolerates(terms.tolerations, taint); });
}

}  // namespace dhc::k8s
