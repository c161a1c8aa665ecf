#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace dhc::sim {

/// The resources that the simulator stores.
enum class Res : std::uint8_t {
  Pods,
  Nodes,
  Namespaces,
  ConfigMaps,
  Deployments,
  ReplicaSets,
  StatefulSets,
  DaemonSets,
  Jobs,
  Budgets,
  PodGroups,
  Claims,
  ClaimTemplates,
  Slices,
  TaintRules,
  DeviceClasses,
  Leases,
  Events,
};
inline constexpr std::size_t kResCount = 18;

/// How one resource is named in paths and objects.
struct ResourceType {
  Res id = Res::Pods;
  std::string_view group;
  std::string_view version;
  std::string_view resource;
  std::string_view singular;
  std::string_view kind;
  std::string_view short_name;
  bool namespaced = false;
  bool has_generation = false;
  bool has_status = false;
};

[[nodiscard]] const ResourceType& type_of(Res res);

/// All of them, in the order of Res.
[[nodiscard]] std::span<const ResourceType> all_types();

/// The resource of that group and plural name; core Events are the same objects as events.k8s.io Events.
[[nodiscard]] std::optional<Res> find_res(std::string_view group, std::string_view resource);

/// `v1`, or `group/version`.
[[nodiscard]] std::string_view api_version_of(Res res);

}  // namespace dhc::sim
