#include <algorithm>

#include <nlohmann/json.hpp>

#include "simulator/node/kubelet.h"
#include "simulator/script/cluster.h"

namespace dhc::sim {

Machine& Cluster::machine(const std::string& node) {
  state_.touch(node);
  return state_.machines[node];
}

void Cluster::set_device_health(const std::string& node, const std::string& device, std::string_view health,
                                const std::string& message) {
  auto& on = machine(node);
  if (auto* plugin = on.plugin_of(device); plugin != nullptr) {
    const bool healthy = health == "Healthy";
    find_device(plugin->devices, device)->healthy = healthy;
    auto* known = find_device(plugin->known, device);
    if (plugin->alive && plugin->registered && known != nullptr) {
      known->healthy = healthy;
      refresh_holders(state_, on, device);
      node_status_due(on, now().mono + state_.lags.node_status);
    }
  }
  for (auto& [name, driver] : on.drivers) {
    auto* found = on.dra_device(name, device);
    if (found == nullptr) continue;
    found->health = health;
    found->message = message;
    if (driver.alive) refresh_holders(state_, on, device);
  }
  changed();
}

void Cluster::vanish_device(const std::string& node, const std::string& device) {
  auto& on = machine(node);
  if (auto* plugin = on.plugin_of(device); plugin != nullptr) {
    std::erase_if(plugin->devices, [&](const PluginDevice& one) { return one.id == device; });
    // No pod is told: its field stays as it was. **Source:** seen on 1.37.1.
    if (plugin->alive && plugin->registered) plugin->known = plugin->devices;
    node_status_due(on, now().mono + state_.lags.node_status);
  }
  if (auto* driver = on.driver_of(device); driver != nullptr) {
    std::erase_if(driver->devices, [&](const DraDevice& one) { return one.name == device; });
  }
  changed();
}

void Cluster::restore_device(const std::string& node, const std::string& resource_or_driver,
                             const std::string& device) {
  auto& on = machine(node);
  if (const auto it = on.plugins.find(resource_or_driver); it != on.plugins.end()) {
    auto& plugin = it->second;
    if (find_device(plugin.devices, device) == nullptr) plugin.devices.push_back({device, true});
    std::ranges::sort(plugin.devices, {}, &PluginDevice::id);
    if (plugin.alive && plugin.registered) plugin.known = plugin.devices;
    refresh_holders(state_, on, device);
    node_status_due(on, now().mono + state_.lags.node_status);
  }
  if (const auto it = on.drivers.find(resource_or_driver); it != on.drivers.end()) {
    if (on.dra_device(resource_or_driver, device) == nullptr)
      it->second.devices.push_back({device, "Healthy", "", {}, 1});
    std::ranges::sort(it->second.devices, {}, &DraDevice::name);
    refresh_holders(state_, on, device);
  }
  changed();
}

void Cluster::taint_device(const std::string& node, const std::string& device, const DeviceTaint& taint) {
  auto& on = machine(node);
  for (auto& [name, driver] : on.drivers) {
    if (auto* found = on.dra_device(name, device); found != nullptr) found->taints.push_back(taint);
  }
  changed();
}

void Cluster::untaint_device(const std::string& node, const std::string& device) {
  auto& on = machine(node);
  for (auto& [name, driver] : on.drivers) {
    if (auto* found = on.dra_device(name, device); found != nullptr) found->taints.clear();
  }
  changed();
}

void Cluster::replace_device(const std::string& node, const std::string& device) {
  auto& on = machine(node);
  for (auto& [name, driver] : on.drivers) {
    auto* found = on.dra_device(name, device);
    if (found == nullptr) continue;
    ++found->card;
    found->taints.clear();
  }
  set_device_health(node, device, "Healthy");
}

void Cluster::share_counters(const std::string& node, const std::vector<std::string>& devices, const std::string& set) {
  for (auto& [name, driver] : machine(node).drivers) {
    for (const auto& device : devices) {
      if (auto* found = machine(node).dra_device(name, device)) found->counters = set;
    }
  }
  changed();
}

void Cluster::mute_driver(const std::string& node, const std::string& driver) {
  auto& on = machine(node);
  for (auto& device : on.drivers[driver].devices) {
    device.health = "Unknown";
    refresh_holders(state_, on, device.name);
  }
  changed();
}

void Cluster::name_by_node(const std::string& node, const std::string& driver) {
  auto& one = machine(node).drivers[driver];
  one.named_by_node = true;
  one.published.clear();
  changed();
}

void Cluster::report_health(const std::string& node, bool reports) {
  auto& on = machine(node);
  on.reports_health = reports;
  refresh_all(on, next_pod_sync(state_));
  changed();
}

void Cluster::kill_plugin(const std::string& node, const std::string& resource) {
  auto& on = machine(node);
  on.plugins[resource].alive = false;
  // The pods' field stays as it was; only allocatable falls. **Source:** seen on 1.37.1.
  node_status_due(on, now().mono + state_.lags.plugin_gone);
  changed();
}

void Cluster::start_plugin(const std::string& node, const std::string& resource) {
  auto& on = machine(node);
  auto& plugin = on.plugins[resource];
  plugin.alive = true;
  plugin.registers_at = now().mono;
  changed();
}

void Cluster::kill_driver(const std::string& node, const std::string& driver) {
  machine(node).drivers[driver].alive = false;
  changed();
}

void Cluster::start_driver(const std::string& node, const std::string& driver) {
  machine(node).drivers[driver].alive = true;
  changed();
}

void Cluster::restart_containers(const std::string& ns, const std::string& name) {
  if (const auto pod = get(Res::Pods, ns, name); pod != nullptr) sim::restart_containers(state_, *pod);
  changed();
}

void Cluster::forget_health(const std::string& node, const std::string& resource_or_driver) {
  auto& on = machine(node);
  if (const auto found = on.plugins.find(resource_or_driver); found != on.plugins.end()) {
    for (auto& device : found->second.devices) device.healthy = true;
    found->second.registers_at = now().mono;
  }
  if (const auto found = on.drivers.find(resource_or_driver); found != on.drivers.end()) {
    for (auto& device : found->second.devices) {
      device.health = "Healthy";
      device.message.clear();
      device.taints.clear();
      refresh_holders(state_, on, device.name);
    }
  }
  changed();
}

void Cluster::reboot(const std::string& node, Millis plugins_register_after) {
  state_.store.edit(Res::Nodes, {"", node},
                    [&](Json& object) { object["status"]["nodeInfo"]["bootID"] = state_.store.new_uid(); });
  for (const auto& pod : pods_where(state_.store, [&](const Json& one) {
         return text(one, {"spec", "nodeName"}) == node && text(one, {"status", "phase"}) == "Running";
       })) {
    sim::restart_containers(state_, *pod);
  }
  for (const auto& [resource, plugin] : machine(node).plugins) forget_health(node, resource);
  for (const auto& [driver, one] : machine(node).drivers) forget_health(node, driver);
  restart_kubelet(node, plugins_register_after);
}

void Cluster::restart_kubelet(const std::string& node, Millis plugins_register_after) {
  sim::restart_kubelet(state_, machine(node), plugins_register_after);
  changed();
}

void Cluster::set_node_ready(const std::string& node, bool ready) {
  machine(node).ready = ready;
  const auto time = state_.store.time_text();
  state_.store.edit(Res::Nodes, {"", node}, [&](Json& object) {
    set_condition(object, "Ready", ready ? "True" : "Unknown", ready ? "KubeletReady" : "NodeStatusUnknown",
                  ready ? "kubelet is posting ready status" : "Kubelet stopped posting node status.", time);
    set_node_taint(object, "node.kubernetes.io/unreachable", !ready, time);
  });
  const auto running = pods_where(state_.store, [&](const Json& pod) {
    return text(pod, {"spec", "nodeName"}) == node && text(pod, {"status", "phase"}) == "Running";
  });
  for (const auto& pod : running) {
    state_.store.edit(Res::Pods, {ns_of(*pod), name_of(*pod)}, [&](Json& changed_pod) {
      set_condition(changed_pod, "Ready", ready ? "True" : "False", "", "", time);
    });
  }
  changed();
}

void Cluster::cordon(const std::string& node, bool unschedulable) {
  state_.store.edit(Res::Nodes, {"", node}, [&](Json& object) {
    if (unschedulable) {
      object["spec"]["unschedulable"] = true;
    } else {
      object["spec"].erase("unschedulable");
    }
    // **Source:** node lifecycle controller.
    set_node_taint(object, "node.kubernetes.io/unschedulable", unschedulable, state_.store.time_text());
  });
  changed();
}

void Cluster::set_node_condition(const std::string& node, const std::string& type, const std::string& status) {
  const auto time = state_.store.time_text();
  state_.store.edit(Res::Nodes, {"", node},
                    [&](Json& object) { set_condition(object, type, status, "Maintenance", "", time); });
  changed();
}

void Cluster::crash_pod(const std::string& ns, const std::string& name, int exit_code) {
  if (const auto pod = get(Res::Pods, ns, name); pod != nullptr) end_containers(state_, *pod, exit_code);
  changed();
}

void Cluster::restore_etcd(const Store& backup) {
  state_.store.restore(backup);
  // Their processes follow a restored etcd by beginning anew; kubelets only list again.
  state_.job_view = CachedView(Res::Jobs);
  state_.job_pod_view = CachedView(Res::Pods);
  state_.jobs.clear();
  state_.taints = DeviceTaints();
  // What kubelets wrote has gone back too, and they write it again.
  for (auto& [name, machine] : state_.machines) {
    refresh_all(machine, next_pod_sync(state_));
    node_status_due(machine, state_.mono() + state_.lags.node_status);
    state_.touch(name);
  }
  changed();
}

}  // namespace dhc::sim
