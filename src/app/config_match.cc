#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "app/config_documents.h"
#include "app/known_words.h"

namespace dhc {

namespace {

constexpr std::size_t kMostGlob = 317;  // a DNS name of 253, a slash and a name of 63
constexpr std::size_t kMostPattern = 1024;

bool is_wild(char c) { return c == '*' || c == '?'; }

/// Why `glob` can match no resource or driver; empty if it can.
std::string why_no_glob(std::string_view glob, bool resource) {
  if (glob.size() > kMostGlob) return "longer than any name";
  const auto fits = [&](char c) {
    const bool name = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || is_wild(c);
    return name || (resource && ((c >= 'A' && c <= 'Z') || c == '_' || c == '/'));
  };
  const auto bad = std::ranges::find_if_not(glob, fits);
  if (bad != glob.end()) {
    const std::string_view rest = glob.substr(static_cast<std::size_t>(bad - glob.begin()), 1);
    if (rest == "[" || rest == "{" || rest == "!") return "only * and ? are wild here";
    if (rest == "/") return "a DRA driver's name has no slash; a device-plugin resource belongs into resources";
    return "no name has such a character";
  }
  const bool wild = std::ranges::any_of(glob, is_wild);
  if (resource && !wild && !glob.contains('/')) {
    return "a device-plugin resource has a domain, such as nvidia.com/gpu; a DRA driver belongs into drivers";
  }
  if (!resource && !wild && !is_dns_subdomain(glob)) return "a driver's name is a DNS name, such as gpu.nvidia.com";
  return {};
}

std::vector<std::string> read_globs(const YamlNode& node, const std::string& path, bool resource,
                                    MistakeList& mistakes) {
  std::vector<std::string> globs;
  for (auto& [glob, place] : read_texts(node, path, false, mistakes)) {
    const std::string why = why_no_glob(glob, resource);
    if (why.empty()) {
      globs.push_back(std::move(glob));
    } else {
      mistakes.add(place, fmt::format("{}: {} can match nothing: {}", path, shown(glob), why),
                   "write a name, or part of one with * for the rest");
    }
  }
  return globs;
}

std::vector<k8s::Health> read_health(const YamlNode& node, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 2> kWords = {"Unhealthy", "Unknown"};
  static constexpr std::array<k8s::Health, 2> kValues = {k8s::Health::Unhealthy, k8s::Health::Unknown};
  std::vector<k8s::Health> states;
  if (!check_list(node, "spec.match.health", mistakes)) return states;
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const auto which = read_word(node.items[i], fmt::format("spec.match.health[{}]", i), kWords, mistakes);
    if (!which) continue;
    if (std::ranges::find(states, kValues.at(*which)) != states.end()) {
      mistakes.add(node.items[i].place, fmt::format("spec.match.health: '{}' stands twice", kWords.at(*which)),
                   "remove one of them");
      continue;
    }
    states.push_back(kValues.at(*which));
  }
  return states;
}

std::optional<MessagePattern> read_pattern(const YamlNode& node, MistakeList& mistakes) {
  const std::string path = "spec.match.message";
  const auto text = read_text(node, path, mistakes);
  if (!text) return std::nullopt;
  if (text->size() > kMostPattern) {
    mistakes.add(node.place, fmt::format("{} is longer than {} bytes", path, kMostPattern),
                 "write a shorter expression");
    return std::nullopt;
  }
  auto pattern = MessagePattern::compile(*text);
  if (pattern) return *std::move(pattern);
  mistakes.add(node.place, fmt::format("{}: {} is no RE2 expression: {}", path, shown(*text), pattern.error()),
               "correct it; RE2 has no look-around, no back-references and no repeats above 1000");
  return std::nullopt;
}

std::vector<ClaimConditionMatch> read_claim_conditions(const YamlNode& node, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 2> kKeys = {"type", "status"};
  static constexpr std::array<std::string_view, 3> kStatuses = {"True", "False", "Unknown"};
  const std::string list = "spec.match.claimConditions";
  std::vector<ClaimConditionMatch> conditions;
  if (!check_list(node, list, mistakes)) return conditions;
  if (node.items.empty()) mistakes.add(node.place, list + " is an empty list", "name at least one, or remove the key");
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const YamlNode& item = node.items[i];
    const std::string path = fmt::format("{}[{}]", list, i);
    if (!check_map(item, path, kKeys, mistakes)) continue;
    ClaimConditionMatch condition;
    for (const std::string_view key : kKeys) {
      if (item.find(key) == nullptr) {
        mistakes.add(item.place, fmt::format("{} has no {}", path, key), "write {type: Ready, status: \"False\"}");
      }
    }
    if (const YamlNode* type = item.find("type"))
      condition.type = read_text(*type, path + ".type", mistakes).value_or("");
    if (const YamlNode* status = item.find("status")) {
      if (auto text = read_text(*status, path + ".status", mistakes)) {
        const auto which = read_word(*status, path + ".status", kStatuses, mistakes);
        if (which) condition.status = kStatuses.at(*which);
      }
    }
    if (std::ranges::find(conditions, condition) != conditions.end()) {
      mistakes.add(item.place, path + " stands there already", "remove one of them");
    }
    conditions.push_back(std::move(condition));
  }
  return conditions;
}

}  // namespace

Match read_match(const YamlNode& node, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 8> kKeys = {"resources",   "drivers",        "namespaceSelector",
                                                            "podSelector", "nodeSelector",   "health",
                                                            "message",     "claimConditions"};
  Match match;
  if (!check_map(node, "spec.match", kKeys, mistakes)) return match;
  if (const YamlNode* given = node.find("resources"))
    match.resources = read_globs(*given, "spec.match.resources", true, mistakes);
  if (const YamlNode* given = node.find("drivers"))
    match.drivers = read_globs(*given, "spec.match.drivers", false, mistakes);
  if (const YamlNode* given = node.find("namespaceSelector")) {
    match.namespaces = read_selector(*given, "spec.match.namespaceSelector", mistakes);
  }
  if (const YamlNode* given = node.find("podSelector")) {
    match.pods = read_selector(*given, "spec.match.podSelector", mistakes);
  }
  if (const YamlNode* given = node.find("nodeSelector")) {
    match.nodes = read_selector(*given, "spec.match.nodeSelector", mistakes);
  }
  if (const YamlNode* given = node.find("message")) {
    match.message = read_pattern(*given, mistakes);
    if (match.message) {
      if (const auto doubt = doubt_about(*match.message, match)) {
        mistakes.warn(given->place, "spec.match.message " + doubt->what, doubt->remedy);
      }
    }
  }
  if (const YamlNode* given = node.find("claimConditions")) {
    match.claim_conditions = read_claim_conditions(*given, mistakes);
  }
  const YamlNode* health = node.find("health");
  if (health == nullptr) return match;
  match.health = read_health(*health, mistakes);
  if (health->kind == YamlNode::Kind::Sequence && health->items.empty()) {
    if (node.find("claimConditions") == nullptr) {
      mistakes.add(health->place,
                   "spec.match.health is empty and there are no claimConditions: nothing would ever match",
                   "write [Unhealthy], or remove the key");
    } else if (node.find("message") != nullptr) {
      mistakes.add(health->place, "spec.match.message belongs to the reported health, but spec.match.health is empty",
                   "remove message, or write health: [Unhealthy]");
    }
  }
  return match;
}

}  // namespace dhc
