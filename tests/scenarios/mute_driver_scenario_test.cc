// A driver that never says anything about its devices, and kubelets that pass nothing on.
#include <algorithm>

#include <doctest/doctest.h>

#include "tests/support/core/taint_world.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::TaintWorld;
using namespace std::chrono_literals;

namespace {

/// What is said of drivers and resources themselves.
struct MuteWorld : TaintWorld {
  [[nodiscard]] std::vector<std::string> said(Reason reason) const {
    std::vector<std::string> subjects;
    for (const auto& verdict : verdicts()) {
      if (verdict.reason == reason) subjects.push_back(verdict.subject.kind + " " + verdict.subject.name);
    }
    return subjects;
  }
  [[nodiscard]] std::string message(Reason reason) const {
    const auto found = std::ranges::find(verdicts(), reason, &Verdict::reason);
    return found == verdicts().end() ? std::string() : found->message;
  }
  void silence_driver() {
    for (const auto* node : {"node-a", "node-b"}) cluster.mute_driver(node, kDriver);
  }
  void set_kubelet(const std::string& node, const std::string& version, bool reports) {
    cluster.store().edit(Res::Nodes, {"", node},
                         [&](Json& changed) { changed["status"]["nodeInfo"]["kubeletVersion"] = version; });
    cluster.report_health(node, reports);
  }
  [[nodiscard]] std::size_t count_events() const {
    return static_cast<std::size_t>(std::ranges::count_if(cluster.requests(), [](const RequestRecord& request) {
      return request.method == k8s::Method::Post && request.target.contains("/events");
    }));
  }
};

using Subjects = std::vector<std::string>;

}  // namespace

TEST_CASE("a mute driver is told once, ten minutes after pods came to its devices, and no more once it speaks") {
  MuteWorld world;
  world.silence_driver();
  world.run_for(30min);
  CHECK(world.said(Reason::ReporterNeverSpoke).empty());  // nobody holds its devices
  world.cluster.create_stateful_set("default", "s", 4, TaintWorld::dra_pod());
  world.run_for(9min);
  CHECK(world.said(Reason::ReporterNeverSpoke).empty());
  world.run_for(2min);
  CHECK(world.said(Reason::ReporterNeverSpoke) == Subjects{"Driver gpu.example.com"});
  CHECK(world.said(Reason::HealthNotReported).empty());  // its kubelets do report: Unknown
  world.restart_controller();
  world.run_for(9min);
  CHECK(world.said(Reason::ReporterNeverSpoke).empty());
  world.run_for(2min);
  CHECK(world.said(Reason::ReporterNeverSpoke) == Subjects{"Driver gpu.example.com"});
  CHECK(world.count_events() == 0);
  world.set_health(world.device_of("s-2"), "Healthy");
  world.run_for(10s);
  CHECK(world.said(Reason::ReporterNeverSpoke).empty());
  world.silence_driver();
  world.run_for(1h);
  CHECK(world.said(Reason::ReporterNeverSpoke).empty());
}

TEST_CASE("a driver that has only ever tainted a device is not mute, and nor is one with an incident of before") {
  MuteWorld world;
  world.policy().match.device_taints = {{.key = "gpu.example.com/*", .effect = {}}};
  world.policy().evict.reset();
  world.send_policy();
  world.silence_driver();
  const auto device = world.start_one();
  world.run_for(11min);
  CHECK(world.said(Reason::ReporterNeverSpoke).size() == 1);
  CHECK(world.message(Reason::ReporterNeverSpoke).contains("none of the taints that match.deviceTaints asks for"));
  world.cluster.taint_device(world.node_of("s-0"), world.dra_device("s-0"),
                             {"gpu.example.com/xid", "79", "NoSchedule"});
  world.run_for(2min);
  CHECK(world.said(Reason::ReporterNeverSpoke).empty());
  world.cluster.untaint_device(world.node_of("s-0"), world.dra_device("s-0"));
  world.run_for(5s);
  world.restart_controller();
  world.run_for(30min);
  CHECK(world.said(Reason::ReporterNeverSpoke).empty());
}

TEST_CASE("kubelets that pass nothing on are told instead of the driver, and the old ones among them are named") {
  MuteWorld world;
  // Its driver speaks to the kubelets alone.
  world.silence_driver();
  for (const auto* node : {"node-a", "node-b"}) {
    world.set_kubelet(node, "v1.37.1", false);
    for (int i = 0; i < 4; ++i) world.cluster.set_device_health(node, "gpu-" + std::to_string(i), "Healthy");
  }
  world.cluster.create_stateful_set("default", "s", 2, TaintWorld::dra_pod());
  world.run_for(11min);
  REQUIRE(world.node_of("s-0") != world.node_of("s-1"));
  CHECK(world.said(Reason::HealthNotReported) == Subjects{"Driver gpu.example.com"});
  CHECK(world.said(Reason::ReporterNeverSpoke).empty());
  CHECK(world.message(Reason::HealthNotReported).contains("is the feature gate ResourceHealthStatus off"));
  world.set_kubelet("node-a", "v1.35.4", false);
  world.set_kubelet("node-b", "v1.37.1", true);
  world.run_for(1min);
  CHECK(world.message(Reason::HealthNotReported).contains("1 node has a kubelet below 1.36, node-a (v1.35.4)"));
  world.set_kubelet("node-a", "v1.37.1", true);
  world.run_for(1min);
  CHECK(world.said(Reason::HealthNotReported).empty());
  CHECK(world.count_events() == 0);
}
