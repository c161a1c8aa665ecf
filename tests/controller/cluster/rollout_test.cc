// What breaks on a node while its driver is being replaced there waits, bounded; and what breaks on several nodes by
// one roll-out is said once.
#include <algorithm>
#include <set>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "domain/cluster/reporters.h"
#include "tests/controller/taint/gpu_stage.h"
#include "tests/support/core/wide_caps.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

struct RolledPod {
  std::string name = "gpu-driver-1";
  std::string node = "node-a";
  WallTime made;
  std::optional<WallTime> asked = {};  ///< To end.
  std::string revision = "new";
  std::string generation = {};
};

void put_rolled(Stage& stage, const RolledPod& spec) {
  k8s::Pod pod;
  pod.meta.ns = "kube-system";
  pod.meta.name = spec.name;
  pod.meta.uid = "uid-" + spec.name;
  pod.meta.creation = spec.made;
  if (spec.asked) pod.meta.deletion = *spec.asked + Seconds(30);
  if (spec.asked) pod.meta.deletion_grace_seconds = 30;
  pod.meta.labels = {{std::string(k8s::kRevisionLabel), spec.revision}};
  if (!spec.generation.empty()) pod.meta.labels.emplace_back(k8s::kGenerationLabel, spec.generation);
  pod.meta.controller =
      k8s::OwnerRef{.api_version = "apps/v1", .kind = "DaemonSet", .name = "gpu-driver", .uid = "uid-ds"};
  pod.node_name = spec.node;
  pod.phase = k8s::PodPhase::Running;
  pod.kubelet_plugin = true;
  pod.plugin_folders = {"plugins", "plugins_registry"};
  pod.last_start = spec.made;
  stage.put(pod);
}

/// Its device is healthy, and its driver has long run.
Stage settled_stage() {
  auto stage = gpu_stage();
  put_rolled(stage, {.name = "gpu-driver-0", .made = stage.now().wall - hours(5), .revision = "old"});
  stage.report("train-1", Health::Healthy);
  stage.settle();
  return stage;
}

