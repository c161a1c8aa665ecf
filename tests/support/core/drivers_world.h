#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/core/taint_world.h"

namespace dhc::test {

/// Two nodes whose driver and plugin run as pods of DaemonSets.
struct Drivers : TaintWorld {
  explicit Drivers(std::vector<std::string> driver_paths = {"/var/lib/kubelet/plugins",
                                                            "/var/lib/kubelet/plugins_registry"}) {
    sim::PodShape driver;
    driver.host_paths = std::move(driver_paths);
    cluster.create_daemon_set("kube-system", "gpu-driver", driver);
    sim::PodShape plugin;
    plugin.host_paths = {"/var/lib/kubelet/device-plugins"};
    cluster.create_daemon_set("kube-system", "gpu-plugin", plugin);
    run_for(std::chrono::seconds(10));
    policy().recover.hold = std::chrono::hours(2);
    send_policy();
  }

  [[nodiscard]] std::string pod_of(const std::string& set, const std::string& node) const {
    for (const auto& name : cluster.pod_names("kube-system")) {
      const auto pod = cluster.get(sim::Res::Pods, "kube-system", name);
      if (name.starts_with(set) && sim::text(*pod, {"spec", "nodeName"}) == node) return name;
    }
    return {};
  }
  void restart_driver(const std::string& node) {
    cluster.forget_health(node, kDriver);
    cluster.restart_containers("kube-system", pod_of("gpu-driver", node));
  }
  void restart_plugin(const std::string& node) {
    cluster.forget_health(node, kResource);
    cluster.restart_containers("kube-system", pod_of("gpu-plugin", node));
  }

  /// Every status that our condition on the pod has had.
  [[nodiscard]] std::vector<std::string> conditions(const std::string& name) const {
    std::vector<std::string> all;
    for (const auto& change : cluster.store().changes(sim::Res::Pods)) {
      if (sim::name_of(*change.object) != name) continue;
      for (const auto& condition : sim::list(*change.object, {"status", "conditions"})) {
        if (sim::text(condition, {"type"}) != "device-health.io/DeviceUnhealthy") continue;
        if (all.empty() || all.back() != sim::text(condition, {"status"}))
          all.push_back(sim::text(condition, {"status"}));
      }
    }
    return all;
  }
  [[nodiscard]] std::string message(const std::string& device, std::string_view reason) const {
    for (const auto& verdict : verdicts()) {
      if (verdict.device == device && to_string(verdict.reason) == reason) return verdict.message;
    }
    return {};
  }
};

/// Of `driver/pool/device`.
[[nodiscard]] inline std::string node_in(const std::string& device) {
  const auto first = device.find('/');
  return device.substr(first + 1, device.rfind('/') - first - 1);
}

/// Its name on its node.
[[nodiscard]] inline std::string name_in(const std::string& device) { return device.substr(device.rfind('/') + 1); }

}  // namespace dhc::test
