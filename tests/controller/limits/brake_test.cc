#include <doctest/doctest.h>
#include <fmt/format.h>

#include "domain/contract/names.h"
#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;
using Names = std::vector<std::string>;

namespace {

/// Limits that hold nothing, so that only the brake does.
Limits wide_open() { return {.evictions_per_minute = 6000, .max_in_flight = 100, .per_node = 100, .per_owner = 100}; }

/// A node with so many devices, all held; a second node with eight free ones.
Stage held_node(int devices) {
  Stage stage;
  stage.limits() = wide_open();
  stage.send_policy();
  stage.node("node-a", devices);
  stage.node("node-b", 8);
  for (int i = 0; i < devices; ++i)
    stage.pod(
        {.name = fmt::format("p-{}", i), .owner = fmt::format("ReplicaSet/{}", i), .device = fmt::format("gpu-{}", i)});
  stage.settle();
  return stage;
}

Stage eight() { return held_node(8); }

void break_devices(Stage& stage, int count, int devices = 8) {
  for (int i = 0; i < count; ++i) stage.report(fmt::format("p-{}", i), Health::Unhealthy);
  stage.node("node-a", devices, devices - count);
}

/// Writes an annotation on node-a with `bad` devices that are not allocatable.
void annotate(Stage& stage, std::string_view name, const std::string& value) {
  auto node = stage.node_named("node-a");
  node.meta.annotations = {{std::string(name), value}};
  stage.put(node);
}

/// `count` pods on DRA devices of node-a, each with a claim of its own.
void add_dra_pods(Stage& stage, int count, Health health) {
  std::vector<std::string> devices;
  for (int i = 0; i < count; ++i) devices.push_back(fmt::format("gpu-{}", i));
  stage.node("node-a", 0);
  stage.slice("node-a", devices);
  for (int i = 0; i < count; ++i) {
    stage.claim(fmt::format("c-{}", i), {devices.at(static_cast<std::size_t>(i))}, fmt::format("p-{}", i));
    stage.pod({.name = fmt::format("p-{}", i),
               .owner = fmt::format("ReplicaSet/{}", i),
               .health = health,
               .claim = fmt::format("c-{}", i)});
  }
}

const Subject kConfiguration{.kind = "ConfigMap", .ns = "dhc", .name = "device-health-controller", .uid = "uid-config"};

std::ptrdiff_t events_of(const Stage& stage, std::string_view reason) {
  return std::ranges::count(stage.events(), reason, &notice::EmitEvent::reason);
}

/// All eight devices of node-a are bad, and six of their pods have ended by themselves; nothing is tried.
Stage six_end() {
  auto stage = eight();
  stage.whole_policy().own_namespace = "dhc";
  stage.limits().brake_trial_after = hours(720);
  stage.send_policy();
  break_devices(stage, 8);
  stage.run_for(minutes(10), Seconds(10));
  for (int i = 0; i < 6; ++i) stage.remove_pod(fmt::format("p-{}", i));
  return stage;
}

}  // namespace

TEST_CASE("Two of eight devices at once do not engage the brake, three do") {
  auto two = eight();
  break_devices(two, 2);
  CHECK(two.run_for(minutes(2)) == Names{"p-0", "p-1"});
  auto three = eight();
  break_devices(three, 3);
  CHECK(three.run_for(minutes(2)).empty());
  CHECK(three.reasons("p-0") == "Braked");
  CHECK(three.verdict("p-0", Reason::Braked)->message ==
        "3 of 8 devices of example.com/gpu on node node-a are bad: suspect a reporting fault; the brake is released "
        "when at most 2 are; half-open from 2026-11-20T12:30:00Z");
  CHECK(three.verdict("node-a", Reason::BrakeEngaged)->message ==
        "3 of 8 devices of example.com/gpu on node node-a are bad: evictions, credits and new taints there stop; "
        "released when at most 2 are; half-open from 2026-11-20T12:30:00Z");
  CHECK(three.has_event("node-a", "BrakeEngaged"));
}

