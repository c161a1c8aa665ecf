// Devices that break by what they have in common: their node, or the release of their driver. That is said, and nothing
// else is done.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "tests/support/core/stage.h"
#include "tests/support/core/wide_caps.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

/// Nodes of as many devices each, all held by pods of workloads of their own.
struct Rack : Stage {
  Rack(int nodes, int per_node, std::int64_t suspect_after = 3) : per_node_(per_node) {
    widen_caps(limits());
    limits().suspect_after = suspect_after;
    limits().evictions_per_minute = 6000;
    limits().max_in_flight = limits().per_node = limits().per_owner = 1000;
    limits().brake_at_least = 10'000;
    policy().after = Seconds(10);
    policy().taint = TaintRules{};
    policy().evict->no_replacement_wait = Seconds(0);
    whole_policy().own_namespace = "dhc";
    hold_caps();
    send_policy();
    std::vector<std::string> devices;
    for (int i = 0; i < per_node; ++i) devices.push_back(fmt::format("gpu-{}", i));
    for (int n = 0; n < nodes; ++n) {
      node(fmt::format("node-{}", n), 0);
      slice(fmt::format("node-{}", n), devices);
    }
    for (int i = 0; i < nodes * per_node; ++i) put_pod(i, fmt::format("ReplicaSet/rs-{}", i));
    settle();
  }

  void put_pod(int number, const std::string& owner) {
    const auto name = fmt::format("p-{}", number);
    auto& held = claim("claim-" + name, {fmt::format("gpu-{}", number % per_node_)}, name);
    held.results.front().pool = fmt::format("node-{}", number / per_node_);
    upsert_claim("claim-" + name);
    auto& put = pod(
        {.name = name, .node = fmt::format("node-{}", number / per_node_), .owner = owner, .claim = "claim-" + name});
    put.meta.creation = now().wall;
    upsert_pod(name);
  }

  void lose_pod(const std::string& name) {
    remove_pod(name);
    remove(k8s::Kind::ResourceClaim, "claim-" + name);
  }

  std::vector<std::string> let_break(int number) {
    report(fmt::format("p-{}", number), Health::Unhealthy, "Xid 79");
    auto gone = run_for(minutes(20), Seconds(10));
    for (const auto& name : gone) lose_pod(name);
    return gone;
  }

  /// The driver's pod on the node, of this revision, made so long ago.
  void put_driver(int node, const std::string& revision, Millis ago) {
    k8s::Pod pod;
    pod.meta.ns = "kube-system";
    pod.meta.name = fmt::format("gpu-driver-{}-{}", revision, node);
    pod.meta.uid = "uid-" + pod.meta.name;
    pod.meta.creation = now().wall - ago;
    pod.meta.labels = {{std::string(k8s::kRevisionLabel), revision}};
    pod.meta.controller =
        k8s::OwnerRef{.api_version = "apps/v1", .kind = "DaemonSet", .name = "gpu-driver", .uid = "uid-ds"};
    pod.node_name = fmt::format("node-{}", node);
    pod.phase = k8s::PodPhase::Running;
    pod.kubelet_plugin = true;
    pod.plugin_folders = {"plugins", "plugins_registry"};
    pod.last_start = pod.meta.creation;
    put(pod);
  }

  void write_on_node(const std::string& name, const std::string& value) {
    auto node = node_named(name);
    node.meta.annotations = {{std::string(kAcknowledgeAnnotation), value}};
    put(node);
  }

  [[nodiscard]] const Verdict* said_of(std::string_view kind, Reason reason) const {
    const auto found = std::ranges::find_if(
        verdicts(), [&](const Verdict& one) { return one.reason == reason && one.subject.kind == kind; });
    return found == verdicts().end() ? nullptr : &*found;
  }

 private:
  int per_node_;
};

constexpr int kBad = 40;  // the first device of node-5

/// Thirteen nodes of eight, of one of which four break.
Rack with_bad_rack_node(std::int64_t suspect_after = 3) {
  Rack rack(13, 8, suspect_after);
  for (int i = 0; i < 4; ++i) {
    CHECK(rack.said_of("Node", Reason::NodeSuspected) == nullptr);
    CHECK(rack.let_break(kBad + i) == std::vector<std::string>{fmt::format("p-{}", kBad + i)});
  }
  return rack;
}

/// Forty nodes of two, five of which have a new release that breaks what it serves.
Rack with_bad_release() {
  Rack rack(40, 2);
  for (int n = 0; n < 40; ++n) rack.put_driver(n, n < 5 ? "new" : "old", n < 5 ? hours(2) : hours(900));
  rack.settle();
  for (int n = 0; n < 5; ++n) {
    CHECK(rack.said_of("DaemonSet", Reason::DriverSuspected) == nullptr);
    CHECK(rack.let_break(n * 2).size() == 1);
  }
  return rack;
}

