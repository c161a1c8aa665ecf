#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "domain/policy/config_documents.h"

namespace dhc {

namespace {

/// What a kubelet or the node lifecycle controller writes, and what we ourselves take for a node that leaves.
constexpr std::array<std::string_view, 10> kOfKubernetes = {"Ready",
                                                            "MemoryPressure",
                                                            "DiskPressure",
                                                            "PIDPressure",
                                                            "NetworkUnavailable",
                                                            "GracefulNodeShutdownInProgress",
                                                            "MaintenanceInProgress",
                                                            "DrainInProgress",
                                                            "Drained",
                                                            "MaintenancePlanned"};

/// **Source:** meta/v1 Condition: a CamelCase word, or one behind a DNS subdomain. Node conditions are not validated.
bool is_condition_type(std::string_view text) {
  constexpr std::size_t kMostName = 63;
  if (const auto slash = text.find('/'); slash != std::string_view::npos) {
    if (!is_dns_subdomain(text.substr(0, slash))) return false;
    text.remove_prefix(slash + 1);
  }
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !text.empty() && text.size() <= kMostName && is_letter(text.front()) &&
         std::ranges::all_of(text, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

std::optional<HandOverCondition> read_node_condition(const YamlNode& node, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 2> kKeys = {"type", "unhealthy"};
  constexpr std::string_view kPath = "spec.handOver.nodeCondition";
  HandOverCondition found;
  if (!check_map(node, kPath, kKeys, mistakes)) return std::nullopt;
  const YamlNode* type = node.find("type");
  if (type == nullptr) {
    mistakes.add(node.place, fmt::format("{} has no type", kPath),
                 "write the type that the node's repairer is told to watch, such as device-health.io/NodeNeedsRepair");
    return std::nullopt;
  }
  auto text = read_text(*type, "spec.handOver.nodeCondition.type", mistakes);
  if (text && std::ranges::find(kOfKubernetes, *text) != kOfKubernetes.end()) {
    mistakes.add(type->place, fmt::format("{}.type is {}, which others write", kPath, shown(*text)),
                 "write a type of your own, such as device-health.io/NodeNeedsRepair");
  } else if (text && !is_condition_type(*text)) {
    mistakes.add(type->place, fmt::format("{}.type is {}, which is no condition's type", kPath, shown(*text)),
                 "write a CamelCase word of letters and digits, or one behind a domain and a slash");
  }
  found.type = std::move(text).value_or("");
  if (const YamlNode* given = node.find("unhealthy")) {
    const auto status = read_text(*given, "spec.handOver.nodeCondition.unhealthy", mistakes);
    if (status && *status != "True" && *status != "False") {
      mistakes.add(given->place, fmt::format("{}.unhealthy is {}", kPath, shown(*status)),
                   "write \"True\" for a condition that names a problem, or \"False\" for one that names health");
    }
    found.is_problem = status.value_or("True") == "True";
  }
  return found;
}

}  // namespace

HandOverRules read_hand_over(const YamlNode& node, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 5> kKeys = {"incidents", "within", "onQuarantine", "nodeCondition",
                                                            "resource"};
  constexpr std::int64_t kMostIncidents = 10;  // so many are remembered of a device
  HandOverRules rules;
  if (!check_map(node, "spec.handOver", kKeys, mistakes)) return rules;
  bool sure = true;  // Beside a number that is wrong already the check below would only guess.
  if (const YamlNode* given = node.find("incidents")) {
    const auto incidents = read_number(*given, "spec.handOver.incidents", 0, kMostIncidents, mistakes);
    sure = incidents.has_value();
    set(rules.incidents, incidents);
  }
  if (const YamlNode* given = node.find("within")) {
    set(rules.within, read_duration(*given, "spec.handOver.within", Seconds(1), mistakes));
  }
  if (const YamlNode* given = node.find("onQuarantine")) {
    set(rules.on_quarantine, read_flag(*given, "spec.handOver.onQuarantine", mistakes));
  }
  if (sure && rules.incidents == 0 && !rules.on_quarantine) {
    mistakes.add(node.place, "spec.handOver never happens: incidents is 0 and onQuarantine is false",
                 "write incidents: 3 or onQuarantine: true, or remove handOver");
  }
  if (const YamlNode* given = node.find("nodeCondition")) {
    rules.condition = read_node_condition(*given, mistakes);
  }
  if (const YamlNode* given = node.find("resource")) rules.resource = read_hand_over_resource(*given, mistakes);
  if (node.find("nodeCondition") == nullptr && node.find("resource") == nullptr) {
    mistakes.add(node.place, "spec.handOver tells nobody: it has neither nodeCondition nor resource",
                 "add nodeCondition: {type: device-health.io/NodeNeedsRepair}, or a resource");
  }
  return rules;
}

}  // namespace dhc