TEST_CASE("With a count so many engage a brake whatever share they are, and one fewer do not") {
  for (const int bad : {3, 4}) {
    CAPTURE(bad);
    auto stage = held_node(20);  // of which 30 percent are six
    stage.limits().brake_count = 4;
    stage.limits().per_owner = 100;
    stage.send_policy();
    break_devices(stage, bad, 20);
    const auto gone = stage.run_for(minutes(2));
    CHECK(gone.empty() == (bad == 4));
    if (bad != 4) continue;
    REQUIRE(stage.verdict("node-a", Reason::BrakeEngaged) != nullptr);
    // It goes as it came: fewer than the count for half a minute.
    stage.report("p-0", Health::Healthy);
    stage.node("node-a", 20, 17);
    CHECK(stage.run_for(Seconds(29)).empty());
    CHECK_FALSE(stage.run_for(minutes(2)).empty());
  }
}

TEST_CASE("A brake that engages recalls what was ordered before, once") {
  auto stage = eight();
  break_devices(stage, 3);
  int recalls = 0;
  for (int second = 0; second < 120; ++second) {
    stage.turn();
    recalls += stage.recalls() ? 1 : 0;
    stage.advance(Seconds(1));
  }
  CHECK(recalls == 1);
}

TEST_CASE("A brake that engages in the turn that releases another recalls too") {
  const auto is_braked = [](const Stage& stage, const std::string& node) {
    return stage.verdict(node, Reason::BrakeEngaged) != nullptr;
  };
  // Node-a's brake is engaged, and its devices are well again from now on.
  const auto repaired = [] {
    auto stage = eight();
    stage.node("node-c", 8, 8);
    for (int i = 0; i < 3; ++i) {
      stage.pod({.name = fmt::format("c-{}", i),
                 .node = "node-c",
                 .owner = fmt::format("ReplicaSet/c{}", i),
                 .device = fmt::format("gpu-{}", i)});
    }
    break_devices(stage, 3);
    stage.turn();
    REQUIRE(stage.recalls());
    for (int i = 0; i < 3; ++i) stage.report(fmt::format("p-{}", i), Health::Healthy);
    stage.node("node-a", 8, 8);
    return stage;
  };
  auto first = repaired();
  int seconds = 0;
  for (; is_braked(first, "node-a") && seconds < 300; ++seconds) {
    first.advance(Seconds(1));
    first.turn();
    CHECK_FALSE(first.recalls());
  }
  REQUIRE(seconds < 300);
  auto stage = repaired();
  for (int second = 1; second < seconds; ++second) {
    stage.advance(Seconds(1));
    stage.turn();
  }
  REQUIRE(is_braked(stage, "node-a"));
  for (int i = 0; i < 3; ++i) stage.report(fmt::format("c-{}", i), Health::Unhealthy);
  stage.node("node-c", 8, 5);
  stage.advance(Seconds(1));
  stage.turn();
  CHECK_FALSE(is_braked(stage, "node-a"));
  CHECK(is_braked(stage, "node-c"));
  CHECK(stage.recalls());
}

TEST_CASE("The brake of a node with 1, 2, 4 and 8 devices does what its page says") {
  struct Row {
    int devices;
    int bad;
    bool engaged;
  };
  for (const auto& row : {Row{1, 1, false}, Row{2, 2, false}, Row{4, 2, false}, Row{4, 3, true}, Row{4, 4, true},
                          Row{8, 2, false}, Row{8, 3, true}, Row{8, 8, true}}) {
    CAPTURE(row.devices);
    CAPTURE(row.bad);
    auto stage = held_node(row.devices);
    break_devices(stage, row.bad, row.devices);
    CHECK(stage.run_for(minutes(2)).size() == (row.engaged ? 0U : static_cast<std::size_t>(row.bad)));
    CHECK((stage.verdict("node-a", Reason::BrakeEngaged) != nullptr) == row.engaged);
  }
}

TEST_CASE("The brake holds while the fault lasts, and is released half a minute after it is below the share") {
  auto stage = eight();
  stage.limits().brake_trial_after = hours(720);
  stage.send_policy();
  break_devices(stage, 8);
  CHECK(stage.run_for(hours(20), Seconds(30)).empty());
  CHECK(stage.reasons("p-0") == "Braked");
  for (int i = 0; i < 5; ++i) stage.report(fmt::format("p-{}", i), Health::Healthy);
  stage.node("node-a", 8, 5);
  CHECK(stage.run_for(minutes(10), Seconds(30)).empty());  // three of eight are still more than 30 %
  stage.report("p-5", Health::Healthy);
  stage.node("node-a", 8, 6);
  CHECK(stage.run_for(Seconds(30) - Millis(1), Seconds(1)).empty());
  CHECK(stage.reasons("p-6") == "Braked");
  stage.advance(Millis(1));
  CHECK(stage.settle() == Names{"p-6", "p-7"});
}

