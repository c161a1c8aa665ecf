#pragma once
#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace dhc {

/// The identity of one device. DRA: driver, pool, device, cluster-wide. Device plugin: node, resource, plugin's own ID.
struct DeviceKey {
  enum class Source : unsigned char { Dra, Plugin };
  Source source = Source::Dra;
  std::string scope;   ///< DRA: driver. Plugin: resource.
  std::string place;   ///< DRA: pool. Plugin: node.
  std::string device;  ///< DRA: device. Plugin: ID.

  [[nodiscard]] static DeviceKey dra(std::string driver, std::string pool, std::string device);
  [[nodiscard]] static DeviceKey plugin(std::string node, std::string resource, std::string id);

  friend auto operator<=>(const DeviceKey&, const DeviceKey&) = default;
};

/// The ID of the card behind a replica of a device plugin, and which replica of it: `GPU-1::3` is number 3 of `GPU-1`.
/// **Source:** NVIDIA's device plugin, internal/rm/devices.go: `<id>::<n>`, n from 0.
struct PluginCard {
  std::string_view id;
  std::int64_t replica = 0;
};
[[nodiscard]] PluginCard card_of_plugin_id(std::string_view id);

/// `driver/pool/device` or `node/resource/id`, for people.
[[nodiscard]] std::string to_string(const DeviceKey& key);

/// Whether the device's name is that of the hardware itself, wherever it sits: it holds a UUID. **Source:** NVIDIA's
/// device plugin (`GPU-<uuid>`, `MIG-<uuid>`, `<id>::<n>`).
[[nodiscard]] bool names_hardware(const DeviceKey& key);

/// Hash for unordered containers.
struct DeviceKeyHash {
  [[nodiscard]] std::size_t operator()(const DeviceKey& key) const;
};

}  // namespace dhc
