#pragma once
#include <string_view>

namespace dhc::k8s {

/// What the owner of a decoder wants kept of the maps and lists that anybody may fill, besides what this library reads
/// itself: annotations of every kind, labels of Jobs and conditions of pods whose key or type begins with `prefix`.
struct KeptFields {
  std::string_view prefix = {};  ///< Such as `example.com/`, of static storage; empty: no more than the library's own.

  [[nodiscard]] constexpr bool contains(std::string_view key) const {
    return !prefix.empty() && key.starts_with(prefix);
  }
  friend bool operator==(const KeptFields&, const KeptFields&) = default;
};

}  // namespace dhc::k8s