TEST_CASE("Reports that turn Healthy one after the other evict nobody on the way") {
  auto stage = eight();
  break_devices(stage, 8);
  stage.run_for(minutes(10), Seconds(10));
  for (int i = 0; i < 8; ++i) {
    stage.report(fmt::format("p-{}", i), Health::Healthy);
    CHECK(stage.run_for(Seconds(4)).empty());
  }
  stage.node("node-a", 8, 8);
  CHECK(stage.run_for(minutes(10), Seconds(10)).empty());
  CHECK(stage.verdict("node-a", Reason::BrakeEngaged) == nullptr);
}

TEST_CASE("A fault that comes back within half a minute finds the brake engaged, and later engages it anew") {
  for (const auto pause : {Seconds(29), Seconds(31)}) {
    CAPTURE(pause.count());
    auto stage = eight();
    break_devices(stage, 8);
    stage.run_for(minutes(10), Seconds(10));
    for (int i = 0; i < 8; ++i) stage.report(fmt::format("p-{}", i), Health::Healthy);
    stage.node("node-a", 8, 8);
    stage.run_for(pause);
    CHECK((stage.verdict("node-a", Reason::BrakeEngaged) == nullptr) == (pause > Seconds(30)));
    break_devices(stage, 8);
    CHECK(stage.run_for(minutes(10), Seconds(10)).empty());
    CHECK(stage.reasons("p-0") == "Braked");
  }
}

TEST_CASE("NVML fails on one node: eight devices, six pods, and none of them is evicted for it") {
  Stage stage;
  stage.limits() = wide_open();
  stage.send_policy();
  stage.node("node-a", 8);
  for (int i = 0; i < 6; ++i)
    stage.pod(
        {.name = fmt::format("p-{}", i), .owner = fmt::format("ReplicaSet/{}", i), .device = fmt::format("gpu-{}", i)});
  stage.settle();
  for (int i = 0; i < 6; ++i) stage.report(fmt::format("p-{}", i), Health::Unhealthy);
  stage.node("node-a", 8, 0);
  CHECK(stage.run_for(hours(24), Seconds(30)).empty());
  CHECK(stage.reasons("p-0").find("Braked") != std::string::npos);
}

TEST_CASE("A driver that lies about all of a cluster empties none of it") {
  for (const int count : {12, 40}) {
    CAPTURE(count);
    Stage stage;
    stage.limits() = wide_open();
    stage.send_policy();
    // Two devices a node: no node's own brake is engaged.
    for (int i = 0; i < count; ++i) {
      const auto node = fmt::format("node-{}", i / 2);
      if (i % 2 == 0) stage.node(node, 2);
      stage.pod({.name = fmt::format("p-{}", i),
                 .node = node,
                 .owner = fmt::format("ReplicaSet/{}", i),
                 .device = fmt::format("gpu-{}", i)});
    }
    stage.settle();
    for (int i = 0; i < count; ++i) stage.report(fmt::format("p-{}", i), Health::Unhealthy);
    for (int i = 0; i < count; i += 2) stage.node(fmt::format("node-{}", i / 2), 2, 0);
    CHECK(stage.run_for(hours(6), Seconds(30)).empty());
    CHECK(stage.controller().stats().brakes_engaged == 1);
  }
}

