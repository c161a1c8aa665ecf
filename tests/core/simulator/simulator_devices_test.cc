// What the simulated nodes show of their devices. **Source:** kubernetes-facts section 0 and kubernetes-tried, seen on
// a real 1.37.1.
#include <doctest/doctest.h>

#include "tests/core/simulator/shapes.h"
#include "tests/support/core/lab.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::Lab;
using namespace std::chrono_literals;

namespace {

struct PluginLab : Lab {
  PluginLab() {
    cluster.add_node({"node-a", {{kGpu, 4}}, {}, {}});
    cluster.create_pod("default", "p", plugin_pod());
    run_for(5s);
  }
};

struct DraLab : Lab {
  DraLab() {
    cluster.add_node({"node-a", {}, {{kDriver, 4}}, {}});
    run_for(2s);
    cluster.create_pod("default", "p", dra_pod());
    run_for(5s);
  }
};

}  // namespace

TEST_CASE("a plugin device turned Unhealthy shows in the pod after a second and lowers allocatable, not capacity") {
  PluginLab lab;
  REQUIRE(lab.pod("p")["status"]["phase"] == "Running");
  REQUIRE(lab.plugin_device("p") == "GPU-0");
  CHECK(lab.health("p") == "Healthy");
  lab.cluster.set_device_health("node-a", "GPU-0", "Unhealthy");
  lab.run_for(999ms);
  CHECK(lab.health("p") == "Healthy");
  CHECK(lab.allocatable("node-a", kGpu) == 4);
  lab.run_for(1ms);
  CHECK(lab.health("p") == "Unhealthy");
  CHECK(lab.allocatable("node-a", kGpu) == 3);
  CHECK(lab.capacity("node-a", kGpu) == 4);
}

TEST_CASE("a killed plugin leaves the pod Healthy while allocatable falls to 0") {
  PluginLab lab;
  lab.cluster.kill_plugin("node-a", kGpu);
  lab.run_for(10s);
  CHECK(lab.health("p") == "Healthy");
  CHECK(lab.allocatable("node-a", kGpu) == 0);
  CHECK(lab.capacity("node-a", kGpu) == 4);
}

TEST_CASE("a vanished plugin device stays Healthy in the pod while capacity falls by one") {
  PluginLab lab;
  lab.cluster.vanish_device("node-a", "GPU-0");
  lab.run_for(60s);
  CHECK(lab.health("p") == "Healthy");
  CHECK(lab.capacity("node-a", kGpu) == 3);
  CHECK(lab.allocatable("node-a", kGpu) == 3);
}

TEST_CASE("a kubelet restart reads a dead plugin device as Healthy, with no capacity, until the plugin registers") {
  PluginLab lab;
  lab.cluster.set_device_health("node-a", "GPU-0", "Unhealthy");
  lab.run_for(5s);
  lab.cluster.restart_kubelet("node-a", 20s);
  lab.run_for(10s);
  CHECK(lab.health("p") == "Healthy");
  CHECK(lab.capacity("node-a", kGpu) == 0);
  CHECK(lab.allocatable("node-a", kGpu) == 0);
  lab.run_for(15s);
  CHECK(lab.health("p") == "Unhealthy");
  CHECK(lab.capacity("node-a", kGpu) == 4);
  CHECK(lab.allocatable("node-a", kGpu) == 3);
}

TEST_CASE("between the plugin's report and the node's status a new pod is rejected with UnexpectedAdmissionError") {
  Lab lab;
  lab.cluster.add_node({"node-a", {{kGpu, 1}}, {}, {}});
  lab.cluster.lags().node_status = 10s;
  lab.run_for(1s);
  lab.cluster.set_device_health("node-a", "GPU-0", "Unhealthy");
  lab.cluster.create_pod("default", "early", plugin_pod());
  lab.run_for(5s);
  CHECK(lab.pod("early")["status"]["phase"] == "Failed");
  CHECK(lab.pod("early")["status"]["reason"] == "UnexpectedAdmissionError");
  lab.run_for(10s);
  lab.cluster.create_pod("default", "late", plugin_pod());
  lab.run_for(5s);
  CHECK(lab.pod("late")["status"]["phase"] == "Pending");
  CHECK(condition_status(lab.pod("late"), "PodScheduled") == "False");
  CHECK(lab.pod("late")["status"]["conditions"][0]["message"] ==
        "0/1 nodes are available: 1 Insufficient example.com/gpu.");
}

