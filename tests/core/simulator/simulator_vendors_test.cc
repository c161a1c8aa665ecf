// Drivers and kubelets that say less than others: one `uuid` for all chips, no word about health, and claims that are a
// PodGroup's.
#include <set>

#include <doctest/doctest.h>

#include "tests/core/simulator/shapes.h"
#include "tests/support/core/lab.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::Lab;
using namespace std::chrono_literals;

namespace {

struct VendorLab : Lab {
  VendorLab() {
    cluster.add_node({"node-a", {}, {{kDriver, 4}}, {}});
    run_for(2s);
  }
};

}  // namespace

TEST_CASE("a driver that names its devices by their node gives all one uuid, also when a device is replaced") {
  VendorLab lab;
  lab.cluster.name_by_node("node-a", kDriver);
  lab.run_for(1s);
  lab.cluster.replace_device("node-a", "gpu-1");
  lab.run_for(1s);
  std::set<std::string> uuids;
  for (const auto& [name, slice] : lab.cluster.store().all(Res::Slices)) {
    for (const auto& device : list(*slice, {"spec", "devices"}))
      uuids.insert(text(device, {"attributes", "uuid", "string"}));
  }
  CHECK(uuids == std::set<std::string>{"TPU-node-a"});
}

TEST_CASE("a mute driver's devices are Unknown until it speaks") {
  VendorLab lab;
  lab.cluster.mute_driver("node-a", kDriver);
  lab.cluster.create_pod("default", "p", dra_pod());
  lab.run_for(5s);
  CHECK(lab.health("p") == "Unknown");
  lab.cluster.set_device_health("node-a", lab.dra_device("p"), "Healthy");
  lab.run_for(2s);
  CHECK(lab.health("p") == "Healthy");
}

TEST_CASE("a kubelet whose feature gate is off writes no health, and writes it again when that is on") {
  VendorLab lab;
  lab.cluster.create_pod("default", "p", dra_pod());
  lab.run_for(5s);
  REQUIRE(lab.health("p") == "Healthy");
  lab.cluster.report_health("node-a", false);
  lab.run_for(2s);
  CHECK(lab.pod("p").dump().find("allocatedResourcesStatus") == std::string::npos);
  lab.cluster.report_health("node-a", true);
  lab.run_for(2s);
  CHECK(lab.health("p") == "Healthy");
}

TEST_CASE("a claim that a PodGroup names is reserved for it, and outlives its pods for as long as the group is there") {
  VendorLab lab;
  lab.cluster.add_pod_group("default", "train", "all", "shared");
  lab.cluster.create_claim("default", "shared", kDriver, 1);
  auto shape = dra_pod();
  shape.shared_claim = "shared";
  shape.pod_group = "train";
  for (const auto* name : {"a", "b"}) lab.cluster.create_pod("default", name, shape);
  lab.run_for(5s);
  const auto claim = lab.object(Res::Claims, "shared");
  const auto holders = list(claim, {"status", "reservedFor"});
  REQUIRE(holders.size() == 1);
  CHECK(text(holders[0], {"resource"}) == "podgroups");
  CHECK(text(holders[0], {"name"}) == "train");
  for (const auto* name : {"a", "b"}) lab.cluster.kubectl_delete(Res::Pods, "default", name);
  lab.run_for(1min);
  CHECK(field(lab.object(Res::Claims, "shared"), {"status", "allocation"}) != nullptr);
  lab.cluster.kubectl_delete(Res::PodGroups, "default", "train");
  lab.run_for(1min);
  CHECK(field(lab.object(Res::Claims, "shared"), {"status", "allocation"}) == nullptr);
}