TEST_CASE("Claim conditions count as reports do") {
  Stage stage;
  stage.limits() = wide_open();
  stage.policy().match.claim_conditions = {{.type = "Ready", .status = "False"}};
  stage.policy().evict->untainted = true;
  stage.send_policy();
  add_dra_pods(stage, 8, Health::Healthy);
  stage.settle();
  stage.advance(minutes(10));
  for (int i = 0; i < 8; ++i) {
    const auto name = fmt::format("c-{}", i);
    auto& claim = stage.claim(name, {fmt::format("gpu-{}", i)}, fmt::format("p-{}", i));
    // A time of the driver's own, long before anybody could see it.
    claim.devices = {{.driver = std::string(kDriver),
                      .pool = "node-a",
                      .device = fmt::format("gpu-{}", i),
                      .conditions = {{.type = "Ready",
                                      .status = "False",
                                      .reason = {},
                                      .message = {},
                                      .last_transition = stage.now().wall - hours(9)}}}};
    stage.upsert_claim(name);
  }
  CHECK(stage.run_for(minutes(29), Seconds(10)).empty());
  CHECK(stage.reasons("p-0").find("Braked") != std::string::npos);
}

TEST_CASE("Unknown counts where a policy names it") {
  auto stage = eight();
  stage.policy().match.health = {Health::Unhealthy, Health::Unknown};
  stage.send_policy();
  stage.settle();
  for (int i = 0; i < 8; ++i) stage.report(fmt::format("p-{}", i), Health::Unknown);
  CHECK(stage.run_for(minutes(29), Seconds(10)).empty());
  CHECK(stage.reasons("p-0").find("Braked") != std::string::npos);
}

TEST_CASE("A driver's taints that a policy names count as reports do, and others do not") {
  const std::vector<std::string> devices = {"gpu-0", "gpu-1", "gpu-2", "gpu-3", "gpu-4", "gpu-5", "gpu-6", "gpu-7"};
  for (const bool is_named : {true, false}) {
    CAPTURE(is_named);
    Stage stage;
    stage.limits() = wide_open();
    stage.policy().match.device_taints = {{.key = is_named ? "example.com/bad" : "example.com/other", .effect = {}}};
    stage.send_policy();
    add_dra_pods(stage, 8, Health::Unknown);
    stage.settle();
    stage.slice("node-a", devices, devices);
    CHECK(stage.run_for(minutes(29), Seconds(10)).empty());
    CHECK((stage.verdict("node-a", Reason::BrakeEngaged) != nullptr) == is_named);
  }
}

TEST_CASE("What no policy means does not count") {
  auto stage = eight();
  stage.policy().match.message = MessagePattern::compile("Xid 79").value();
  stage.send_policy();
  stage.settle();
  for (int i = 0; i < 6; ++i) stage.report(fmt::format("p-{}", i), Health::Unhealthy, i < 2 ? "Xid 79" : "Xid 31");
  stage.node("node-a", 8, 2);
  CHECK(stage.run_for(minutes(2)) == Names{"p-0", "p-1"});
}

TEST_CASE("A policy that begins to mean what has stood for hours finds it at once") {
  auto stage = eight();
  stage.policy().mode = Mode::Off;
  stage.send_policy();
  break_devices(stage, 8);
  stage.run_for(hours(2), Seconds(30));
  stage.policy().mode = Mode::Enforce;
  stage.send_policy();
  CHECK(stage.run_for(minutes(20), Seconds(10)).empty());
  CHECK(stage.reasons("p-0") == "Braked");
}

TEST_CASE("Replicas of one card count once, against cards") {
  Stage stage;
  stage.limits() = wide_open();
  stage.policy().evict->no_replacement_wait = Seconds(0);  // the node is full
  stage.send_policy();
  stage.node("node-a", 32);  // eight cards of four
  for (int i = 0; i < 32; ++i) {
    stage.pod({.name = fmt::format("p-{}", i),
               .owner = fmt::format("ReplicaSet/{}", i),
               .device = fmt::format("GPU-{}::{}", i / 4, i % 4)});
  }
  stage.settle();
  for (int i = 0; i < 8; ++i) stage.report(fmt::format("p-{}", i), Health::Unhealthy);  // two cards
  stage.node("node-a", 32, 24);
  CHECK(stage.run_for(minutes(2)).size() == 8);
  for (int i = 8; i < 20; ++i) stage.report(fmt::format("p-{}", i), Health::Unhealthy);  // and three more
  stage.node("node-a", 32, 12);
  CHECK(stage.run_for(minutes(20), Seconds(10)).empty());
  REQUIRE(stage.verdict("node-a", Reason::BrakeEngaged) != nullptr);
  CHECK(stage.verdict("node-a", Reason::BrakeEngaged)->message.starts_with("5 of 8 devices"));
}

