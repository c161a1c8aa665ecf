#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simulator/controllers/state.h"
#include "simulator/node/kubelet.h"

namespace dhc::sim {
namespace {

Json slice_devices(const std::string& node, const Driver& driver) {
  Json devices = Json::array();
  for (const auto& device : driver.devices) {
    // **Source:** dra-driver-google-tpu, manager.go: made of the node's name alone, for each chip.
    const auto uuid =
        driver.named_by_node ? "TPU-" + node : fmt::format("GPU-{}-{}-{}", node, device.name, device.card);
    Json entry = {{"name", device.name},
                  {"attributes", {{"model", {{"string", "simulated"}}}, {"uuid", {{"string", uuid}}}}}};
    for (const auto& taint : device.taints) {
      entry["taints"].push_back({{"key", taint.key}, {"value", taint.value}, {"effect", taint.effect}});
    }
    if (!device.counters.empty()) {
      entry["consumesCounters"] = Json::array({{{"counterSet", device.counters}}});
    }
    devices.push_back(std::move(entry));
  }
  return devices;
}

void publish(State& state, const Machine& machine, Driver& driver) {
  if (!driver.slice.empty() && driver.published == driver.devices) return;
  driver.published = driver.devices;
  const auto devices = slice_devices(machine.name, driver);
  if (!driver.slice.empty() && state.store.get(Res::Slices, {"", driver.slice}) != nullptr) {
    state.store.edit(Res::Slices, {"", driver.slice}, [&](Json& slice) { slice["spec"]["devices"] = devices; });
    return;
  }
  // After a driver's return its slices have new names. **Source:** seen on 1.37.1.
  const auto node = state.store.get(Res::Nodes, {"", machine.name});
  const Json owner = {{"apiVersion", "v1"},
                      {"kind", "Node"},
                      {"name", machine.name},
                      {"uid", node == nullptr ? "" : uid_of(*node)},
                      {"controller", true}};
  const auto prefix = fmt::format("00000-{}-{}-", driver.driver, machine.name);
  const auto slice = state.store.create(
      Res::Slices, {{"metadata", {{"generateName", prefix}, {"ownerReferences", Json::array({owner})}}},
                    {"spec",
                     {{"driver", driver.driver},
                      {"nodeName", machine.name},
                      {"pool", {{"name", machine.name}, {"generation", 1}, {"resourceSliceCount", 1}}},
                      {"devices", devices}}}});
  driver.slice = name_of(*slice);
}

/// **Source:** seen on 1.37.1: Unknown without a message within 5 s, the slices gone after about 30 s.
void mourn(State& state, Machine& machine, Driver& driver) {
  const auto key = machine.name + "/" + driver.driver;
  if (!driver.unknown && state.timers.ready("driver-unknown/" + key, state.lags.driver_unknown)) {
    driver.unknown = true;
    refresh_all(machine, state.mono());
  }
  if (!driver.slice.empty() && state.timers.ready("slices-deleted/" + key, state.lags.slices_deleted)) {
    state.store.request_delete(Res::Slices, {"", driver.slice});
    driver.slice.clear();
  }
}

}  // namespace

void run_drivers(State& state) {
  state.look_at<std::string>(state.index.restless.drivers, [&](const std::string& node) {
    const auto found = state.machines.find(node);
    if (found == state.machines.end()) return;
    auto& machine = found->second;
    state.index.restless.kubelets.insert(node);
    for (auto& [driver_name, driver] : machine.drivers) {
      if (!driver.alive) {
        mourn(state, machine, driver);
        continue;
      }
      if (driver.unknown) {
        driver.unknown = false;
        refresh_all(machine, next_pod_sync(state));
      }
      const bool fresh = driver.slice.empty();
      const auto key = "slices/" + machine.name + "/" + driver_name;
      if (!fresh || state.timers.ready(key, state.lags.slices_published)) publish(state, machine, driver);
    }
  });
}

}  // namespace dhc::sim