/// To the millisecond.
void check_ends(Rack& rack, std::string_view kind, Reason reason, WallTime at) {
  rack.advance(std::chrono::floor<Millis>(at - rack.now().wall) - Millis(1));
  rack.settle();
  CHECK(rack.said_of(kind, reason) != nullptr);
  rack.advance(Millis(1));
  rack.settle();
  CHECK(rack.said_of(kind, reason) == nullptr);
}

}  // namespace

TEST_CASE("A node whose devices break under ever other workloads is named, with the evidence and an Event") {
  auto rack = with_bad_rack_node();
  const auto* said = rack.said_of("Node", Reason::NodeSuspected);
  REQUIRE(said != nullptr);
  CHECK(said->subject.name == "node-5");
  CHECK(said->subject.uid == "uid-node-5");
  CHECK(said->device == kDriver);
  CHECK(said->message.starts_with("node node-5 is suspected of breaking its devices: since "));
  CHECK(
      said->message.contains("4 devices of gpu.example.com broke there under 4 workloads, where others held 4 that "
                             "were well; it has at most 7.7 percent of those that are held"));
  CHECK(said->message.contains("nothing is held or moved because of that"));
  CHECK(rack.has_event("node-5", "NodeSuspected"));
  CHECK(std::ranges::find(rack.verdicts(), Reason::WorkloadSuspected, &Verdict::reason) == rack.verdicts().end());
  CHECK(rack.state_text().contains("at node/node-5"));
}

TEST_CASE("Nothing that is done rests on a node's suspicion") {
  auto rack = with_bad_rack_node();
  auto without = with_bad_rack_node(0);
  CHECK(without.said_of("Node", Reason::NodeSuspected) == nullptr);
  for (auto* one : {&rack, &without}) {
    CHECK(one->let_break(kBad + 4) == std::vector<std::string>{"p-44"});
    CHECK(one->let_break(3) == std::vector<std::string>{"p-3"});
  }
  REQUIRE(rack.said_of("Node", Reason::NodeSuspected) != nullptr);
  CHECK(rack.writes() == without.writes());
  CHECK(rack.wake_at() == without.wake_at());
}

TEST_CASE(
    "A restart before each device and after them names the same node, in the same words, and tells nobody twice") {
  Rack rack(13, 8);
  for (int i = 0; i < 4; ++i) {
    rack.restart();
    CHECK(rack.let_break(kBad + i).size() == 1);
  }
  const auto* said = rack.said_of("Node", Reason::NodeSuspected);
  REQUIRE(said != nullptr);
  const auto before = *said;
  rack.restart();
  CHECK(rack.run_for(minutes(5), Seconds(10)).empty());
  said = rack.said_of("Node", Reason::NodeSuspected);
  REQUIRE(said != nullptr);
  CHECK(said->message == before.message);
  CHECK(said->since == before.since);
  std::vector<std::string> names;
  for (const auto& event : rack.events()) {
    if (event.reason == "NodeSuspected") names.push_back(event.name);
  }
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  CHECK(names.size() == 1);
}

TEST_CASE("An operator's word on the node ends it, not one dated ahead, and what breaks later counts anew") {
  auto rack = with_bad_rack_node();
  rack.write_on_node("node-5", format_rfc3339(rack.now().wall + minutes(10)));
  rack.run_for(minutes(9), Seconds(30));
  CHECK(rack.said_of("Node", Reason::NodeSuspected) != nullptr);
  rack.run_for(minutes(2), Seconds(30));
  CHECK(rack.said_of("Node", Reason::NodeSuspected) == nullptr);
  for (int i = 4; i < 7; ++i) rack.let_break(kBad + i);
  CHECK(rack.said_of("Node", Reason::NodeSuspected) == nullptr);
  rack.let_break(kBad + 7);
  CHECK(rack.said_of("Node", Reason::NodeSuspected) != nullptr);
}

TEST_CASE("What broke on a node of before is not held against the one that is made anew under its name") {
  auto rack = with_bad_rack_node();
  auto node = rack.node_named("node-5");
  node.meta.uid = "uid-node-5-anew";
  node.meta.creation = rack.now().wall;
  rack.put(node);
  rack.settle();
  CHECK(rack.said_of("Node", Reason::NodeSuspected) == nullptr);
  rack.let_break(kBad + 4);
  CHECK(rack.said_of("Node", Reason::NodeSuspected) == nullptr);
}

