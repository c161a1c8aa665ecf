#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace dhc::k8s {

/// The whole number that a resource quantity names, such as `8`, `1k`, `2Ki`, `2000m` or `1e3`; nothing if it is not a
/// quantity, not a whole number, negative or above 2^63-1. Extended resources are counted in whole devices.
/// **Source:** apimachinery resource.Quantity; core/v1 validation refuses fractions of extended resources.
[[nodiscard]] std::optional<std::int64_t> parse_whole_quantity(std::string_view text);

/// True for a resource that a device plugin serves: its name has a domain that is not Kubernetes' own.
/// **Source:** k/k IsExtendedResourceName.
[[nodiscard]] bool is_extended_resource(std::string_view name);

}  // namespace dhc::k8s
