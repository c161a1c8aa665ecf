#pragma once
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/shared_text.h"

namespace dhc {

/// The identity of one device, or of a node that has an incident of its own. DRA: driver, pool, device, cluster-wide.
/// Device plugin: node, resource, plugin's own ID.
struct DeviceKey {
  enum class Source : unsigned char {
    Dra,
    Plugin,
    RejectingNode,  ///< No device: a node whose kubelet rejects the pods that ask for a resource.
    NodeTaint,      ///< No device: a node with our taint, of which nothing else is remembered.
  };
  Source source = Source::Dra;
  SharedText scope;   ///< DRA: driver. Plugin, RejectingNode: resource.
  SharedText place;   ///< DRA: pool. Else: node.
  SharedText device;  ///< DRA: device. Plugin: ID.

  [[nodiscard]] static DeviceKey dra(SharedText driver, SharedText pool, SharedText device);
  [[nodiscard]] static DeviceKey plugin(SharedText node, SharedText resource, SharedText id);
  [[nodiscard]] static DeviceKey rejecting_node(SharedText node, SharedText resource);
  [[nodiscard]] static DeviceKey node_taint(SharedText node);

  /// Whether it is a device, and not a node with an incident of its own.
  [[nodiscard]] bool is_device() const { return source == Source::Dra || source == Source::Plugin; }

  friend auto operator<=>(const DeviceKey&, const DeviceKey&) = default;
};

/// The ID of the card behind a replica of a device plugin, and which replica of it: `GPU-1::3` is number 3 of `GPU-1`.
/// **Source:** NVIDIA's device plugin, internal/rm/devices.go: `<id>::<n>`, n from 0; GKE's, gpusharing.go:
/// `nvidia<k>/vgpu<n>`; Intel's, cmd/gpu_plugin: `card<k>-<n>`.
struct PluginCard {
  std::string_view id;
  std::int64_t replica = 0;
};
[[nodiscard]] PluginCard card_of_plugin_id(std::string_view id);

/// The card that the device's own name tells: of a device plugin's the one behind a replica.
[[nodiscard]] std::string_view card_by_name(const DeviceKey& key);

/// Looks at the entries of a map by device that are of the same card by their names, this device's own among them, in
/// their order.
template <class Map, class Look>
void for_each_of_card(const Map& map, const DeviceKey& key, const Look& look) {
  const auto card = card_by_name(key);
  auto first = key;
  first.device = card;
  // The names of a card's devices begin with the card's.
  for (auto at = map.lower_bound(first); at != map.end(); ++at) {
    const auto& other = at->first;
    if (other.source != key.source || other.scope != key.scope || other.place != key.place) break;
    if (!other.device.view().starts_with(card)) break;
    if (card_by_name(other) == card) look(other, at->second);
  }
}

/// `driver/pool/device`, `node/resource/id`, or for a node `node/resource` or `node`; for people.
[[nodiscard]] std::string to_string(const DeviceKey& key);

/// The source as a word of the stored state, and back; nothing: it is none of them.
[[nodiscard]] std::string_view to_string(DeviceKey::Source source);
[[nodiscard]] std::optional<DeviceKey::Source> parse_source(std::string_view word);

/// Whether the device's name is that of the hardware itself, wherever it sits: it holds a UUID. **Source:** NVIDIA's
/// device plugin (`GPU-<uuid>`, `MIG-<uuid>`, `<id>::<n>`).
[[nodiscard]] bool names_hardware(const DeviceKey& key);

/// Hash for unordered containers.
struct DeviceKeyHash {
  [[nodiscard]] std::size_t operator()(const DeviceKey& key) const;
};

}  // namespace dhc