TEST_CASE("a container's restart keeps its device") {
  PluginLab lab;
  lab.cluster.crash_pod("default", "p", 1);
  lab.run_for(2s);
  CHECK(lab.pod("p")["status"]["containerStatuses"][0]["restartCount"] == 1);
  CHECK(lab.plugin_device("p") == "GPU-0");
}

TEST_CASE("health shows while a pod is Pending, not for init containers, and a plugin's field outlives the pod") {
  PluginLab lab;
  auto waiting = plugin_pod();
  waiting.image_missing = true;
  lab.cluster.create_pod("default", "waiting", waiting);
  auto sidecar = plugin_pod();
  sidecar.device_in_sidecar = true;
  lab.cluster.create_pod("default", "sidecar", sidecar);
  lab.run_for(3s);
  CHECK(lab.pod("waiting")["status"]["phase"] == "Pending");
  CHECK(lab.health("waiting") == "Healthy");
  CHECK(lab.pod("sidecar")["status"]["phase"] == "Running");
  CHECK(lab.pod("sidecar").dump().find("allocatedResourcesStatus") == std::string::npos);
  lab.cluster.crash_pod("default", "p", 0);
  auto mortal = plugin_pod();
  mortal.restart_policy = "Never";
  lab.cluster.create_pod("default", "mortal", mortal);
  lab.run_for(3s);
  const auto device = lab.plugin_device("mortal");
  lab.cluster.crash_pod("default", "mortal", 1);
  lab.cluster.set_device_health("node-a", device, "Unhealthy");
  lab.run_for(9s);
  CHECK(lab.pod("mortal")["status"]["phase"] == "Failed");
  CHECK(lab.health("mortal") == "Healthy");
}

TEST_CASE("a DRA device shows its CDI name, health and message within a second") {
  DraLab lab;
  REQUIRE(lab.pod("p")["status"]["phase"] == "Running");
  CHECK(lab.dra_device("p") == "gpu-0");
  const auto claim = text(lab.pod("p")["status"]["resourceClaimStatuses"][0], {"resourceClaimName"});
  CHECK(lab.plugin_device("p") == "example.com/gpu=" + uid_of(lab.object(Res::Claims, claim)) + "-gpu-0");
  CHECK(lab.pod("p")["status"]["containerStatuses"][0]["allocatedResourcesStatus"][0]["name"] == "claim:gpu");
  lab.cluster.set_device_health("node-a", "gpu-0", "Unhealthy", "ECC error count exceeded threshold");
  lab.run_for(1s);
  CHECK(lab.health("p") == "Unhealthy");
  CHECK(lab.health_message("p") == "ECC error count exceeded threshold");
}

TEST_CASE(
    "a killed driver turns Unhealthy into Unknown without a message and loses its slices, which come back renamed") {
  DraLab lab;
  lab.cluster.set_device_health("node-a", "gpu-0", "Unhealthy", "ECC");
  lab.run_for(2s);
  const auto slice = lab.cluster.store().all(Res::Slices).begin()->first.name;
  lab.cluster.kill_driver("node-a", kDriver);
  lab.run_for(5s);
  CHECK(lab.health("p") == "Unknown");
  CHECK(lab.health_message("p").empty());
  CHECK(lab.cluster.store().all(Res::Slices).size() == 1);
  lab.run_for(26s);
  CHECK(lab.cluster.store().all(Res::Slices).empty());
  lab.cluster.start_driver("node-a", kDriver);
  lab.run_for(3s);
  CHECK(lab.health("p") == "Unhealthy");
  CHECK(lab.health_message("p") == "ECC");
  REQUIRE(lab.cluster.store().all(Res::Slices).size() == 1);
  CHECK(lab.cluster.store().all(Res::Slices).begin()->first.name != slice);
}

