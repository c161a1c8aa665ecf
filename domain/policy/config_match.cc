#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "base/nearest_word.h"
#include "domain/contract/names.h"
#include "domain/policy/config_documents.h"
#include "domain/policy/known_words.h"

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

/// A word as Kubernetes makes them.
bool is_camel_case(std::string_view word) {
  const auto fits = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !word.empty() && word.size() <= k8s::kLongestHealthWord && word.front() >= 'A' && word.front() <= 'Z' &&
         std::ranges::all_of(word, fits);
}

constexpr std::array<std::string_view, 3> kHealthWords = {"Healthy", "Unhealthy", "Unknown"};

}  // namespace

std::string_view health_word_meant(std::string_view word) {
  const auto nearest = nearest_word(word, kHealthWords);
  const auto apart = std::max(nearest.size(), word.size()) - std::min(nearest.size(), word.size());
  return nearest.empty() || apart > 2 ? std::string_view() : nearest;
}

bool is_health_word(std::string_view word) {
  if (std::ranges::find(kHealthWords, word) != kHealthWords.end()) return true;
  return is_camel_case(word) && health_word_meant(word).empty();
}

namespace {

/// **Source:** KEP-4680: the words of today, and that others will follow.
void read_health_word(const YamlNode& item, const std::string& path, Match& match, MistakeList& mistakes) {
  const auto word = read_text(item, path, mistakes);
  if (!word) return;
  for (const auto health : {k8s::Health::Unhealthy, k8s::Health::Unknown}) {
    if (*word == k8s::to_string(health)) return match.health.push_back(health);
  }
  if (const auto meant = health_word_meant(*word); !meant.empty() || !is_camel_case(*word)) {
    const bool is_good = meant == k8s::to_string(k8s::Health::Healthy);
    return mistakes.add(item.place, fmt::format("{}: {} is no state of a bad device", path, shown(*word)),
                        meant.empty() || is_good ? "write Unhealthy, Unknown, or a newer kubelet value"
                                                 : fmt::format("did you mean {}?", meant));
  }
  static constexpr std::string_view kAnnounced = "PermanentlyUnhealthy";
  if (*word != kAnnounced) {
    mistakes.warn(item.place, fmt::format("{}: {} is no word that Kubernetes is known to report", path, shown(*word)),
                  "it counts if the kubelet reports exactly this; a device plugin or driver says Healthy or Unhealthy");
  }
  match.health_words.push_back(*word);
}

void read_health(const YamlNode& node, Match& match, MistakeList& mistakes) {
  match.health.clear();
  if (!check_list(node, "spec.match.health", mistakes)) return;
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const auto& item = node.items[i];
    const auto path = fmt::format("spec.match.health[{}]", i);
    if (item.kind == YamlNode::Kind::Scalar && !seen.insert(item.text).second) {
      mistakes.add(item.place, fmt::format("spec.match.health: '{}' is a duplicate", item.text), "remove one of them");
      continue;
    }
    read_health_word(item, path, match, mistakes);
  }
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
      mistakes.add(item.place, path + " is a duplicate", "remove one of them");
    }
    conditions.push_back(std::move(condition));
  }
  return conditions;
}

/// Why `glob` can match no taint; empty if it can.
std::string why_no_taint_glob(std::string_view part, std::string_view glob) {
  static constexpr std::array<std::string_view, 3> kEffects = {"NoSchedule", "NoExecute", "None"};
  if (glob.size() > kMostGlob) return "longer than any taint's";
  if (part == "effect" && std::ranges::none_of(kEffects, [&](auto effect) { return glob_matches(glob, effect); })) {
    return "an effect is NoSchedule, NoExecute or None";
  }
  if (part == "key" && glob == kTaintKey) return "this is our own taint, which is set by rules, never in a slice";
  const auto fits = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.' || c == '/' || is_wild(c);
  };
  const bool is_name = std::ranges::all_of(glob, fits) && (part == "key" || !glob.contains('/'));
  return is_name ? std::string() : std::string("no taint has such a character; only * and ? are wild");
}

