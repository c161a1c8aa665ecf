#include "simulator/controllers/machine.h"

namespace dhc::sim {

PluginDevice* find_device(std::vector<PluginDevice>& devices, const std::string& id) {
  for (auto& device : devices) {
    if (device.id == id) return &device;
  }
  return nullptr;
}

Plugin* Machine::plugin_of(const std::string& device) {
  for (auto& [resource, plugin] : plugins) {
    if (find_device(plugin.devices, device) != nullptr) return &plugin;
  }
  return nullptr;
}

Driver* Machine::driver_of(const std::string& device) {
  for (auto& [driver_name, driver] : drivers) {
    if (dra_device(driver_name, device) != nullptr) return &driver;
  }
  return nullptr;
}

DraDevice* Machine::dra_device(const std::string& driver, const std::string& device) {
  const auto it = drivers.find(driver);
  if (it == drivers.end()) return nullptr;
  for (auto& one : it->second.devices) {
    if (one.name == device) return &one;
  }
  return nullptr;
}

}  // namespace dhc::sim
