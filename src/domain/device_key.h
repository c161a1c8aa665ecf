#pragma once
#include <compare>
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

/// `driver/pool/device` or `node/resource/id`, for people.
[[nodiscard]] std::string to_string(const DeviceKey& key);

/// Hash for unordered containers.
struct DeviceKeyHash {
  [[nodiscard]] std::size_t operator()(const DeviceKey& key) const;
};

}  // namespace dhc
