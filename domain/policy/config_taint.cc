#include <algorithm>
#include <array>
#include <chrono>

#include <fmt/format.h>

#include "domain/policy/config_documents.h"
#include "domain/policy/config_duration.h"

namespace dhc {

namespace {

constexpr std::int64_t kMostDevices = 10'000;

/// True, and a mistake, if the word is NoExecute.
/// **Source:** seen on 1.37.1: 220 pods of one shared claim created and deleted in a minute.
bool note_no_execute(const YamlNode& node, std::string_view path, MistakeList& mistakes) {
  if (node.kind != YamlNode::Kind::Scalar || node.text != "NoExecute") return false;
  mistakes.add(
      node.place,
      fmt::format("{} is 'NoExecute', which is not offered: it deletes pods past PodDisruptionBudgets, opt-outs "
                  "and every other policy's scope, and storms on shared claims (seen: 220 pods in a minute)",
                  path),
      "write NoSchedule, and let evict handle running pods");
  return true;
}

std::optional<TaintRules::Device> read_device_taint(const YamlNode& node, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 3> kWords = {"Never", "NoSchedule", "Staged"};
  static constexpr std::array<TaintRules::Device, 3> kValues = {
      TaintRules::Device::Never, TaintRules::Device::NoSchedule, TaintRules::Device::Staged};
  constexpr std::string_view kPath = "spec.taint.device";
  if (note_no_execute(node, kPath, mistakes)) return std::nullopt;
  const auto which = read_word(node, kPath, kWords, mistakes);
  if (!which) return std::nullopt;
  return kValues.at(*which);
}

void read_node_at_least(const YamlNode& node, TaintRules& rules, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 2> kKeys = {"devices", "percent"};
  if (!check_map(node, "spec.taint.nodeAtLeast", kKeys, mistakes)) return;
  if (const YamlNode* given = node.find("devices")) {
    set(rules.node_at_least_devices, read_number(*given, "spec.taint.nodeAtLeast.devices", 1, kMostDevices, mistakes));
  }
  if (const YamlNode* given = node.find("percent")) {
    set(rules.node_at_least_percent, read_number(*given, "spec.taint.nodeAtLeast.percent", 1, 100, mistakes));
  }
}

/// True if `text` names an attribute of a device: an identifier, with or without the domain of who defines it.
/// **Source:** k8s.io/api/resource/v1, QualifiedName: C identifier of at most 32, DNS subdomain of at most 63.
bool is_attribute_name(std::string_view text) {
  constexpr std::size_t kMostDomain = 63;
  constexpr std::size_t kMostIdentifier = 32;
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
    const std::string_view domain = text.substr(0, slash);
    if (domain.size() > kMostDomain || !is_dns_subdomain(domain)) return false;
    text.remove_prefix(slash + 1);
  }
  if (text.empty() || text.size() > kMostIdentifier || (text[0] >= '0' && text[0] <= '9')) return false;
  return std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

/// A hold doubles with each incident up to this; a longer one would silently be cut.
constexpr Millis kLongestHoldGiven = std::chrono::hours(168);

std::optional<Millis> read_hold(const YamlNode& node, MistakeList& mistakes) {
  constexpr std::string_view kPath = "spec.recover.hold";
  const auto hold = read_duration(node, kPath, Seconds(1), mistakes);
  if (!hold || *hold <= kLongestHoldGiven) return hold;
  mistakes.add(node.place,
               fmt::format("{} is {}: holds double with each incident and end at 7 days ({})", kPath, shown(node.text),
                           format_duration(kLongestHoldGiven)),
               "write 168h or less; then: Keep holds until an operator acknowledges");
  return std::nullopt;
}

}  // namespace

std::optional<bool> read_node_taint(const YamlNode& node, std::string_view path, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 2> kWords = {"Never", "NoSchedule"};
  if (note_no_execute(node, path, mistakes)) return std::nullopt;
  const auto which = read_word(node, path, kWords, mistakes);
  if (!which) return std::nullopt;
  return *which == 1;
}

TaintRules read_taint(const YamlNode& node, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 4> kKeys = {"device", "node", "nodeAtLeast", "partitions"};
  TaintRules rules;
  if (!check_map(node, "spec.taint", kKeys, mistakes)) return rules;
  bool sure = true;  // Between words that are wrong already the checks below would only guess.
  if (const YamlNode* given = node.find("device")) {
    const auto device = read_device_taint(*given, mistakes);
    sure = device.has_value();
    set(rules.device, device);
  }
  const YamlNode* partitions = node.find("partitions");
  if (partitions != nullptr) {
    const auto taint = read_node_taint(*partitions, "spec.taint.partitions", mistakes);
    sure = sure && taint.has_value();
    set(rules.partitions, taint);
  }
  if (const YamlNode* given = node.find("node")) {
    const auto taint = read_node_taint(*given, "spec.taint.node", mistakes);
    sure = sure && taint.has_value();
    set(rules.node, taint);
  }
  const YamlNode* at_least = node.find("nodeAtLeast");
  if (at_least != nullptr) read_node_at_least(*at_least, rules, mistakes);
  if (sure && partitions != nullptr && rules.partitions && rules.device == TaintRules::Device::Never) {
    mistakes.add(partitions->place, "spec.taint.partitions has no effect: spec.taint.device is Never",
                 "write device: NoSchedule, or remove partitions");
  }
  if (!sure || rules.node) return rules;
  if (rules.device == TaintRules::Device::Never) {
    mistakes.add(node.place, "spec.taint taints nothing: device and node are both Never",
                 "remove taint, or write device: NoSchedule or node: NoSchedule");
  } else if (at_least != nullptr) {
    mistakes.add(at_least->place, "spec.taint.nodeAtLeast has no effect: spec.taint.node is Never",
                 "write node: NoSchedule, or remove nodeAtLeast");
  }
  return rules;
}

RecoverRules read_recover(const YamlNode& node, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 6> kKeys = {
      "healthyFor", "hold", "then", "halfLife", "quarantineAbove", "identityAttribute"};
  static constexpr std::array<std::string_view, 2> kThen = {"Probation", "Keep"};
  constexpr std::int64_t kMostPenalty = 1000;
  RecoverRules rules;
  if (!check_map(node, "spec.recover", kKeys, mistakes)) return rules;
  if (const YamlNode* given = node.find("healthyFor")) {
    set(rules.healthy_for, read_duration(*given, "spec.recover.healthyFor", Seconds(1), mistakes));
  }
  if (const YamlNode* given = node.find("hold")) set(rules.hold, read_hold(*given, mistakes));
  if (const YamlNode* given = node.find("then")) {
    rules.probation = read_word(*given, "spec.recover.then", kThen, mistakes).value_or(0) == 0;
  }
  if (const YamlNode* given = node.find("halfLife")) {
    set(rules.half_life, read_duration(*given, "spec.recover.halfLife", Seconds(1), mistakes));
  }
  if (const YamlNode* given = node.find("quarantineAbove")) {
    set(rules.quarantine_above, read_decimal(*given, "spec.recover.quarantineAbove", 1, kMostPenalty, mistakes));
  }
  if (const YamlNode* given = node.find("identityAttribute")) {
    const auto name = read_text(*given, "spec.recover.identityAttribute", mistakes);
    if (name && !is_attribute_name(*name)) {
      mistakes.add(
          given->place,
          fmt::format("spec.recover.identityAttribute is {}, which is no device attribute's name", shown(*name)),
          "write a name such as uuid or gpu.nvidia.com/uuid, as the ResourceSlice has it");
    } else {
      set(rules.identity_attribute, name);
    }
  }
  return rules;
}

}  // namespace dhc
