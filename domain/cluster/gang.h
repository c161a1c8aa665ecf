#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include "k8s-client/model/pod.h"

namespace dhc {

/// Pods of one namespace that need each other.
struct Gang {
  std::string key;    ///< Namespace, what makes it a gang, and which one: one line of printable ASCII.
  std::string words;  ///< As people read it: `gang train`, `JobSet train`.
  friend bool operator==(const Gang&, const Gang&) = default;
};

/// The longest name of a gang, in bytes. **Source:** the longest name of an object.
inline constexpr std::size_t kLongestGangName = 253;

/// The pod's gang; none: nothing says that it is in one. What says so, in this order: `device-health.io/gang`
/// (annotation, then label), its PodGroup, its LeaderWorkerSet's group, its JobSet. A tenant writes all of these, and
/// reaches no pod of another namespace by it.
[[nodiscard]] std::optional<Gang> gang_of(const k8s::Pod& pod);

/// Why `device-health.io/gang` on the pod has no effect; none: it is not there, or has one.
[[nodiscard]] std::optional<std::string> refused_gang_name(const k8s::Pod& pod);

}  // namespace dhc
