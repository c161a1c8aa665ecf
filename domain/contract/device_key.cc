#include "domain/contract/device_key.h"

#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/uuid.h"

namespace dhc {

namespace {

/// A number as replicas and cards have it.
std::optional<std::int64_t> number_in(std::string_view text) {
  constexpr std::int64_t kMost = 10'000;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  return is_number && number >= 0 && number < kMost ? std::optional(number) : std::nullopt;
}

}  // namespace

DeviceKey DeviceKey::dra(SharedText driver, SharedText pool, SharedText device) {
  return {.source = Source::Dra, .scope = std::move(driver), .place = std::move(pool), .device = std::move(device)};
}

DeviceKey DeviceKey::plugin(SharedText node, SharedText resource, SharedText id) {
  return {.source = Source::Plugin, .scope = std::move(resource), .place = std::move(node), .device = std::move(id)};
}

DeviceKey DeviceKey::rejecting_node(SharedText node, SharedText resource) {
  return {.source = Source::RejectingNode, .scope = std::move(resource), .place = std::move(node), .device = {}};
}

DeviceKey DeviceKey::node_taint(SharedText node) {
  return {.source = Source::NodeTaint, .scope = {}, .place = std::move(node), .device = {}};
}

std::string to_string(const DeviceKey& key) {
  switch (key.source) {
    case DeviceKey::Source::Dra:
      return fmt::format("{}/{}/{}", key.scope, key.place, key.device);
    case DeviceKey::Source::Plugin:
      return fmt::format("{}/{}/{}", key.place, key.scope, key.device);
    case DeviceKey::Source::RejectingNode:
      return key.place + "/" + key.scope;
    case DeviceKey::Source::NodeTaint:
      return key.place;
  }
  return key.place;
}

std::string_view to_string(DeviceKey::Source source) {
  switch (source) {
    case DeviceKey::Source::Dra:
      return "dra";
    case DeviceKey::Source::Plugin:
      return "plugin";
    case DeviceKey::Source::RejectingNode:
      return "rejectingNode";
    case DeviceKey::Source::NodeTaint:
      return "nodeTaint";
  }
  return "dra";
}

std::optional<DeviceKey::Source> parse_source(std::string_view word) {
  for (const auto source : {DeviceKey::Source::Dra, DeviceKey::Source::Plugin, DeviceKey::Source::RejectingNode,
                            DeviceKey::Source::NodeTaint}) {
    if (to_string(source) == word) return source;
  }
  return std::nullopt;
}

PluginCard card_of_plugin_id(std::string_view id) {
  for (const std::string_view mark : {"::", "/vgpu", "-"}) {
    const auto at = id.rfind(mark);
    if (at == 0 || at == std::string_view::npos) continue;
    const auto card = id.substr(0, at);
    // A hyphen alone is in many names.
    if (mark == "-" && !(card.starts_with("card") && number_in(card.substr(4)))) continue;
    if (const auto replica = number_in(id.substr(at + mark.size()))) return {.id = card, .replica = *replica};
  }
  return {.id = id};
}

std::string_view card_by_name(const DeviceKey& key) {
  return key.source == DeviceKey::Source::Plugin ? card_of_plugin_id(key.device).id : key.device.view();
}

bool names_hardware(const DeviceKey& key) {
  const std::string_view name = key.device;
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (begins_with_uuid(name.substr(at))) return true;
  }
  return false;
}

std::size_t DeviceKeyHash::operator()(const DeviceKey& key) const {
  const std::hash<std::string_view> hash;
  std::size_t seed = hash(key.scope);
  for (const std::string_view part : {std::string_view(key.place), std::string_view(key.device)}) {
    seed ^= hash(part) + 0x9e3779b97f4a7c15U + (seed << 6U) + (seed >> 2U);
  }
  return seed;
}

}  // namespace dhc