TEST_CASE("Partitions of one card count once where the driver names the card") {
  for (const bool named : {true, false}) {
    CAPTURE(named);
    Stage stage;
    stage.limits() = wide_open();
    stage.policy().evict->untainted = true;
    stage.policy().evict->no_replacement_wait = Seconds(0);  // every device is held
    stage.send_policy();
    add_dra_pods(stage, 6, Health::Healthy);
    k8s::ResourceSlice slice;
    slice.meta.name = "slice-node-a";
    slice.meta.uid = "uid-slice-node-a";
    slice.driver = kDriver;
    slice.pool = "node-a";
    slice.node_name = "node-a";
    slice.generation = 2;
    for (int i = 0; i < 6; ++i) {
      slice.devices.push_back({.name = fmt::format("gpu-{}", i), .taints = {}});
      if (named) {
        slice.devices.back().attributes = {{std::string(kDriver) + "/parentUUID", fmt::format("GPU-{}", i / 3)}};
      }
    }
    stage.put(slice);
    stage.settle();
    for (int i = 0; i < 3; ++i) stage.report(fmt::format("p-{}", i), Health::Unhealthy);
    const auto gone = stage.run_for(minutes(3));
    CHECK(gone.size() == (named ? 3U : 0U));
    CHECK(stage.controller().stats().brakes_engaged == (named ? 0U : 2U));
  }
}

TEST_CASE("A device that went out of service on our account counts as long as it is news, and then no longer") {
  auto stage = eight();
  break_devices(stage, 2);
  CHECK(stage.run_for(minutes(2)).size() == 2);
  stage.remove_pod("p-0");
  stage.remove_pod("p-1");
  break_devices(stage, 0);
  stage.node("node-a", 8, 5);
  stage.report("p-2", Health::Unhealthy);  // the third within the window
  CHECK(stage.run_for(minutes(3) - Seconds(1), Seconds(1)).empty());
  CHECK(stage.reasons("p-2") == "Braked");
  CHECK(stage.run_for(Seconds(31)) == Names{"p-2"});
}

TEST_CASE("Pods that end by themselves do not release the brake over the others, however long that lasts") {
  auto stage = six_end();
  for (int i = 0; i < 3; ++i) {
    CHECK(stage.run_for(hours(10), minutes(1)).empty());
    CHECK(stage.reasons("p-6") == "Braked");
    stage.restart();
  }
  stage.node("node-a", 8, 8);  // its kubelet counts them all healthy
  for (const auto* pod : {"p-6", "p-7"}) stage.report(pod, Health::Healthy);
  stage.run_for(minutes(3));
  CHECK(stage.verdict("node-a", Reason::BrakeEngaged) == nullptr);
}

TEST_CASE("A pod that comes to a bad device takes nothing back before somebody calls that healthy") {
  auto stage = six_end();
  for (int i = 0; i < 6; ++i) {
    stage.pod({.name = fmt::format("q-{}", i),
               .owner = fmt::format("ReplicaSet/q{}", i),
               .device = fmt::format("gpu-{}", i),
               .health = Health::Unknown});
  }
  CHECK(stage.run_for(hours(10), minutes(1)).empty());
  CHECK(stage.reasons("p-6") == "Braked");
  SUBCASE("they are healthy") {
    for (int i = 0; i < 6; ++i) stage.report(fmt::format("q-{}", i), Health::Healthy);
    stage.node("node-a", 8, 6);
    CHECK(stage.run_for(Seconds(29)).empty());
    CHECK(stage.run_for(Seconds(2)) == Names{"p-6", "p-7"});
  }
  SUBCASE("an operator vouches for them") {
    annotate(stage, kAcknowledgeAnnotation, "2026-11-20T12:01:00Z");
    stage.run_for(Seconds(31));
    CHECK(stage.verdict("node-a", Reason::BrakeEngaged) == nullptr);
  }
}