TEST_CASE("without a taint a freed bad DRA device is given again, with one it is not") {
  DraLab lab;
  lab.cluster.set_device_health("node-a", "gpu-0", "Unhealthy", "ECC");
  lab.run_for(2s);
  lab.cluster.create_stateful_set("default", "s", 1, dra_pod());
  lab.run_for(5s);
  CHECK(lab.dra_device("s-0") == "gpu-1");
  const auto before = lab.uid("s-0");
  lab.evict("s-0", before);
  lab.run_for(5s);
  CHECK(lab.uid("s-0") != before);
  CHECK(lab.dra_device("s-0") == "gpu-1");
  lab.cluster.taint_device("node-a", "gpu-1", {"gpu.example.com/xid", "79", "NoSchedule"});
  lab.run_for(1s);
  lab.evict("s-0", lab.uid("s-0"));
  lab.run_for(5s);
  CHECK(lab.dra_device("s-0") == "gpu-2");
}

TEST_CASE("a template claim goes within a second of its pod's end, and the pod loses the field") {
  DraLab lab;
  auto mortal = dra_pod();
  mortal.restart_policy = "Never";
  lab.cluster.create_pod("default", "mortal", mortal);
  lab.run_for(3s);
  CHECK(lab.cluster.store().all(Res::Claims).size() == 2);
  lab.cluster.crash_pod("default", "mortal", 1);
  lab.run_for(1s);
  CHECK(lab.cluster.store().all(Res::Claims).size() == 1);
  CHECK(lab.health("mortal").empty());
}

TEST_CASE("a shared claim of a Deployment keeps its tainted device when all its pods are evicted at once") {
  Lab lab;
  lab.cluster.add_node({"node-a", {}, {{kDriver, 2}}, {}});
  lab.cluster.create_claim("default", "shared", kDriver, 1);
  auto shape = dra_pod();
  shape.shared_claim = "shared";
  shape.on_sigterm = OnSigterm::Ignore;
  shape.grace_seconds = 5;
  lab.cluster.create_deployment("default", "d", 2, shape);
  lab.run_for(5s);
  const auto pods = lab.live("d-");
  REQUIRE(pods.size() == 2);
  CHECK(lab.dra_device(pods[0]) == "gpu-0");
  CHECK(lab.dra_device(pods[1]) == "gpu-0");
  lab.cluster.taint_device("node-a", "gpu-0", {"k.example.com/bad", "", "NoSchedule"});
  lab.run_for(1s);
  for (const auto& pod : pods) CHECK(lab.evict(pod, lab.uid(pod)).status == 201);
  lab.run_for(20s);
  const auto after = lab.live("d-");
  REQUIRE(after.size() == 2);
  CHECK(after != pods);
  CHECK(lab.dra_device(after[0]) == "gpu-0");
}

TEST_CASE("one request of two devices shows two entries under one name") {
  Lab lab;
  lab.cluster.add_node({"node-a", {}, {{kDriver, 2}}, {}});
  auto shape = dra_pod();
  shape.count = 2;
  lab.cluster.create_pod("default", "p", shape);
  lab.run_for(5s);
  const auto entries = lab.pod("p")["status"]["containerStatuses"][0]["allocatedResourcesStatus"];
  REQUIRE(entries.size() == 1);
  CHECK(entries[0]["name"] == "claim:gpu");
  CHECK(entries[0]["resources"].size() == 2);
}

TEST_CASE("a NoExecute rule deletes a pod after a second whatever its budget says") {
  DraLab lab;
  lab.cluster.create_stateful_set("default", "s", 1, dra_pod());
  lab.cluster.add_budget({"default", "b", {{"app", "s"}}, 1, std::nullopt});
  lab.run_for(5s);
  CHECK(lab.evict("s-0", "").status == 429);
  const Json rule = {{"spec",
                      {{"deviceSelector", {{"driver", kDriver}, {"pool", "node-a"}, {"device", "gpu-1"}}},
                       {"taint", {{"key", "k.example.com/bad"}, {"effect", "NoExecute"}}}}}};
  CHECK(lab.apply("/apis/resource.k8s.io/v1/devicetaintrules/r", rule).status == 201);
  lab.run_for(1s);
  const auto pod = lab.pod("s-0");
  CHECK(is_deleting(pod));
  CHECK(condition_status(pod, "DisruptionTarget") == "True");
}