/// When the device's incident opens, from now; none: not within the time.
std::optional<Millis> opens_after(Stage& stage, Millis most, Millis step = Seconds(1)) {
  for (Millis passed{0}; passed <= most; passed += step) {
    stage.settle();
    if (stage.rule() != nullptr) return passed;
    stage.advance(step);
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("What breaks under a new driver's pod waits until ten minutes after that was made, and not a second longer") {
  auto stage = settled_stage();
  stage.remove_pod("gpu-driver-0");
  const auto made = stage.now();
  put_rolled(stage, {.made = made.wall});
  stage.run_for(minutes(2));
  stage.report("train-1", Health::Unhealthy, "Xid 31");
  stage.run_for(Seconds(90));
  const auto* held = stage.verdict("train-1", Reason::DriverRolling);
  REQUIRE(held != nullptr);
  CHECK(held->message ==
        "driver pod kube-system/gpu-driver-1 is new: what breaks there counts if it is still bad 600 s after that");
  CHECK(held->next_at == made.wall + kRolloutHold);
  CHECK(stage.rule() == nullptr);
  CHECK(stage.events().empty());
  CHECK(stage.conditions().empty());
  const auto opens = opens_after(stage, minutes(10));
  REQUIRE(opens);
  CHECK(stage.now().mono - made.mono == kRolloutHold);
}

TEST_CASE("What has recovered when the driver has settled has never been an incident") {
  auto stage = settled_stage();
  put_rolled(stage, {.made = stage.now().wall});
  stage.report("train-1", Health::Unhealthy, "Xid 31");
  stage.run_for(minutes(5));
  stage.report("train-1", Health::Healthy);
  CHECK_FALSE(opens_after(stage, minutes(20)));
  CHECK(stage.events().empty());
}

TEST_CASE("While the old driver's pod goes, and until the new one has settled, its node waits") {
  auto stage = settled_stage();
  const auto asked = stage.now();
  put_rolled(stage, {.name = "gpu-driver-0", .made = asked.wall - hours(5), .asked = asked.wall, .revision = "old"});
  stage.report("train-1", Health::Unhealthy, "Xid 31");
  stage.run_for(Seconds(70));
  REQUIRE(stage.verdict("train-1", Reason::DriverRolling) != nullptr);
  CHECK(stage.verdict("train-1", Reason::DriverRolling)
            ->message.starts_with("driver pod kube-system/gpu-driver-0 is being replaced"));
  // Between the two there is no pod at all.
  stage.remove_pod("gpu-driver-0");
  stage.run_for(minutes(3));
  CHECK(stage.verdict("train-1", Reason::DriverRolling) != nullptr);
  put_rolled(stage, {.made = stage.now().wall});
  stage.run_for(minutes(5));
  CHECK(stage.verdict("train-1", Reason::DriverRolling) != nullptr);
  REQUIRE(opens_after(stage, minutes(20)));
  // Not for ten minutes after this pod, but as long as any roll-out may hold it.
  CHECK(stage.now().mono - asked.mono == stage.policy().after + kRolloutHold);
}

TEST_CASE("A driver whose pod goes and never comes back holds nothing for ever") {
  auto stage = settled_stage();
  const auto asked = stage.now();
  put_rolled(stage, {.name = "gpu-driver-0", .made = asked.wall - hours(5), .asked = asked.wall});
  stage.report("train-1", Health::Unhealthy, "Xid 31");
  stage.settle();
  SUBCASE("it hangs") {}
  SUBCASE("it is gone") { stage.remove_pod("gpu-driver-0"); }
  REQUIRE(opens_after(stage, minutes(20)));
  CHECK(stage.now().mono - asked.mono == kRolloutHold);
}

TEST_CASE("Pods that are made anew without end hold an incident for ten minutes, and no longer") {
  auto stage = settled_stage();
  const auto start = stage.now();
  stage.report("train-1", Health::Unhealthy, "Xid 31");
  for (int pod = 0; pod < 20 && stage.rule() == nullptr; ++pod) {
    const auto name = fmt::format("gpu-driver-{}", pod);
    put_rolled(stage, {.name = name, .made = stage.now().wall});
    for (int second = 0; second < 120 && stage.rule() == nullptr; ++second) stage.run_for(Seconds(1));
    const RolledPod going{.name = name, .made = stage.now().wall - minutes(2), .asked = stage.now().wall};
    put_rolled(stage, going);
    if (stage.rule() == nullptr) stage.remove_pod(name);
  }
  REQUIRE(stage.rule() != nullptr);
  CHECK(stage.now().mono - start.mono >= kRolloutHold + stage.policy().after);
  CHECK(stage.now().mono - start.mono <= kRolloutHold + stage.policy().after + Seconds(2));
}

TEST_CASE("An incident that was open when the roll-out began goes on") {
  auto stage = settled_stage();
  stage.report("train-1", Health::Unhealthy, "Xid 79");
  stage.policy().evict->after = minutes(5);
  stage.send_policy();
  REQUIRE(opens_after(stage, minutes(2)));
  put_rolled(stage, {.name = "gpu-driver-0", .made = stage.now().wall - hours(5), .asked = stage.now().wall});
  stage.run_for(Seconds(30));
  stage.remove_pod("gpu-driver-0");
  put_rolled(stage, {.made = stage.now().wall});
  stage.run_for(minutes(1));
  CHECK(stage.verdict("train-1", Reason::DriverRolling) == nullptr);
  CHECK(stage.rule() != nullptr);
  CHECK(stage.run_for(minutes(6)) == std::vector<std::string>{"train-1"});
}

TEST_CASE("The first driver of a new node, and one that is not the device's, hold nothing") {
  for (const bool is_new_node : {true, false}) {
    CAPTURE(is_new_node);
    auto stage = settled_stage();
    auto node = stage.node_named("node-a");
    if (is_new_node) {
      node.meta.creation = stage.now().wall - minutes(1);
      stage.put(node);
      stage.remove_pod("gpu-driver-0");
      put_rolled(stage, {.made = stage.now().wall});
    } else {
      put_rolled(stage, {.name = "gpu-driver-9", .node = "node-b", .made = stage.now().wall});
    }
    stage.report("train-1", Health::Unhealthy, "Xid 79");
    const auto opens = opens_after(stage, minutes(20));
    REQUIRE(opens);
    CHECK(*opens == stage.policy().after);
  }
}

TEST_CASE(
    "A driver that is installed is no roll-out, and its next release is one, also to a controller that begins then") {
  for (const std::string generation : {"1", "2"}) {
    CAPTURE(generation);
    auto stage = settled_stage();
    stage.remove_pod("gpu-driver-0");
    put_rolled(stage, {.made = stage.now().wall, .generation = generation});
    stage.restart();
    stage.report("train-1", Health::Unhealthy, "Xid 79");
    const auto opens = opens_after(stage, minutes(20));
    REQUIRE(opens);
    CHECK((*opens == stage.policy().after) == (generation == "1"));
  }
}

TEST_CASE("The second driver of a new node is a roll-out") {
  auto stage = settled_stage();
  auto node = stage.node_named("node-a");
  node.meta.creation = stage.now().wall - minutes(1);
  stage.put(node);
  put_rolled(stage, {.name = "gpu-driver-0", .made = stage.now().wall - minutes(1), .asked = stage.now().wall});
  stage.run_for(Seconds(20));
  stage.remove_pod("gpu-driver-0");
  put_rolled(stage, {.made = stage.now().wall});
  stage.report("train-1", Health::Unhealthy, "Xid 31");
  stage.run_for(minutes(5));
  CHECK(stage.verdict("train-1", Reason::DriverRolling) != nullptr);
  CHECK(stage.rule() == nullptr);
}

TEST_CASE("A container that begins anew in the same pod is no roll-out") {
  auto stage = settled_stage();
  auto restarted = RolledPod{.name = "gpu-driver-0", .made = stage.now().wall - hours(5), .revision = "old"};
  put_rolled(stage, restarted);
  auto& pod = stage.pod_named("gpu-driver-0");
  pod.last_start = stage.now().wall;
  stage.upsert_pod("gpu-driver-0");
  stage.report("train-1", Health::Unhealthy, "Xid 79");
  const auto opens = opens_after(stage, minutes(20));
  REQUIRE(opens);
  CHECK(*opens == stage.policy().after);
}

TEST_CASE("A controller that restarts in the middle waits until the same moment") {
  auto stage = settled_stage();
  stage.remove_pod("gpu-driver-0");
  const auto made = stage.now();
  put_rolled(stage, {.made = made.wall});
  stage.report("train-1", Health::Unhealthy, "Xid 31");
  for (int minute = 0; minute < 9; ++minute) {
    stage.run_for(minutes(1));
    stage.restart();
  }
  stage.settle();
  CHECK(stage.rule() == nullptr);
  // What it sees for the first time is a minute old at the earliest.
  REQUIRE(opens_after(stage, minutes(10)));
  CHECK(stage.now().mono - made.mono == kRolloutHold);
}

namespace {

/// Nodes with a DRA device each, held by a pod; a driver's pod on each that has long run.
struct Fleet : Stage {
  static constexpr int kNodes = 6;

  Fleet() {
    widen_caps(limits());
    limits().brake_at_least = 1000;
    limits().max_in_flight = limits().per_node = 100;
    policy().taint = TaintRules{};
    send_policy();
    for (int n = 0; n < kNodes; ++n) {
      const auto where = fmt::format("node-{}", n);
      node(where, 0);
      slice(where, kFourGpus);
      auto& held = claim(fmt::format("claim-{}", n), {"gpu-0"}, fmt::format("p-{}", n));
      held.results.front().pool = where;
      upsert_claim(fmt::format("claim-{}", n));
      pod({.name = fmt::format("p-{}", n),
           .node = where,
           .owner = fmt::format("ReplicaSet/rs-{}", n),
           .claim = fmt::format("claim-{}", n)});
      put_rolled(*this,
                 {.name = fmt::format("old-{}", n), .node = where, .made = now().wall - hours(9), .revision = "old"});
    }
    settle();
  }

  void roll(int n, const std::string& words) {
    remove_pod(fmt::format("old-{}", n));
    put_rolled(*this, {.name = fmt::format("new-{}", n), .node = fmt::format("node-{}", n), .made = now().wall});
    run_for(Seconds(5));
    report(fmt::format("p-{}", n), Health::Unhealthy, words);
    run_for(Seconds(25));
  }

  /// By their names: one that is sent again after a restart is there already.
  [[nodiscard]] std::size_t events_of(std::string_view reason) const {
    std::set<std::string> names;
    for (const auto& event : events()) {
      if (reason.empty() || event.reason == reason) names.insert(event.name);
    }
    return names.size();
  }
};

}  // namespace

TEST_CASE(
    "The same words on three nodes of one roll-out are one Event on its DaemonSet, and one more when they count") {
  Fleet fleet;
  for (int n = 0; n < Fleet::kNodes; ++n) {
    fleet.roll(n, fmt::format("Xid 31 on gpu-{}", n));
    CHECK((fleet.verdict("gpu-driver", Reason::DriverRolling) != nullptr) == (n >= 2));
  }
  const auto* said = fleet.verdict("gpu-driver", Reason::DriverRolling);
  REQUIRE(said != nullptr);
  CHECK(said->subject.kind == "DaemonSet");
  CHECK(said->subject.ns == "kube-system");
  CHECK(
      said->message ==
      "devices of 6 pods on 6 nodes went bad with the same words while its pods began anew there (revision new); of 6 "
      "no incident opens until 600 s after that: stop the roll-out and look at the driver: Xid 31 on gpu-5");
  CHECK(fleet.events_of("DriverRolling") == 1);
  CHECK(fleet.events_of({}) == 1);
  CHECK(fleet.events().front().note.starts_with("devices of 3 pods on 3 nodes"));
  for (int n = 0; n < Fleet::kNodes; ++n)
    CHECK(fleet.verdict(fmt::format("p-{}", n), Reason::DriverRolling) != nullptr);
  fleet.restart();
  fleet.run_for(Seconds(30));
  CHECK(fleet.events_of({}) == 1);
  fleet.policy().evict.reset();
  fleet.send_policy();
  fleet.run_for(minutes(15), Seconds(5));
  CHECK(fleet.events_of("DeviceUnhealthy") == 0);
  CHECK(fleet.events_of("DriverRolling") == 2);
  CHECK(std::ranges::count(fleet.writes(), "apply NoSchedule gpu-0") == Fleet::kNodes);
  // Where fewer than three are left, each is told for itself.
  for (int n = 0; n < 4; ++n) fleet.report(fmt::format("p-{}", n), Health::Healthy);
  fleet.run_for(minutes(5), Seconds(5));
  CHECK(fleet.verdict("gpu-driver", Reason::DriverRolling) == nullptr);
  CHECK(fleet.events_of("DeviceUnhealthy") == 2);
}

TEST_CASE("Other words, and what was bad before the roll-out, have another cause") {
  for (const bool is_old : {true, false}) {
    CAPTURE(is_old);
    Fleet fleet;
    const std::vector<std::string> words = {"fallen off the bus", "ECC", "link down", "overheated", "lost", "hung"};
    for (int n = 0; n < Fleet::kNodes; ++n) {
      if (is_old) {
        fleet.report(fmt::format("p-{}", n), Health::Unhealthy, "Xid 31");
        fleet.run_for(Seconds(10));
      }
      fleet.roll(n, is_old ? "Xid 31" : words[static_cast<std::size_t>(n)]);
    }
    CHECK(fleet.verdict("gpu-driver", Reason::DriverRolling) == nullptr);
    CHECK(fleet.events_of("DriverRolling") == 0);
    fleet.run_for(minutes(12), Seconds(5));
    CHECK(fleet.events_of("DeviceUnhealthy") == Fleet::kNodes);
  }
}

}  // namespace dhc::test