TEST_CASE("A bad device whose driver finds other words for it counts on") {
  auto stage = eight();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().match.message = MessagePattern::compile("XID").value();
  stage.limits().brake_trial_after = hours(720);
  stage.send_policy();
  for (int i = 0; i < 8; ++i) stage.report(fmt::format("p-{}", i), Health::Unhealthy, "critical XID 79");
  stage.node("node-a", 8, 0);
  CHECK(stage.run_for(minutes(10), Seconds(10)).empty());
  for (int i = 0; i < 6; ++i) stage.report(fmt::format("p-{}", i), Health::Unhealthy, "lost");
  for (const bool restarts : {false, true}) {
    if (restarts) stage.restart();
    CHECK(stage.run_for(hours(2), minutes(1)).empty());
    CHECK(stage.reasons("p-6") == "Braked");
  }
}

TEST_CASE("A bad device that its driver publishes no longer does not count") {
  Stage stage;
  stage.limits() = wide_open();
  stage.limits().brake_trial_after = hours(720);
  stage.send_policy();
  add_dra_pods(stage, 8, Health::Healthy);
  stage.settle();
  for (int i = 0; i < 8; ++i) stage.report(fmt::format("p-{}", i), Health::Unhealthy);
  stage.run_for(minutes(10), Seconds(10));
  for (int i = 0; i < 6; ++i) stage.remove_pod(fmt::format("p-{}", i));
  CHECK(stage.run_for(hours(30), minutes(1)).empty());
  REQUIRE(stage.verdict("node-a", Reason::BrakeEngaged) != nullptr);
  stage.slice("node-a", {"gpu-6", "gpu-7"});
  stage.run_for(Seconds(31));
  CHECK(stage.verdict("node-a", Reason::BrakeEngaged) == nullptr);
}

TEST_CASE("A bad device that nobody holds counts no longer once its driver has taken its own taint back") {
  Stage stage;
  stage.limits() = wide_open();
  stage.limits().brake_trial_after = hours(720);
  stage.policy().match.health.clear();
  stage.policy().match.device_taints = {{.key = "*", .effect = {}}};
  stage.send_policy();
  add_dra_pods(stage, 8, Health::Unknown);
  stage.settle();
  Names devices;
  for (int i = 0; i < 8; ++i) devices.push_back(fmt::format("gpu-{}", i));
  stage.slice("node-a", devices, devices);
  stage.run_for(minutes(10), Seconds(10));
  for (int i = 0; i < 6; ++i) stage.remove_pod(fmt::format("p-{}", i));
  CHECK(stage.run_for(hours(5), minutes(1)).empty());
  REQUIRE(stage.verdict("node-a", Reason::BrakeEngaged) != nullptr);
  stage.slice("node-a", devices, {"gpu-6", "gpu-7"});
  stage.run_for(Seconds(31));
  CHECK(stage.verdict("node-a", Reason::BrakeEngaged) == nullptr);
}

TEST_CASE("An operator's annotation on the node releases the brake for what began up to its time") {
  auto stage = eight();
  break_devices(stage, 3);
  stage.run_for(minutes(2));
  CHECK(stage.reasons("p-0") == "Braked");
  annotate(stage, kBrakeReleaseAnnotation, "2026-11-20T12:01:00Z");
  CHECK(stage.settle() == Names{"p-0", "p-1", "p-2"});
  // What comes later engages it again.
  for (int i = 3; i < 6; ++i) stage.report(fmt::format("p-{}", i), Health::Unhealthy);
  CHECK(stage.run_for(minutes(20), Seconds(10)).empty());
}

TEST_CASE("A release ahead of the clock is refused and said, and counts from its time on") {
  auto stage = eight();
  break_devices(stage, 3);
  annotate(stage, kBrakeReleaseAnnotation, "2036-11-20T12:01:00Z");
  CHECK(stage.run_for(minutes(20), Seconds(10)).empty());
  REQUIRE(stage.verdict("node-a", Reason::AnnotationRefused) != nullptr);
  CHECK(stage.verdict("node-a", Reason::AnnotationRefused)->message ==
        "annotation device-health.io/brake-release has no effect: 2036-11-20T12:01:00Z is ahead of the controller's "
        "clock; write the present time: date -u +%Y-%m-%dT%H:%M:%SZ");
  CHECK(stage.has_event("node-a", "AnnotationRefused"));
  CHECK(stage.verdict("node-a", Reason::AnnotationRefused)->since < stage.now().wall - minutes(19));
  annotate(stage, kBrakeReleaseAnnotation, "2026-11-20T12:20:01Z");
  CHECK(stage.run_for(Seconds(1) - Millis(1), Seconds(1)).empty());
  stage.advance(Millis(1));
  CHECK(stage.settle() == Names{"p-0", "p-1", "p-2"});
  CHECK(stage.verdict("node-a", Reason::AnnotationRefused) == nullptr);
  annotate(stage, kBrakeReleaseAnnotation, "true");
  stage.settle();
  CHECK(stage.verdict("node-a", Reason::AnnotationRefused)->message.find("\"true\" is not an RFC 3339 time") !=
        std::string::npos);
}

