#pragma once
#include <algorithm>
#include <span>
#include <string_view>

namespace dhc::k8s {

/// What the owner of a decoder wants kept of the maps and lists that anybody may fill, besides what this library reads
/// itself: annotations of every kind, labels of Jobs and conditions of pods whose key or type begins with `prefix`, and
/// conditions of nodes by their reason.
struct KeptFields {
  std::string_view prefix = {};  ///< Such as `example.com/`, of static storage; empty: no more than the library's own.
  /// Labels of which each makes a pod one that is kept whole, and annotations, if they are kept; of static storage.
  std::span<const std::string_view> marks = {};
  /// Reasons of which each makes a node's condition one that is kept, whatever its type; of static storage.
  std::span<const std::string_view> node_reasons = {};

  [[nodiscard]] constexpr bool contains(std::string_view key) const {
    return !prefix.empty() && key.starts_with(prefix);
  }
  friend constexpr bool operator==(const KeptFields& a, const KeptFields& b) {
    return a.prefix == b.prefix && std::ranges::equal(a.marks, b.marks) &&
           std::ranges::equal(a.node_reasons, b.node_reasons);
  }
};

}  // namespace dhc::k8s
