#include "domain/contract/our_taint.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/hash.h"
#include "domain/contract/names.h"

namespace dhc {

namespace {

constexpr std::size_t kLongestLabel = 63;
// Of 253 that a name may have, with prefix, hash and hyphens.
constexpr std::size_t kLongestPool = 100;
constexpr std::size_t kLongestDevice = 63;

/// Whether it is one of the names that we give to the rules for this device.
bool is_name_for(std::string_view name, const DeviceKey& key) {
  return name == rule_name(key) || name == old_rule_name(key) || name == card_rule_name(key);
}

std::uint64_t hash_of_device(const DeviceKey& key) {
  // A NUL stands in no name, so that two devices never make the same text.
  return stable_hash(key.scope + '\0' + key.place + '\0' + key.device);
}

bool is_label_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

/// Small letters, digits and hyphens: fit for a name.
std::string slug_of(std::string_view text, std::size_t most) {
  std::string slug(text.substr(0, most));
  for (char& c : slug) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (!is_label_letter(c)) c = '-';
  }
  return slug;
}

}  // namespace

std::string rule_name(const DeviceKey& key) {
  return fmt::format("{}{}-{}-{:016x}", kRulePrefix, slug_of(key.place, kLongestPool),
                     slug_of(key.device, kLongestDevice), hash_of_device(key));
}

std::string card_rule_name(const DeviceKey& key) {
  return fmt::format("{}card-{}-{}-{:016x}", kRulePrefix, slug_of(key.place, kLongestPool),
                     slug_of(key.device, kLongestDevice), stable_hash(rule_name(key) + '\0' + "card"));
}

bool may_be_card_rule(std::string_view name) {
  return name.starts_with(kRulePrefix) && name.substr(kRulePrefix.size()).starts_with("card-");
}

std::string old_rule_name(const DeviceKey& key) { return fmt::format("{}{:016x}", kRulePrefix, hash_of_device(key)); }

std::string label_value(std::string_view text) {
  if (text.empty()) return {};
  const auto fits = [](char c) { return is_label_letter(c) || c == '-' || c == '_' || c == '.'; };
  if (text.size() <= kLongestLabel && std::ranges::all_of(text, fits) && is_label_letter(text.front()) &&
      is_label_letter(text.back())) {
    return std::string(text);
  }
  const auto hash = fmt::format("{:08x}", stable_hash(text) & 0xffffffffU);
  std::string value(text.substr(0, kLongestLabel - 1 - hash.size()));
  std::ranges::replace_if(value, [&](char c) { return !fits(c); }, '-');
  if (!is_label_letter(value.front())) value.front() = 'x';
  return value + "-" + hash;
}

bool is_our_rule(const k8s::DeviceTaintRule& rule) {
  return rule.meta.name.starts_with(kRulePrefix) &&
         k8s::find(rule.meta.labels, kManagedByLabel) == std::string_view(kManagedBy);
}

bool bears_our_name(const k8s::DeviceTaintRule& rule) {
  if (!rule.meta.name.starts_with(kRulePrefix)) return false;
  const auto device = device_of(rule);
  return is_our_rule(rule) || (device && is_name_for(rule.meta.name, *device));
}

std::optional<DeviceKey> same_card_as(const k8s::DeviceTaintRule& rule) {
  const auto bad = is_our_rule(rule) ? k8s::find(rule.meta.annotations, kSameCardAnnotation) : std::nullopt;
  const auto device = device_of(rule);
  if (!bad || !device || rule.meta.name != card_rule_name(*device)) return std::nullopt;
  return DeviceKey::dra(device->scope, device->place, std::string(*bad));
}

std::optional<DeviceKey> device_of(const k8s::DeviceTaintRule& rule) {
  if (!rule.has_selector || rule.has_other_selectors || !rule.driver || !rule.pool || !rule.device) return std::nullopt;
  return DeviceKey::dra(*rule.driver, *rule.pool, *rule.device);
}

std::optional<std::string> changed_by_other(const k8s::DeviceTaintRule& rule) {
  const auto manager = k8s::find(rule.meta.labels, kManagedByLabel);
  if (!manager) return fmt::format("its label {} is gone", kManagedByLabel);
  if (*manager != kManagedBy) return fmt::format("its label {} is '{}'", kManagedByLabel, *manager);
  const auto device = device_of(rule);
  if (!device || !is_name_for(rule.meta.name, *device)) return "its selector no longer names the device";
  if (rule.taint.key != kTaintKey) return "its taint's key is " + rule.taint.key;
  if (rule.taint.value != kRuleValue) return "its taint's value is '" + rule.taint.value + "'";
  const auto applied = k8s::find(rule.meta.annotations, kEffectAnnotation);
  if (!applied) return fmt::format("its annotation {} is gone", kEffectAnnotation);
  if (*applied != rule.taint.effect) return "its effect is " + rule.taint.effect;
  return std::nullopt;
}

bool is_as_we_make_it(const k8s::DeviceTaintRule& rule) { return is_our_rule(rule) && !changed_by_other(rule); }

std::int64_t incidents_on(const k8s::DeviceTaintRule& rule) {
  std::int64_t count = 0;
  for (const char c : k8s::find(rule.meta.annotations, kIncidentsAnnotation).value_or(std::string_view())) {
    if (c < '0' || c > '9' || count > 1000) return 0;
    count = count * 10 + (c - '0');
  }
  return count;
}

bool is_acknowledged(const k8s::DeviceTaintRule& rule) {
  const auto said = k8s::find(rule.meta.annotations, kAcknowledgeAnnotation);
  return said && !said->empty() && *said != "false";
}

std::optional<std::size_t> our_taint_on(const k8s::Node& node) {
  auto found = std::ranges::find(node.taints, node_taint());
  if (found == node.taints.end()) found = std::ranges::find(node.taints, kTaintKey, &k8s::Taint::key);
  if (found == node.taints.end()) return std::nullopt;
  return static_cast<std::size_t>(found - node.taints.begin());
}

k8s::Taint rule_taint() {
  return {.key = std::string(kTaintKey), .value = std::string(kRuleValue), .effect = "NoSchedule"};
}

k8s::Taint node_taint() { return rule_taint(); }

}  // namespace dhc
