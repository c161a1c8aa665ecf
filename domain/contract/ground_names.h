#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace dhc {

/// The release of a driver or device plugin: one revision of the DaemonSet whose pods serve devices.
struct ReleaseName {
  std::string_view ns;
  std::string_view name;      ///< Of the DaemonSet.
  std::string_view revision;  ///< As its pods' label says it.
  friend bool operator==(const ReleaseName&, const ReleaseName&) = default;
};

/// A node as what its devices may break by: `at node/NAME`. No namespace has a blank in its name, so that no workload's
/// or image's name is one of these.
[[nodiscard]] std::string ground_of_node(std::string_view node);

/// Likewise a release: `at release/NAMESPACE/NAME/REVISION`.
[[nodiscard]] std::string ground_of_release(const ReleaseName& release);

/// Whether a name is a node's or a release's, and no workload's or image's.
[[nodiscard]] bool is_ground_name(std::string_view name);

/// The node that it names; none: it names none.
[[nodiscard]] std::optional<std::string_view> node_of_ground(std::string_view name);

/// The release that it names; none: it names none. Points into `name`.
[[nodiscard]] std::optional<ReleaseName> release_of_ground(std::string_view name);

/// `node gpu-a-017`, or `revision 6d4f of DaemonSet kube-system/gpu-driver`, as people read it.
[[nodiscard]] std::string words_of_ground(std::string_view name);

}  // namespace dhc