TEST_CASE("A node is bad as long as one of its devices is out of service, and a day longer") {
  auto rack = with_bad_rack_node();
  rack.run_for(hours(22), minutes(30));
  const auto* said = rack.said_of("Node", Reason::NodeSuspected);
  REQUIRE(said != nullptr);
  CHECK_FALSE(said->next_at);
  rack.run_for(hours(3), minutes(10));  // the last of the incidents has been held for a day
  said = rack.said_of("Node", Reason::NodeSuspected);
  REQUIRE(said != nullptr);
  REQUIRE(said->next_at);
  const auto until = *said->next_at;
  check_ends(rack, "Node", Reason::NodeSuspected, until);
}

TEST_CASE("Of a node that a suspected workload holds alone nothing is said") {
  Rack rack(13, 8);
  for (const int number : {0, 8, kBad + 7}) rack.put_pod(number, "ReplicaSet/poison");
  rack.settle();
  for (const int number : {0, 8, kBad + 7}) rack.let_break(number);
  REQUIRE(rack.verdict("poison", Reason::WorkloadSuspected) != nullptr);
  for (int i = 0; i < 4; ++i) rack.let_break(kBad + i);
  REQUIRE(rack.said_of("Node", Reason::NodeSuspected) != nullptr);
  for (int i = 4; i < 7; ++i) rack.lose_pod(fmt::format("p-{}", kBad + i));
  rack.settle();
  CHECK(rack.said_of("Node", Reason::NodeSuspected) == nullptr);
  rack.put_pod(kBad + 4, "ReplicaSet/other");
  rack.settle();
  CHECK(rack.said_of("Node", Reason::NodeSuspected) != nullptr);
}

TEST_CASE("A release of the driver under which devices break on node after node is named on its DaemonSet") {
  auto rack = with_bad_release();
  const auto* said = rack.said_of("DaemonSet", Reason::DriverSuspected);
  REQUIRE(said != nullptr);
  CHECK(said->subject.ns == "kube-system");
  CHECK(said->subject.name == "gpu-driver");
  CHECK(said->subject.uid == "uid-ds");
  CHECK(
      said->message.starts_with("revision new of DaemonSet kube-system/gpu-driver is suspected of breaking the "
                                "devices that it serves: since "));
  CHECK(
      said->message.contains("5 devices of gpu.example.com broke on 5 nodes where it runs, under 5 workloads; it "
                             "serves at most 12.5 percent of those that are held"));
  CHECK(rack.has_event("gpu-driver", "DriverSuspected"));
  CHECK(rack.said_of("Node", Reason::NodeSuspected) == nullptr);
  const auto message = said->message;
  rack.restart();
  rack.run_for(minutes(5), Seconds(10));
  said = rack.said_of("DaemonSet", Reason::DriverSuspected);
  REQUIRE(said != nullptr);
  CHECK(said->message == message);
  // Moved as before: it is still the devices that go out of service.
  CHECK(rack.let_break(1) == std::vector<std::string>{"p-1"});
}

TEST_CASE("A release is suspected until nothing has broken under it for a day, whatever serves the devices then") {
  auto rack = with_bad_release();
  const auto* said = rack.said_of("DaemonSet", Reason::DriverSuspected);
  REQUIRE(said != nullptr);
  REQUIRE(said->next_at);
  const auto until = *said->next_at;
  CHECK(until > rack.now().wall + hours(23));
  CHECK(until <= rack.now().wall + hours(24));
  for (int n = 0; n < 5; ++n) {
    rack.remove_pod(fmt::format("gpu-driver-new-{}", n));
    rack.put_driver(n, "old", Millis(0));
  }
  rack.settle();
  said = rack.said_of("DaemonSet", Reason::DriverSuspected);
  REQUIRE(said != nullptr);
  CHECK(said->next_at == until);
  check_ends(rack, "DaemonSet", Reason::DriverSuspected, until);
}

TEST_CASE("What was bad before the release came is not its fault") {
  Rack rack(40, 2);
  for (int n = 0; n < 40; ++n) rack.put_driver(n, "old", hours(900));
  for (int n = 0; n < 5; ++n) rack.report(fmt::format("p-{}", n * 2), Health::Unhealthy, "Xid 79");
  rack.run_for(Seconds(5));
  for (int n = 0; n < 5; ++n) {
    rack.remove_pod(fmt::format("gpu-driver-old-{}", n));
    rack.put_driver(n, "new", Millis(0));
  }
  // They wait until the driver has settled, and count then.
  CHECK(rack.run_for(minutes(20), Seconds(10)).size() == 5);
  CHECK(rack.said_of("DaemonSet", Reason::DriverSuspected) == nullptr);
}

}  // namespace dhc::test
