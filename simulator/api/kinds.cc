#include "simulator/api/kinds.h"

#include <array>

namespace dhc::sim {
namespace {

constexpr std::array<ResourceType, kResCount> kTypes = {{
    {Res::Pods, "", "v1", "pods", "pod", "Pod", "po", true, true, true},
    {Res::Nodes, "", "v1", "nodes", "node", "Node", "no", false, false, true},
    {Res::Namespaces, "", "v1", "namespaces", "namespace", "Namespace", "ns", false, false, true},
    {Res::ConfigMaps, "", "v1", "configmaps", "configmap", "ConfigMap", "cm", true, false, false},
    {Res::Deployments, "apps", "v1", "deployments", "deployment", "Deployment", "deploy", true, true, true},
    {Res::ReplicaSets, "apps", "v1", "replicasets", "replicaset", "ReplicaSet", "rs", true, true, true},
    {Res::StatefulSets, "apps", "v1", "statefulsets", "statefulset", "StatefulSet", "sts", true, true, true},
    {Res::DaemonSets, "apps", "v1", "daemonsets", "daemonset", "DaemonSet", "ds", true, true, true},
    {Res::Jobs, "batch", "v1", "jobs", "job", "Job", "", true, true, true},
    {Res::Budgets, "policy", "v1", "poddisruptionbudgets", "poddisruptionbudget", "PodDisruptionBudget", "pdb", true,
     true, true},
    {Res::PodGroups, "scheduling.k8s.io", "v1beta1", "podgroups", "podgroup", "PodGroup", "", true, false, true},
    {Res::Claims, "resource.k8s.io", "v1", "resourceclaims", "resourceclaim", "ResourceClaim", "", true, false, true},
    {Res::ClaimTemplates, "resource.k8s.io", "v1", "resourceclaimtemplates", "resourceclaimtemplate",
     "ResourceClaimTemplate", "", true, false, false},
    {Res::Slices, "resource.k8s.io", "v1", "resourceslices", "resourceslice", "ResourceSlice", "", false, true, false},
    {Res::TaintRules, "resource.k8s.io", "v1", "devicetaintrules", "devicetaintrule", "DeviceTaintRule", "", false,
     true, true},
    {Res::DeviceClasses, "resource.k8s.io", "v1", "deviceclasses", "deviceclass", "DeviceClass", "", false, true,
     false},
    {Res::Leases, "coordination.k8s.io", "v1", "leases", "lease", "Lease", "", true, false, false},
    {Res::Events, "events.k8s.io", "v1", "events", "event", "Event", "ev", true, false, false},
}};

}  // namespace

const ResourceType& type_of(Res res) { return kTypes.at(static_cast<std::size_t>(res)); }

std::span<const ResourceType> all_types() { return kTypes; }

std::optional<Res> find_res(std::string_view group, std::string_view resource) {
  if (group.empty() && resource == "events") return Res::Events;
  for (const auto& type : kTypes) {
    if (type.group == group && type.resource == resource) return type.id;
  }
  return std::nullopt;
}

std::string_view api_version_of(Res res) {
  const auto& type = type_of(res);
  if (type.group == "apps") return "apps/v1";
  if (type.group == "batch") return "batch/v1";
  if (type.group == "policy") return "policy/v1";
  if (type.group == "scheduling.k8s.io") return "scheduling.k8s.io/v1beta1";
  if (type.group == "resource.k8s.io") return "resource.k8s.io/v1";
  if (type.group == "coordination.k8s.io") return "coordination.k8s.io/v1";
  if (type.group == "events.k8s.io") return "events.k8s.io/v1";
  return "v1";
}

}  // namespace dhc::sim