TEST_CASE("a cordoned, tainted or NotReady node gets no new pods") {
  Lab lab;
  lab.cluster.add_node({"node-a", {{kGpu, 4}}, {}, {}});
  lab.run_for(1s);
  lab.cluster.cordon("node-a", true);
  lab.cluster.create_pod("default", "p", plugin_pod());
  lab.run_for(2s);
  CHECK(lab.pod("p")["status"]["phase"] == "Pending");
  lab.cluster.cordon("node-a", false);
  lab.cluster.set_node_ready("node-a", false);
  lab.run_for(2s);
  CHECK(lab.pod("p")["status"]["phase"] == "Pending");
  lab.cluster.set_node_ready("node-a", true);
  lab.run_for(2s);
  CHECK(lab.pod("p")["status"]["phase"] == "Running");
}

TEST_CASE("a health word that the API server does not know is refused with the whole status until another comes") {
  DraLab lab;
  const auto device = lab.dra_device("p");
  lab.cluster.set_device_health("node-a", device, "PermanentlyUnhealthy", "row remapping failed");
  lab.run_for(10s);
  CHECK(lab.health("p") == "Healthy");
  CHECK(lab.evict("p", lab.uid("p")).status == 201);
  lab.run_for(5s);
  CHECK(lab.pod("p").is_null());

  DraLab back;
  back.cluster.set_device_health("node-a", back.dra_device("p"), "PermanentlyUnhealthy");
  back.run_for(10s);
  back.cluster.set_device_health("node-a", back.dra_device("p"), "Unhealthy");
  back.run_for(2s);
  CHECK(back.health("p") == "Unhealthy");
}

TEST_CASE("a pod that starts on a device with a word that the API server does not know stays Pending until another") {
  DraLab lab;
  lab.cluster.set_device_health("node-a", "gpu-1", "PermanentlyUnhealthy");
  lab.cluster.create_pod("default", "q", dra_pod());
  lab.run_for(10s);
  REQUIRE(lab.dra_device("q") == "gpu-1");
  CHECK(lab.pod("q")["status"]["phase"] == "Pending");
  const Json condition = {{"type", "device-health.io/DeviceUnhealthy"}, {"status", "True"}, {"reason", "R"}};
  CHECK(lab.apply("/api/v1/namespaces/default/pods/q/status", {{"status", {{"conditions", Json::array({condition})}}}})
            .status == 200);
  lab.cluster.set_device_health("node-a", "gpu-1", "Unhealthy");
  lab.run_for(2s);
  CHECK(lab.pod("q")["status"]["phase"] == "Running");
  CHECK(lab.health("q") == "Unhealthy");
  CHECK(condition_status(lab.pod("q"), "Ready") == "True");
  CHECK(condition_status(lab.pod("q"), "device-health.io/DeviceUnhealthy") == "True");
}

TEST_CASE(
    "a stored health word that the API server does not know is served, and its pod's writes and eviction are 422") {
  DraLab lab;
  lab.cluster.store().edit(Res::Pods, {"default", "p"}, [](Json& pod) {
    pod["status"]["containerStatuses"][0]["allocatedResourcesStatus"][0]["resources"][0]["health"] =
        "PermanentlyUnhealthy";
  });
  CHECK(lab.health("p") == "PermanentlyUnhealthy");
  const auto refused = lab.evict("p", lab.uid("p"));
  CHECK(refused.status == 422);
  const auto cause = lab.body_of(refused)["details"]["causes"][0];
  CHECK(cause["field"] == "status.containerStatuses[0].allocatedResourcesStatus[0].resources[0].health");
  CHECK(cause["reason"] == "FieldValueNotSupported");
  CHECK(text(cause, {"message"}).starts_with("Unsupported value: \"PermanentlyUnhealthy\""));
  const std::string path = "/api/v1/namespaces/default/pods/p";
  const Json condition = {{"type", "device-health.io/DeviceUnhealthy"}, {"status", "True"}, {"reason", "R"}};
  CHECK(lab.apply(path + "/status", {{"status", {{"conditions", Json::array({condition})}}}}).status == 422);
  CHECK(lab.merge(path, {{"metadata", {{"annotations", {{"a", "b"}}}}}}).status == 200);
  CHECK_FALSE(is_deleting(lab.pod("p")));
  lab.cluster.set_device_health("node-a", lab.dra_device("p"), "Unhealthy");
  lab.run_for(2s);
  CHECK(lab.evict("p", lab.uid("p")).status == 201);
}