TEST_CASE("The configuration's release is refused the same way, with an Event on its ConfigMap if it is one") {
  for (const bool is_map : {false, true}) {
    CAPTURE(is_map);
    auto stage = eight();
    stage.whole_policy().brake_release = "2036-11-20T12:01:00Z";
    if (is_map) stage.whole_policy().source = kConfiguration;
    stage.send_policy();
    stage.settle();
    REQUIRE(stage.verdict("configuration", Reason::AnnotationRefused) != nullptr);
    CHECK(stage.has_event("device-health-controller", "AnnotationRefused") == is_map);
    CHECK_FALSE(stage.has_event("configuration", "AnnotationRefused"));
  }
}

TEST_CASE("A refused annotation makes one Event for each of its values, however long it stands") {
  auto stage = eight();
  stage.whole_policy().source = kConfiguration;
  stage.whole_policy().brake_release = "2036-11-20T12:01:00Z";
  stage.send_policy();
  annotate(stage, kAcknowledgeAnnotation, "2036-11-20T12:01:00Z");
  stage.run_for(minutes(30), Seconds(1));
  CHECK(events_of(stage, "AnnotationRefused") == 2);
  annotate(stage, kAcknowledgeAnnotation, "tomorrow");
  stage.run_for(minutes(5), Seconds(1));
  CHECK(events_of(stage, "AnnotationRefused") == 3);
}

TEST_CASE("The cluster's brake is said by one Event on the configuration's ConfigMap each time it engages") {
  auto stage = eight();
  stage.whole_policy().source = kConfiguration;
  stage.limits().brake_trial_after = hours(720);
  stage.send_policy();
  break_devices(stage, 8);
  stage.run_for(minutes(20), Seconds(10));
  REQUIRE(stage.verdict("example.com/gpu", Reason::BrakeEngaged) != nullptr);
  CHECK(stage.has_event("device-health-controller", "BrakeEngaged"));
  CHECK(events_of(stage, "BrakeEngaged") == 2);  // the node's and the cluster's
  for (int i = 0; i < 8; ++i) stage.report(fmt::format("p-{}", i), Health::Healthy);
  stage.node("node-a", 8);
  stage.run_for(minutes(2));
  REQUIRE(stage.verdict("example.com/gpu", Reason::BrakeEngaged) == nullptr);
  break_devices(stage, 8);
  stage.run_for(minutes(2));
  CHECK(events_of(stage, "BrakeEngaged") == 4);
}

TEST_CASE("A brake whose policy is set off or removed says that it has nothing to stop, and holds under the next one") {
  const auto takes_away = [](Policy& policy, bool removes) {
    if (removes) return policy.policies.clear();
    policy.policies.front().mode = Mode::Off;
  };
  for (const bool removes : {false, true}) {
    CAPTURE(removes);
    auto stage = eight();
    stage.limits().brake_trial_after = hours(720);
    stage.send_policy();
    break_devices(stage, 3);
    stage.run_for(minutes(20), Seconds(10));
    const auto before = stage.whole_policy();
    takes_away(stage.whole_policy(), removes);
    stage.send_policy();
    stage.run_for(hours(2), Seconds(30));
    REQUIRE(stage.verdict("node-a", Reason::BrakeEngaged) != nullptr);
    CHECK(stage.verdict("node-a", Reason::BrakeEngaged)->message ==
          "3 of 8 devices of example.com/gpu on node node-a are bad: no policy in force names example.com/gpu now, so "
          "there is nothing to stop; it holds for the next one until at most 2 are, or until it is released with the "
          "annotation device-health.io/brake-release");
    stage.whole_policy() = before;
    stage.send_policy();
    CHECK(stage.run_for(hours(1), Seconds(30)).empty());
    CHECK(stage.reasons("p-0") == "Braked");
    // Off again, until the devices are well: a fault that has gone holds nothing.
    takes_away(stage.whole_policy(), removes);
    stage.send_policy();
    for (int i = 0; i < 3; ++i) stage.report(fmt::format("p-{}", i), Health::Healthy);
    stage.node("node-a", 8);
    stage.run_for(minutes(2));
    CHECK(stage.verdict("node-a", Reason::BrakeEngaged) == nullptr);
  }
}