void read_taint_part(const YamlNode& item, std::string_view part, const std::string& path, std::string& glob,
                     MistakeList& mistakes) {
  const YamlNode* given = item.find(part);
  if (given == nullptr) return;
  const auto name = fmt::format("{}.{}", path, part);
  // A taint without a value is one that a policy may mean.
  const bool is_empty_value = part == "value" && given->kind == YamlNode::Kind::Scalar && given->text.empty();
  const auto text = is_empty_value ? std::optional(std::string()) : read_text(*given, name, mistakes);
  if (!text) return;
  glob = *text;
  const auto why = why_no_taint_glob(part, glob);
  if (!why.empty()) {
    mistakes.add(given->place, fmt::format("{}: {} can match nothing: {}", name, shown(glob), why),
                 "write {key: gpu.nvidia.com/xid}, or part of a key with * for the rest");
  }
}

std::vector<DeviceTaintMatch> read_device_taints(const YamlNode& node, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 3> kKeys = {"key", "value", "effect"};
  const std::string list = "spec.match.deviceTaints";
  std::vector<DeviceTaintMatch> taints;
  if (!check_list(node, list, mistakes)) return taints;
  if (node.items.empty()) mistakes.add(node.place, list + " is an empty list", "name at least one, or remove the key");
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const YamlNode& item = node.items[i];
    const std::string path = fmt::format("{}[{}]", list, i);
    if (!check_map(item, path, kKeys, mistakes)) continue;
    DeviceTaintMatch taint;
    if (item.find("key") == nullptr) {
      mistakes.add(item.place, path + " has no key", "write {key: gpu.nvidia.com/xid}");
    }
    read_taint_part(item, "key", path, taint.key, mistakes);
    read_taint_part(item, "value", path, taint.value, mistakes);
    read_taint_part(item, "effect", path, taint.effect, mistakes);
    if (!taint.key.empty() && taint.key.find_first_not_of('*') == std::string::npos) {
      mistakes.warn(
          item.place,
          fmt::format("{}: key {} is every taint of the driver, and not all are about health", path, shown(taint.key)),
          "name the keys; docs/vendors.md has those that are known");
    }
    if (std::ranges::find(taints, taint) != taints.end()) {
      mistakes.add(item.place, path + " is a duplicate", "remove one of them");
    }
    taints.push_back(std::move(taint));
  }
  return taints;
}

void check_no_health(const YamlNode& node, const YamlNode& health, MistakeList& mistakes) {
  if (node.find("claimConditions") == nullptr && node.find("deviceTaints") == nullptr) {
    mistakes.add(health.place,
                 "spec.match.health is empty and there are no claimConditions and no deviceTaints: nothing would ever "
                 "match",
                 "write [Unhealthy], or remove the key");
  } else if (node.find("message") != nullptr) {
    mistakes.add(health.place, "spec.match.message belongs to the reported health, but spec.match.health is empty",
                 "remove message, or write health: [Unhealthy]");
  }
}

}  // namespace

std::vector<std::string> read_device_globs(const YamlNode& node, const std::string& path, bool resource,
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

Match read_match(const YamlNode& node, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 9> kKeys = {"resources",   "drivers",         "namespaceSelector",
                                                            "podSelector", "nodeSelector",    "health",
                                                            "message",     "claimConditions", "deviceTaints"};
  Match match;
  if (!check_map(node, "spec.match", kKeys, mistakes)) return match;
  if (const YamlNode* given = node.find("resources"))
    match.resources = read_device_globs(*given, "spec.match.resources", true, mistakes);
  if (const YamlNode* given = node.find("drivers"))
    match.drivers = read_device_globs(*given, "spec.match.drivers", false, mistakes);
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
  if (const YamlNode* given = node.find("deviceTaints")) {
    match.device_taints = read_device_taints(*given, mistakes);
    if (!match.resources.empty() && match.drivers.empty()) {
      mistakes.warn(given->place, "spec.match.deviceTaints can match nothing: match names resources alone",
                    "name the DRA drivers; a device-plugin resource has no device taints");
    }
  }
  const YamlNode* health = node.find("health");
  if (health == nullptr) return match;
  read_health(*health, match, mistakes);
  if (health->kind == YamlNode::Kind::Sequence && health->items.empty()) check_no_health(node, *health, mistakes);
  return match;
}

}  // namespace dhc
