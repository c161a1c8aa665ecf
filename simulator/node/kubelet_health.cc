#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simulator/node/kubelet.h"

namespace dhc::sim {
namespace {

/// A device that the plugin does not list now reads Healthy: so does a dead device after a kubelet restart, until its
/// plugin has registered. **Source:** kubelet devicemanager, seen on 1.37.1.
std::string plugin_health(Machine& machine, const std::string& resource, const std::string& id) {
  const auto it = machine.plugins.find(resource);
  if (it == machine.plugins.end()) return "Healthy";
  const auto* device = find_device(it->second.known, id);
  return device == nullptr || device->healthy ? "Healthy" : "Unhealthy";
}

/// `gpu.example.com` names its CDI devices `example.com/gpu=<claim uid>-<device>`. **Source:** seen on 1.37.1.
std::string cdi_id(const std::string& driver, const std::string& claim_uid, const std::string& device) {
  const auto dot = driver.find('.');
  return fmt::format("{}/{}={}-{}", driver.substr(dot + 1), driver.substr(0, dot), claim_uid, device);
}

Json dra_resource(Machine& machine, const Json& result, const std::string& claim_uid) {
  const auto driver_name = text(result, {"driver"});
  const auto device_name = text(result, {"device"});
  Json out = {{"resourceID", cdi_id(driver_name, claim_uid, device_name)}, {"health", "Unknown"}};
  const auto driver = machine.drivers.find(driver_name);
  const auto* device = machine.dra_device(driver_name, device_name);
  if (driver == machine.drivers.end() || driver->second.unknown || device == nullptr) return out;
  out["health"] = device->health;
  if (!device->message.empty()) out["message"] = device->message;
  return out;
}

Json claim_entries(State& state, Machine& machine, const Json& pod, const Json& container) {
  Json entries = Json::array();
  for (const auto& use : list(container, {"resources", "claims"})) {
    for (const auto& pod_claim : list(pod, {"spec", "resourceClaims"})) {
      if (text(pod_claim, {"name"}) != text(use, {"name"})) continue;
      const auto claim = state.store.get(Res::Claims, {ns_of(pod), claim_name_of(pod, pod_claim)});
      if (claim == nullptr) continue;
      const auto request = text(use, {"request"});
      Json resources = Json::array();
      for (const auto& result : list(*claim, {"status", "allocation", "devices", "results"})) {
        if (!request.empty() && text(result, {"request"}) != request) continue;
        resources.push_back(dra_resource(machine, result, uid_of(*claim)));
      }
      if (resources.empty()) continue;
      const auto name = request.empty() ? text(use, {"name"}) : text(use, {"name"}) + "/" + request;
      entries.push_back({{"name", "claim:" + name}, {"resources", std::move(resources)}});
    }
  }
  return entries;
}

}  // namespace

void write_health(State& state, Machine& machine, KubeletPod& known, const Json& pod, Json& status) {
  for (auto& container_status : status["containerStatuses"]) {
    const auto name = text(container_status, {"name"});
    Json entries = Json::array();
    for (const auto& [resource, ids] : known.devices[name]) {
      Json resources = Json::array();
      for (const auto& id : ids) {
        resources.push_back({{"resourceID", id}, {"health", plugin_health(machine, resource, id)}});
      }
      entries.push_back({{"name", resource}, {"resources", std::move(resources)}});
    }
    for (const auto& container : list(pod, {"spec", "containers"})) {
      if (text(container, {"name"}) != name) continue;
      for (auto& entry : claim_entries(state, machine, pod, container)) entries.push_back(std::move(entry));
    }
    if (entries.empty() || !machine.reports_health) {
      container_status.erase("allocatedResourcesStatus");
    } else {
      container_status["allocatedResourcesStatus"] = std::move(entries);
    }
  }
}

MonoTime next_pod_sync(const State& state) {
  return state.mono() + state.lags.pod_sync - state.mono().time_since_epoch() % state.lags.pod_sync;
}

void refresh_all(Machine& machine, MonoTime due) {
  for (auto& [uid, pod] : machine.pods) {
    if (!pod.refresh_at || due < *pod.refresh_at) pod.refresh_at = due;
  }
}

void node_status_due(Machine& machine, MonoTime due) {
  if (!machine.status_due || due < *machine.status_due) machine.status_due = due;
}

void restart_kubelet(State& state, Machine& machine, Millis plugins_register_after) {
  for (auto& [resource, plugin] : machine.plugins) {
    plugin.registered = false;
    plugin.known.clear();
    plugin.registers_at = state.mono() + plugins_register_after;
  }
  const auto node_at = state.mono() + state.lags.restarted_node;
  machine.status_due = node_at;
  for (auto& [uid, pod] : machine.pods) pod.refresh_at = node_at + state.lags.restarted_pods;
}

void refresh_holders(State& state, Machine& machine, const std::string& device) {
  for (auto& [uid, known] : machine.pods) {
    bool holds = false;
    for (const auto& [container, resources] : known.devices) {
      for (const auto& [resource, ids] : resources) holds = holds || std::ranges::find(ids, device) != ids.end();
    }
    const auto pod = state.store.get(Res::Pods, known.name);
    if (pod == nullptr || uid_of(*pod) != uid) continue;
    for (const auto& pod_claim : list(*pod, {"spec", "resourceClaims"})) {
      const auto claim = state.store.get(Res::Claims, {known.name.ns, claim_name_of(*pod, pod_claim)});
      if (claim == nullptr) continue;
      for (const auto& result : list(*claim, {"status", "allocation", "devices", "results"})) {
        holds = holds || (text(result, {"device"}) == device && text(result, {"pool"}) == machine.name);
      }
    }
    const auto due = next_pod_sync(state);
    if (holds && (!known.refresh_at || due < *known.refresh_at)) known.refresh_at = due;
  }
}

}  // namespace dhc::sim
