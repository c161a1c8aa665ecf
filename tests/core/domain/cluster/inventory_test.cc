#include "domain/cluster/inventory.h"

#include <doctest/doctest.h>

#include "domain/contract/device_key.h"

namespace {

using namespace dhc;

const DeviceKey kDevice{DeviceKey::Source::Dra, "gpu.example.com", "node-a", "gpu-0"};

k8s::DeviceTaintRule rule_for(const std::string& device) {
  k8s::DeviceTaintRule rule;
  rule.meta.name = "rule";
  rule.meta.uid = "u";
  rule.has_selector = true;
  rule.driver = "gpu.example.com";
  rule.pool = "node-a";
  rule.device = device;
  rule.taint = {"k", "", "NoSchedule"};
  return rule;
}

TEST_CASE("a rule that says more than driver, pool and device proves nothing about the device") {
  Inventory inventory;
  auto rule = rule_for("gpu-0");
  inventory.upsert(rule);
  CHECK(inventory.unschedulable_because(kDevice).has_value());
  rule.has_other_selectors = true;
  inventory.upsert(rule);
  CHECK_FALSE(inventory.unschedulable_because(kDevice).has_value());
}

}  // namespace
