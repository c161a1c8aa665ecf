#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/now.h"
#include "simulator/api/store.h"

namespace dhc::sim {

/// A device as its plugin reports it.
struct PluginDevice {
  std::string id;
  bool healthy = true;
};

/// One device plugin on one node.
struct Plugin {
  std::string resource;
  std::vector<PluginDevice> devices;  ///< What there is.
  std::vector<PluginDevice> known;    ///< The last list that the kubelet got; kept when the plugin dies.
  bool alive = true;
  bool registered = true;
  std::optional<MonoTime> registers_at;  ///< After a kubelet restart.
};

/// A taint that a driver puts on its device.
struct DeviceTaint {
  std::string key;
  std::string value;
  std::string effect;
  friend bool operator==(const DeviceTaint&, const DeviceTaint&) = default;
};

/// A device of a DRA driver.
struct DraDevice {
  std::string name;
  std::string health = "Healthy";
  std::string message;
  std::vector<DeviceTaint> taints;
  int card = 1;               ///< Which piece of hardware it is: part of its `uuid`.
  std::string counters = {};  ///< The set of shared counters that it draws on; empty: none.
  friend bool operator==(const DraDevice&, const DraDevice&) = default;
};

/// One DRA driver on one node.
struct Driver {
  std::string driver;
  std::vector<DraDevice> devices;
  bool alive = true;
  bool unknown = false;              ///< The kubelet has given up on it: all devices are Unknown.
  std::string slice;                 ///< The published ResourceSlice, or empty.
  std::vector<DraDevice> published;  ///< What stands in it.
  bool named_by_node = false;        ///< Each device has the same `uuid`, made of the node's name.
};

/// A pod as its kubelet knows it.
struct KubeletPod {
  Name name;
  bool running = false;
  /// Container -> resource -> device ids.
  std::map<std::string, std::map<std::string, std::vector<std::string>>> devices;
  std::optional<MonoTime> refresh_at;  ///< When the health in its status is written again.
  std::optional<MonoTime> done_at;     ///< When its containers end by themselves.
  ObjectPtr refused;                   ///< The status that the server has refused, and that is tried again.
};

/// One node with its kubelet, plugins and drivers: what stands behind the Node object.
struct Machine {
  std::string name;
  int number = 0;
  bool ready = true;
  bool reports_health = true;              ///< The kubelet's feature gate ResourceHealthStatus.
  std::map<std::string, Plugin> plugins;   ///< By resource.
  std::map<std::string, Driver> drivers;   ///< By driver.
  std::map<std::string, KubeletPod> pods;  ///< By UID.
  std::optional<MonoTime> status_due;      ///< When the kubelet writes capacity and allocatable next.

  /// The plugin that has this device, or nullptr.
  [[nodiscard]] Plugin* plugin_of(const std::string& device);
  [[nodiscard]] Driver* driver_of(const std::string& device);
  [[nodiscard]] DraDevice* dra_device(const std::string& driver, const std::string& device);
};

/// The device of that id in a list, or nullptr.
[[nodiscard]] PluginDevice* find_device(std::vector<PluginDevice>& devices, const std::string& id);

}  // namespace dhc::sim
