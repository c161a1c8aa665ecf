#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "domain/cluster/world.h"

namespace dhc {

/// Devices of a DRA driver that are alike as far as we can tell.
struct DeviceKind {
  std::string driver;
  k8s::StringMap like;  ///< Attributes that say what kind of device it is, with the values that are needed.
  friend auto operator<=>(const DeviceKind&, const DeviceKind&) = default;
};

/// What must be free on one node at once for these pods, or their replacements, to run there.
struct Demand {
  std::vector<k8s::Shared<k8s::SchedulingTerms>> terms;  ///< The node must be accepted by each.
  std::map<std::string, std::int64_t> resources;         ///< Device-plugin resources.
  std::map<DeviceKind, std::int64_t> devices;            ///< DRA devices.
  friend auto operator<=>(const Demand&, const Demand&) = default;
};

/// What the pods need together. An allocated claim is judged by what it was given: devices of the same kind fit its
/// DeviceClass and CEL selectors, which are not read. One that is not allocated is judged by what other claims of the
/// class were given.
[[nodiscard]] Demand demand_of(std::span<const k8s::Pod* const> pods, const World& world);

/// Whether the device is of the kind.
[[nodiscard]] bool is_of_kind(const PublishedDevice& device, const DeviceKind& kind);

/// `2 example.com/gpu and 1 device of gpu.example.com`.
[[nodiscard]] std::string to_string(const Demand& demand);

/// What the search for a place does not judge, for people.
[[nodiscard]] std::string not_judged(const Demand& demand);

}  // namespace dhc
