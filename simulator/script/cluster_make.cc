#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simulator/api/call.h"
#include "simulator/script/cluster.h"

namespace dhc::sim {
namespace {

/// `app: NAME` unless the shape brings labels of its own.
void label(PodShape& shape, const std::string& name) {
  if (shape.labels.empty()) shape.labels["app"] = name;
}

Json node_condition(std::string_view type, std::string_view status, std::string_view reason, const std::string& now) {
  return {{"type", type},  {"status", status},         {"reason", reason},
          {"message", ""}, {"lastHeartbeatTime", now}, {"lastTransitionTime", now}};
}

}  // namespace

void Cluster::add_namespace(const std::string& name, const std::map<std::string, std::string>& labels,
                            const std::map<std::string, std::string>& annotations) {
  Json metadata = {{"name", name}, {"labels", {{"kubernetes.io/metadata.name", name}}}};
  for (const auto& [key, value] : labels) metadata["labels"][key] = value;
  if (!annotations.empty()) metadata["annotations"] = annotations;
  state_.store.create(Res::Namespaces, {{"metadata", metadata}, {"status", {{"phase", "Active"}}}});
  changed();
}

void Cluster::ensure_device_class(const std::string& driver) {
  if (get(Res::DeviceClasses, "", driver) != nullptr) return;
  const Json cel = {{"cel", {{"expression", fmt::format("device.driver == '{}'", driver)}}}};
  state_.store.create(Res::DeviceClasses,
                      {{"metadata", {{"name", driver}}}, {"spec", {{"selectors", Json::array({cel})}}}});
}

void Cluster::add_node(const NodeShape& shape) {
  Machine made;
  made.name = shape.name;
  made.number = static_cast<int>(state_.machines.size()) + 1;
  const auto now = state_.store.time_text();
  Json amounts = {{"cpu", "32"}, {"memory", "263856308Ki"}, {"pods", "110"}};
  for (const auto& [resource, count] : shape.plugins) {
    Plugin plugin;
    plugin.resource = resource;
    auto stem = resource.substr(resource.rfind('/') + 1);
    for (auto& c : stem) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    for (int i = 0; i < count; ++i) plugin.devices.push_back({fmt::format("{}-{}", stem, i), true});
    plugin.known = plugin.devices;
    made.plugins[resource] = std::move(plugin);
    amounts[resource] = std::to_string(count);
  }
  for (const auto& [name, count] : shape.drivers) {
    Driver driver;
    driver.driver = name;
    for (int i = 0; i < count; ++i) driver.devices.push_back({fmt::format("gpu-{}", i), "Healthy", "", {}, 1});
    made.drivers[name] = std::move(driver);
    ensure_device_class(name);
  }
  Json labels = {{"kubernetes.io/hostname", shape.name}, {"kubernetes.io/os", "linux"}};
  for (const auto& [key, value] : shape.labels) labels[key] = value;
  const Json conditions = {node_condition("MemoryPressure", "False", "KubeletHasSufficientMemory", now),
                           node_condition("DiskPressure", "False", "KubeletHasNoDiskPressure", now),
                           node_condition("PIDPressure", "False", "KubeletHasSufficientPID", now),
                           node_condition("Ready", "True", "KubeletReady", now)};
  state_.store.create(Res::Nodes, {{"metadata", {{"name", shape.name}, {"labels", labels}}},
                                   {"spec", Json::object()},
                                   {"status",
                                    {{"capacity", amounts},
                                     {"allocatable", amounts},
                                     {"conditions", conditions},
                                     {"nodeInfo",
                                      {{"bootID", state_.store.new_uid()},
                                       {"machineID", state_.store.new_suffix(16)},
                                       {"kubeletVersion", "v1.37.1"},
                                       {"osImage", "simulated"},
                                       {"kernelVersion", "6.12.48"},
                                       {"containerRuntimeVersion", "containerd://2.2.1"},
                                       {"operatingSystem", "linux"},
                                       {"architecture", "amd64"}}}}}});
  state_.machines[shape.name] = std::move(made);
  state_.touch(shape.name);
  changed();
}

void Cluster::remove_node(const std::string& name) {
  for (const auto& [driver, one] : machine(name).drivers) {
    if (!one.slice.empty()) state_.store.request_delete(Res::Slices, {"", one.slice});
  }
  state_.machines.erase(name);
  state_.store.request_delete(Res::Nodes, {"", name});
  changed();
}

void Cluster::add_budget(const BudgetShape& shape) {
  Json spec = {{"selector", {{"matchLabels", shape.match_labels}}}};
  if (shape.min_available) spec["minAvailable"] = *shape.min_available;
  if (shape.max_unavailable) spec["maxUnavailable"] = *shape.max_unavailable;
  state_.store.create(
      Res::Budgets,
      {{"metadata", {{"name", shape.name}, {"namespace", shape.ns}}}, {"spec", spec}, {"status", Json::object()}});
  changed();
}

void Cluster::add_pod_group(const std::string& ns, const std::string& name, const std::string& mode,
                            const std::string& claim) {
  if (settings_.unserved.contains(Res::PodGroups)) serve(Res::PodGroups, true);
  Json spec = {{"schedulingPolicy", {{"basic", Json::object()}}}};
  spec["disruptionMode"][mode] = Json::object();
  if (!claim.empty()) spec["resourceClaims"] = Json::array({Json{{"name", claim}, {"resourceClaimName", claim}}});
  state_.store.create(
      Res::PodGroups,
      {{"metadata", {{"name", name}, {"namespace", ns}}}, {"spec", std::move(spec)}, {"status", Json::object()}});
  changed();
}

void Cluster::ensure_claim_template(const std::string& ns, const PodShape& shape) {
  if (shape.device_class.empty() || !shape.shared_claim.empty()) return;
  const auto name = claim_template_name(shape.device_class, shape.count);
  if (get(Res::ClaimTemplates, ns, name) != nullptr) return;
  state_.store.create(Res::ClaimTemplates, {{"metadata", {{"name", name}, {"namespace", ns}}},
                                            {"spec", {{"spec", claim_spec(shape.device_class, shape.count)}}}});
}

void Cluster::create_claim(const std::string& ns, const std::string& name, const std::string& device_class, int count) {
  state_.store.create(Res::Claims, {{"metadata", {{"name", name}, {"namespace", ns}}},
                                    {"spec", claim_spec(device_class, count)},
                                    {"status", Json::object()}});
  changed();
}

void Cluster::create_deployment(const std::string& ns, const std::string& name, int replicas, PodShape shape,
                                const std::map<std::string, std::string>& annotations) {
  label(shape, name);
  ensure_claim_template(ns, shape);
  Json metadata = {{"name", name}, {"namespace", ns}, {"labels", shape.labels}};
  if (!annotations.empty()) metadata["annotations"] = annotations;
  state_.store.create(
      Res::Deployments,
      {{"metadata", metadata},
       {"spec",
        {{"replicas", replicas}, {"selector", {{"matchLabels", shape.labels}}}, {"template", pod_template(shape)}}},
       {"status", Json::object()}});
  changed();
}

void Cluster::create_stateful_set(const std::string& ns, const std::string& name, int replicas, PodShape shape) {
  label(shape, name);
  ensure_claim_template(ns, shape);
  state_.store.create(Res::StatefulSets, {{"metadata", {{"name", name}, {"namespace", ns}}},
                                          {"spec",
                                           {{"replicas", replicas},
                                            {"serviceName", name},
                                            {"selector", {{"matchLabels", shape.labels}}},
                                            {"template", pod_template(shape)}}},
                                          {"status", Json::object()}});
  changed();
}

void Cluster::create_daemon_set(const std::string& ns, const std::string& name, PodShape shape) {
  label(shape, name);
  ensure_claim_template(ns, shape);
  state_.store.create(Res::DaemonSets,
                      {{"metadata", {{"name", name}, {"namespace", ns}}},
                       {"spec", {{"selector", {{"matchLabels", shape.labels}}}, {"template", pod_template(shape)}}},
                       {"status", Json::object()}});
  changed();
}

void Cluster::create_job(JobShape shape) {
  label(shape.shape, shape.name);
  ensure_claim_template(shape.ns, shape.shape);
  if (shape.shape.restart_policy == "Always") shape.shape.restart_policy = "Never";
  Json spec = {{"parallelism", shape.parallelism},
               {"completions", shape.completions},
               {"backoffLimit", shape.backoff_limit},
               {"completionMode", shape.indexed ? "Indexed" : "NonIndexed"},
               {"template", pod_template(shape.shape)}};
  if (shape.replace_when_failed) spec["podReplacementPolicy"] = "Failed";
  if (shape.limit_per_index) {
    spec["backoffLimitPerIndex"] = *shape.limit_per_index;
    spec["backoffLimit"] = std::numeric_limits<std::int32_t>::max();  // the default then, and nobody can raise it
  }
  if (shape.most_failed_indexes) spec["maxFailedIndexes"] = *shape.most_failed_indexes;
  if (!shape.ignore_condition.empty()) {
    const Json pattern = {{"type", shape.ignore_condition}, {"status", "True"}};
    const Json rule = {{"action", "Ignore"}, {"onPodConditions", Json::array({pattern})}};
    spec["podFailurePolicy"] = {{"rules", Json::array({rule})}};
  }
  Json job = {{"metadata", {{"name", shape.name}, {"namespace", shape.ns}, {"labels", shape.shape.labels}}},
              {"spec", spec}};
  set_defaults(state_.store, Res::Jobs, job, nullptr);
  state_.store.create(Res::Jobs, std::move(job));
  changed();
}

void Cluster::create_pod(const std::string& ns, const std::string& name, const PodShape& shape) {
  ensure_claim_template(ns, shape);
  Json pod = pod_template(shape);
  pod["metadata"]["name"] = name;
  pod["metadata"]["namespace"] = ns;
  pod["status"] = {{"phase", "Pending"}, {"qosClass", "BestEffort"}};
  state_.store.create(Res::Pods, std::move(pod));
  changed();
}

void Cluster::set_config_map(const std::string& ns, const std::string& name,
                             const std::map<std::string, std::string>& data) {
  if (get(Res::ConfigMaps, ns, name) == nullptr) {
    state_.store.create(Res::ConfigMaps, {{"metadata", {{"name", name}, {"namespace", ns}}}, {"data", data}});
  } else {
    state_.store.edit(Res::ConfigMaps, {ns, name}, [&](Json& object) { object["data"] = data; });
  }
  changed();
}

}  // namespace dhc::sim
