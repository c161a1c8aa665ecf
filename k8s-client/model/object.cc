#include "k8s-client/model/object.h"

#include <type_traits>

namespace dhc::k8s {

namespace {
template <class T>
constexpr Kind kKindOf = std::is_same_v<T, Pod>                ? Kind::Pod
                         : std::is_same_v<T, ResourceClaim>    ? Kind::ResourceClaim
                         : std::is_same_v<T, ResourceSlice>    ? Kind::ResourceSlice
                         : std::is_same_v<T, Node>             ? Kind::Node
                         : std::is_same_v<T, Namespace>        ? Kind::Namespace
                         : std::is_same_v<T, DeviceTaintRule>  ? Kind::DeviceTaintRule
                         : std::is_same_v<T, Job>              ? Kind::Job
                         : std::is_same_v<T, Lease>            ? Kind::Lease
                         : std::is_same_v<T, DisruptionBudget> ? Kind::PodDisruptionBudget
                         : std::is_same_v<T, PodGroup>         ? Kind::PodGroup
                                                               : Kind::ConfigMap;
}  // namespace

Kind kind_of(const Object& object) {
  return std::visit(
      []<class T>(const T& value) {
        if constexpr (std::is_same_v<T, Owner>) {
          return value.kind;
        } else {
          (void)value;
          return kKindOf<T>;
        }
      },
      object);
}

const Meta& meta_of(const Object& object) {
  return std::visit([](const auto& value) -> const Meta& { return value.meta; }, object);
}

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::Pod:
      return "Pod";
    case Kind::ResourceClaim:
      return "ResourceClaim";
    case Kind::ResourceSlice:
      return "ResourceSlice";
    case Kind::Node:
      return "Node";
    case Kind::Namespace:
      return "Namespace";
    case Kind::DeviceTaintRule:
      return "DeviceTaintRule";
    case Kind::Job:
      return "Job";
    case Kind::ReplicaSet:
      return "ReplicaSet";
    case Kind::StatefulSet:
      return "StatefulSet";
    case Kind::PodDisruptionBudget:
      return "PodDisruptionBudget";
    case Kind::PodGroup:
      return "PodGroup";
    case Kind::ConfigMap:
      return "ConfigMap";
    case Kind::Lease:
      return "Lease";
  }
  return "Unknown";
}

}  // namespace dhc::k8s
