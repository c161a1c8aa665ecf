#include "domain/device_key.h"

#include <utility>

namespace dhc {

DeviceKey DeviceKey::dra(std::string driver, std::string pool, std::string device) {
  return {.source = Source::Dra, .scope = std::move(driver), .place = std::move(pool), .device = std::move(device)};
}

DeviceKey DeviceKey::plugin(std::string node, std::string resource, std::string id) {
  return {.source = Source::Plugin, .scope = std::move(resource), .place = std::move(node), .device = std::move(id)};
}

std::string to_string(const DeviceKey& key) {
  if (key.source == DeviceKey::Source::Dra) return key.scope + "/" + key.place + "/" + key.device;
  return key.place + "/" + key.scope + "/" + key.device;
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