TEST_CASE("Acknowledged devices do not count") {
  auto stage = eight();
  break_devices(stage, 3);
  stage.run_for(minutes(2));
  annotate(stage, kAcknowledgeAnnotation, "2026-11-20T12:01:00Z");
  CHECK(stage.run_for(Seconds(29)).empty());
  CHECK(stage.run_for(Seconds(2)).size() == 3);
}

TEST_CASE("An acknowledgement vouches for what broke up to its time, and for nothing that broke later") {
  auto stage = eight();
  break_devices(stage, 3);
  stage.run_for(minutes(2));
  SUBCASE("at that moment") {
    annotate(stage, kAcknowledgeAnnotation, "2026-11-20T12:00:00Z");
    CHECK(stage.run_for(Seconds(31)).size() == 3);
  }
  SUBCASE("a second later") {
    annotate(stage, kAcknowledgeAnnotation, "2026-11-20T11:59:59Z");
    CHECK(stage.run_for(Seconds(31)).empty());
    CHECK(stage.reasons("p-0") == "Braked");
  }
}

TEST_CASE("An acknowledgement ahead of the clock vouches for nothing until its time has come, and is said") {
  auto stage = eight();
  break_devices(stage, 3);
  annotate(stage, kAcknowledgeAnnotation, "2026-11-20T12:20:01Z");
  CHECK(stage.run_for(minutes(20), Seconds(10)).empty());
  REQUIRE(stage.verdict("node-a", Reason::AnnotationRefused) != nullptr);
  CHECK(stage.verdict("node-a", Reason::AnnotationRefused)
            ->message.starts_with("annotation device-health.io/acknowledge has no effect: 2026-11-20T12:20:01Z is "
                                  "ahead of the controller's clock"));
  CHECK(stage.reasons("p-0") == "Braked");
  stage.run_for(Seconds(2));
  CHECK(stage.verdict("node-a", Reason::AnnotationRefused) == nullptr);
  stage.run_for(Seconds(31));
  CHECK(stage.verdict("node-a", Reason::BrakeEngaged) == nullptr);
}

TEST_CASE("An engaged brake survives a restart and a change of leader") {
  for (const bool leader : {false, true}) {
    CAPTURE(leader);
    auto stage = eight();
    stage.whole_policy().own_namespace = "dhc";
    stage.send_policy();
    break_devices(stage, 3);
    stage.run_for(minutes(20), Seconds(10));
    REQUIRE(stage.state_text().find("brakes") != std::string::npos);
    stage.restart();
    if (leader) {
      stage.deliver(Leading{.leads = false});
      stage.run_for(minutes(1));
      stage.deliver(Leading{.leads = true});
    }
    CHECK(stage.run_for(minutes(5), Seconds(10)).empty());
    REQUIRE(stage.verdict("node-a", Reason::BrakeEngaged) != nullptr);
    CHECK(stage.verdict("node-a", Reason::BrakeEngaged)->since == Stage().now().wall);
  }
}

TEST_CASE("Devices whose incidents are remembered do not engage the brake after a restart") {
  auto stage = eight();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().evict->after = hours(5);
  stage.send_policy();
  for (int i = 0; i < 3; ++i) {
    stage.report(fmt::format("p-{}", i), Health::Unhealthy);
    stage.run_for(minutes(6), Seconds(10));
  }
  stage.restart();
  stage.settle();
  CHECK(stage.verdict("node-a", Reason::BrakeEngaged) == nullptr);
}

}  // namespace dhc::test
