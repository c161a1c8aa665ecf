#include "domain/contract/our_taint.h"

#include <doctest/doctest.h>

using namespace dhc;

TEST_CASE("A rule's name reads as pool and device, is a name for any of them, and never that of another device") {
  const auto name = rule_name(DeviceKey::dra("gpu.example.com", "node-a", "gpu-0"));
  CHECK(name.starts_with("dhc-node-a-gpu-0-"));
  CHECK(name.size() == std::string_view("dhc-node-a-gpu-0-").size() + 16);
  CHECK(name != rule_name(DeviceKey::dra("other.example.com", "node-a", "gpu-0")));
  CHECK(name != rule_name(DeviceKey::dra("gpu.example.com", "node", "a-gpu-0")));
  const auto hostile = rule_name(DeviceKey::dra("d", "Racks/r.1/" + std::string(250, 'p'), "GPU_0:1"));
  CHECK(hostile.size() <= 253);
  CHECK(hostile.starts_with("dhc-racks-r-1-ppp"));
  CHECK(hostile.find("p-gpu-0-1-") != std::string::npos);
}

TEST_CASE("The name that 0.1.0 gave a rule is known as ours") {
  k8s::DeviceTaintRule rule;
  const auto key = DeviceKey::dra("gpu.example.com", "node-a", "gpu-0");
  rule.meta.name = old_rule_name(key);
  rule.meta.labels = {{"app.kubernetes.io/managed-by", "device-health-controller"}};
  rule.meta.annotations = {{"device-health.io/effect", "NoSchedule"}};
  rule.has_selector = true;
  rule.driver = key.scope;
  rule.pool = key.place;
  rule.device = key.device;
  rule.taint = rule_taint();
  CHECK(is_our_rule(rule));
  CHECK_FALSE(changed_by_other(rule));
  rule.device = "gpu-1";
  CHECK(changed_by_other(rule) == "its selector no longer names the device");
}

TEST_CASE("What is a label's value stays, and what is none becomes one that no other text becomes") {
  CHECK(label_value("gpu.example.com") == "gpu.example.com");
  CHECK(label_value(std::string(63, 'n')) == std::string(63, 'n'));
  CHECK(label_value("").empty());
  const auto cut = label_value(std::string(64, 'n'));
  CHECK(cut.size() == 63);
  CHECK(cut.starts_with(std::string(54, 'n') + "-"));
  CHECK(cut != label_value(std::string(65, 'n')));
  CHECK(label_value("-a/b").starts_with("xa-b-"));
}
