// The driver's own taint in its ResourceSlice (KEP-5055) as a signal: `match.deviceTaints`.
#include <algorithm>

#include <doctest/doctest.h>

#include "tests/controller/cluster/driver_taint_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;
using Names = std::vector<std::string>;

TEST_CASE("A taint that a policy names opens the incident after its window, and not a moment before") {
  auto stage = held_device();
  publish_taints(stage, {.first = {xid("79")}});
  CHECK(stage.run_for(Seconds(59)).empty());
  CHECK(stage.reasons("train-1") == "WaitingForWindow");
  CHECK(stage.conditions().empty());
  CHECK(stage.run_for(Seconds(1)) == Names{"train-1"});
  REQUIRE(!stage.conditions().empty());
  const auto& wanted = stage.conditions().front().wanted;
  REQUIRE(wanted);
  CHECK(wanted->message.contains(" tainted by its driver since "));
  CHECK(wanted->message.contains(": gpu.example.com/xid=79:NoSchedule; next: "));
  CHECK(stage.has_event("train-1", "DeviceUnhealthy"));
}

TEST_CASE("A taint that no policy names is no signal") {
  auto stage = held_device();
  SUBCASE("nobody asks for taints") { stage.policy().match.device_taints.clear(); }
  SUBCASE("another key") { stage.policy().match.device_taints = {{.key = "gpu.nvidia.com/xid", .effect = {}}}; }
  SUBCASE("another value") {
    stage.policy().match.device_taints = {{.key = std::string(kXid), .value = "48", .effect = {}}};
  }
  SUBCASE("another effect") {
    stage.policy().match.device_taints = {{.key = std::string(kXid), .effect = "NoExecute"}};
  }
  stage.send_policy();
  publish_taints(stage, {.first = {xid("79")}});
  CHECK(stage.run_for(minutes(5)).empty());
  CHECK(stage.conditions().empty());
}

TEST_CASE("An effect None is information, unless the policy names it") {
  auto stage = held_device();
  publish_taints(stage, {.first = {xid("43", "None")}});
  CHECK(stage.run_for(minutes(2)).empty());
  CHECK(stage.conditions().empty());
  stage.policy().match.device_taints.front().effect = "*";
  stage.send_policy();
  stage.run_for(Seconds(2));
  CHECK(!stage.conditions().empty());
}

TEST_CASE("A pod that got its device by an extended resource is found by its claim, whatever the kubelet says of it") {
  // The scheduler makes a claim for it, which the pod's spec does not name. Source: KEP-5004.
  for (const bool speaks : {false, true}) {
    for (const bool by_resource : {false, true}) {
      CAPTURE(speaks);
      CAPTURE(by_resource);
      auto stage = silent_driver();
      if (by_resource) stage.policy().match.resources = {"example.com/gpu"};
      stage.send_policy();
      publish_taints(stage, {});
      auto& pod = stage.pod({.name = "train-1", .owner = "Job/t"});
      pod.requests = {{"example.com/gpu", 1}};
      pod.claims = {{"train-1-extended", "train-1-extended"}};
      if (speaks) pod.allocated = {{"claim:train-1-extended", {{"cdi/gpu=x", Health::Unknown, ""}}}};
      stage.upsert_pod("train-1");
      stage.claim("train-1-extended", {"gpu-0"}, "train-1");
      stage.settle();
      publish_taints(stage, {.first = {xid("79")}, .second = {}});
      // What is asked for by a DRA driver's device is matched by its driver, not by the resource.
      const auto gone = stage.run_for(minutes(2));
      CHECK(gone == (by_resource ? Names{} : Names{"train-1"}));
      CHECK(stage.conditions().empty() == by_resource);
      publish_taints(stage, {.first = {}, .second = {xid("79")}});
      CHECK(stage.run_for(minutes(2)).empty());
    }
  }
}

TEST_CASE("Our own taint in a slice is never a signal") {
  auto stage = held_device();
  stage.policy().match.device_taints = {{.key = "*", .effect = "*"}};
  stage.send_policy();
  publish_taints(stage, {.first = {{.key = "device-health.io/unhealthy", .value = "x", .effect = "NoSchedule"}}});
  CHECK(stage.run_for(minutes(2)).empty());
  CHECK(stage.conditions().empty());
}

TEST_CASE("A slice of another node that claims the pool is not believed") {
  auto stage = held_device();
  k8s::ResourceSlice slice;
  slice.meta.name = slice.meta.uid = "rogue";
  slice.driver = kDriver;
  slice.pool = "node-a";
  slice.generation = 999;
  slice.node_name = "node-x";
  slice.devices = {{.name = "gpu-0", .taints = {xid("79")}}};
  stage.put(std::move(slice));
  CHECK(stage.run_for(minutes(5), Seconds(5)).empty());
  CHECK(stage.conditions().empty());
}

TEST_CASE("A slice of another node that claims the pool takes no taint back") {
  std::int64_t generation = 0;
  SUBCASE("of an old generation it says nothing") {}
  SUBCASE("of the same one") { generation = 1; }
  SUBCASE("of a later one") { generation = 999; }
  auto stage = held_device();
  stage.node("node-x", 0);
  stage.policy().match.device_taints.front().effect = "*";
  stage.policy().evict->after = minutes(30);
  stage.policy().taint = TaintRules{};
  stage.send_policy();
  publish_taints(stage, {.first = {xid("79", "None")}});
  stage.run_for(minutes(2));
  REQUIRE(stage.rule() != nullptr);
  k8s::ResourceSlice slice;
  slice.meta.name = "rogue";
  slice.meta.uid = "uid-rogue";
  slice.driver = kDriver;
  slice.pool = "node-a";
  slice.generation = generation;
  slice.node_name = "node-x";
  slice.devices = {{.name = "gpu-0", .taints = {}}};
  stage.put(slice);
  CHECK(stage.run_for(minutes(14), Seconds(10)).empty());
  CHECK(stage.conditions().back().wanted->status);
  CHECK(stage.rule() != nullptr);
  CHECK(stage.reasons("train-1").starts_with("WaitingForEvictAfter"));
  stage.remove(k8s::Kind::ResourceSlice, "rogue");
  CHECK(stage.run_for(minutes(16), Seconds(10)) == Names{"train-1"});
}

TEST_CASE("The order in which pod, claim and tainted slice are first seen makes no difference") {
  auto stage = silent_driver();
  SUBCASE("the taint first") {
    publish_taints(stage, {.first = {xid("79")}});
    hold_device(stage);
  }
  SUBCASE("the pod first") {
    hold_device(stage);
    publish_taints(stage, {.first = {xid("79")}});
  }
  SUBCASE("the pod a turn before") {
    hold_device(stage);
    stage.turn();
    publish_taints(stage, {.first = {xid("79")}});
  }
  stage.turn();
  CHECK(stage.reasons("train-1") == "WaitingForWindow");
  CHECK(stage.run_for(Seconds(59)).empty());
  CHECK(stage.run_for(Seconds(1)) == Names{"train-1"});
}

TEST_CASE("A taint that is published again, with another time or generation, is the same one") {
  auto stage = held_device();
  auto taint = xid("79");
  taint.time_added = stage.now().wall;
  publish_taints(stage, {.first = {taint}});
  stage.run_for(Seconds(30));
  SUBCASE("the API server dates it anew with each update") {
    taint.time_added = stage.now().wall;
    publish_taints(stage, {.first = {taint}});
  }
  SUBCASE("a new generation under the slice's name") { publish_taints(stage, {.first = {taint}, .generation = 2}); }
  SUBCASE("a new generation in another slice, the old one goes later") {
    publish_taints(stage, {.first = {taint}, .generation = 2, .name = "slice-2"});
    stage.turn();
    stage.remove(k8s::Kind::ResourceSlice, "slice");
  }
  SUBCASE("another slice before the old one has gone is empty of it") {
    stage.remove(k8s::Kind::ResourceSlice, "slice");
    stage.turn();
    CHECK(stage.reasons("train-1") == "WaitingWhileUnknown");
    publish_taints(stage, {.first = {taint}, .generation = 1, .name = "slice-2"});
  }
  CHECK(stage.run_for(Seconds(29)).empty());
  CHECK(stage.run_for(Seconds(1)) == Names{"train-1"});
}

TEST_CASE("A taint of an old generation does not count") {
  auto stage = held_device();
  publish_taints(stage, {.first = {}, .generation = 3, .name = "slice-2"});
  publish_taints(stage, {.first = {xid("79")}, .generation = 2});
  CHECK(stage.run_for(minutes(2)).empty());
  CHECK(stage.conditions().empty());
}

TEST_CASE("A taint that was gone in between begins anew") {
  auto stage = held_device();
  publish_taints(stage, {.first = {xid("79")}});
  stage.run_for(Seconds(59));
  publish_taints(stage, {});
  SUBCASE("seen in one turn") {}
  SUBCASE("seen in two") { stage.turn(); }
  publish_taints(stage, {.first = {xid("79")}});
  CHECK(stage.run_for(Seconds(59)).empty());
  CHECK(stage.run_for(Seconds(1)) == Names{"train-1"});
}

TEST_CASE("A taint that moves to another device ends one incident's window and begins another's") {
  auto stage = held_device();
  publish_taints(stage, {.first = {xid("79")}});
  stage.run_for(Seconds(59));
  publish_taints(stage, {.first = {}, .second = {xid("79")}});
  CHECK(stage.run_for(minutes(2)).empty());
  CHECK(stage.reasons("train-1").empty());
}

TEST_CASE("A fault that changes its number goes on") {
  auto stage = held_device();
  publish_taints(stage, {.first = {xid("79")}});
  stage.run_for(Seconds(30));
  SUBCASE("another value") { publish_taints(stage, {.first = {xid("94")}}); }
  SUBCASE("another key beside it, then alone") {
    const k8s::Taint lost{.key = "gpu.example.com/gpu-lost", .value = {}, .effect = "NoSchedule"};
    publish_taints(stage, {.first = {xid("79"), lost}});
    stage.run_for(Seconds(10));
    publish_taints(stage, {.first = {lost}});
    stage.run_for(Seconds(19) - Seconds(10));
    CHECK(stage.run_for(Seconds(10)).empty());
    CHECK(stage.run_for(Seconds(1)) == Names{"train-1"});
    return;
  }
  CHECK(stage.run_for(Seconds(29)).empty());
  CHECK(stage.run_for(Seconds(1)) == Names{"train-1"});
}

TEST_CASE("A value that changes every second neither grows nor ends the fault") {
  auto stage = held_device();
  for (int second = 0; second < 59; ++second) {
    publish_taints(stage, {.first = {xid(std::to_string(second))}});
    CHECK(stage.run_for(Seconds(1)).empty());
  }
  publish_taints(stage, {.first = {xid("59")}});
  CHECK(stage.run_for(Seconds(1)) == Names{"train-1"});
}

TEST_CASE("A value that changes all the time is not written down each time") {
  auto stage = held_device();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().evict->after = hours(1);
  stage.send_policy();
  publish_taints(stage, {.first = {xid("0")}});
  stage.run_for(minutes(3));
  const auto states = [&] { return std::ranges::count(stage.writes(), "state"); };
  const auto before = states();
  for (int value = 1; value <= 60; ++value) {
    publish_taints(stage, {.first = {xid(std::to_string(value))}});
    CHECK(stage.run_for(Seconds(5)).empty());
  }
  CHECK(states() == before);
}

TEST_CASE("However many harmless words are written over a fault, it has not been taken back") {
  auto stage = held_device();
  const bool is_open = [&] {
    bool open = false;
    SUBCASE("before its incident opens") {}
    SUBCASE("in its incident") { open = true; }
    return open;
  }();
  stage.policy().evict->after = minutes(10);
  if (!is_open) stage.policy().after = minutes(2);
  stage.send_policy();
  publish_taints(stage, {.first = {xid("79")}});
  stage.run_for(Seconds(61));
  for (int word = 1; word <= 40; ++word) {
    publish_taints(stage, {.first = {xid(std::to_string(word), "None")}});
    stage.run_for(Seconds(1));
  }
  CHECK(stage.reasons("train-1").starts_with("WaitingWhileUnknown"));
  publish_taints(stage, {.first = {xid("79")}});
  stage.run_for(Seconds(18));
  CHECK(stage.conditions().empty() == !is_open);
  stage.run_for(Seconds(2));
  REQUIRE(!stage.conditions().empty());
  CHECK(stage.conditions().back().wanted->status);
}

TEST_CASE("A harmless word written over a fault neither acts nor counts as recovery") {
  auto stage = held_device();
  stage.policy().evict->after = minutes(10);
  stage.send_policy();
  publish_taints(stage, {.first = {xid("79")}});
  stage.run_for(minutes(2));
  REQUIRE(!stage.conditions().empty());
  publish_taints(stage, {.first = {xid("43", "None")}});
  const auto is_shown = [&] {
    CHECK(stage.reasons("train-1").starts_with("WaitingWhileUnknown"));
    CHECK(stage.conditions().back().wanted->status);
  };
  SUBCASE("a fault again within a quarter of an hour is the same one") {
    CHECK(stage.run_for(minutes(7), Seconds(10)).empty());
    is_shown();
    publish_taints(stage, {.first = {xid("31", "None")}});
    CHECK(stage.run_for(minutes(7), Seconds(10)).empty());
    is_shown();
    publish_taints(stage, {.first = {xid("48")}});
    CHECK(stage.run_for(Seconds(2)) == Names{"train-1"});
  }
  SUBCASE("later it is another") {
    CHECK(stage.run_for(hours(1), Seconds(30)).empty());
    is_shown();
    publish_taints(stage, {.first = {xid("48")}});
    CHECK(stage.run_for(minutes(11) - Seconds(1), Seconds(1)).empty());
    CHECK(stage.run_for(Seconds(1)) == Names{"train-1"});
  }
}

TEST_CASE("A driver that takes its slices away has said nothing: nothing is done, and nothing is over") {
  auto stage = held_device();
  stage.policy().evict->after = minutes(1);
  stage.send_policy();
  publish_taints(stage, {.first = {xid("79")}});
  stage.run_for(Seconds(90));
  REQUIRE(!stage.conditions().empty());
  stage.remove(k8s::Kind::ResourceSlice, "slice");
  CHECK(stage.run_for(minutes(14), Seconds(10)).empty());
  CHECK(stage.reasons("train-1").starts_with("WaitingWhileUnknown"));
  CHECK(stage.conditions().back().wanted->status);
  SUBCASE("back with the taint it goes on") {
    publish_taints(stage, {.first = {xid("79")}, .name = "slice-2"});
    CHECK(stage.run_for(Seconds(2)) == Names{"train-1"});
  }
  SUBCASE("back after a long silence the taint begins anew") {
    stage.run_for(minutes(2), Seconds(10));
    publish_taints(stage, {.first = {xid("79")}, .name = "slice-2"});
    CHECK(stage.run_for(Seconds(119)).empty());
    CHECK(stage.run_for(Seconds(1)) == Names{"train-1"});
  }
}

TEST_CASE("The taint's end is the signal's: the condition says so, and the incident closes after healthyFor") {
  auto stage = held_device();
  stage.policy().evict.reset();
  stage.send_policy();
  publish_taints(stage, {.first = {xid("79")}});
  stage.run_for(minutes(2));
  publish_taints(stage, {});
  stage.run_for(Seconds(2));
  CHECK(!stage.conditions().back().wanted->status);
  CHECK(stage.reasons("train-1").empty());
}

TEST_CASE("After a restart of ours the taint counts from the incident that is remembered, whatever its own time") {
  auto stage = held_device();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().evict->after = minutes(10);
  stage.send_policy();
  auto taint = xid("79");
  taint.time_added = stage.now().wall;
  publish_taints(stage, {.first = {taint}});
  stage.run_for(minutes(5));
  SUBCASE("the same taint") {
    stage.restart();
    CHECK(stage.run_for(minutes(5) + Seconds(59)).empty());
    CHECK(stage.run_for(Seconds(1)) == Names{"train-1"});
  }
  SUBCASE("the API server has dated it anew, as with every update without a time") {
    taint.time_added = stage.now().wall - minutes(1);
    publish_taints(stage, {.first = {taint}});
    stage.restart();
    CHECK(stage.run_for(minutes(5) + Seconds(59)).empty());
    CHECK(stage.run_for(Seconds(1)) == Names{"train-1"});
  }
  SUBCASE("one with a time ahead of the clock") {
    taint.time_added = stage.now().wall + hours(24);
    publish_taints(stage, {.first = {taint}});
    stage.restart();
    CHECK(stage.run_for(minutes(5) + Seconds(59)).empty());
    CHECK(stage.run_for(Seconds(1)) == Names{"train-1"});
  }
}

TEST_CASE("A taint that was there when we began counts from then, whatever its time says") {
  auto stage = silent_driver();
  auto taint = xid("79");
  taint.time_added = stage.now().wall - hours(24 * 365);
  publish_taints(stage, {.first = {taint}});
  hold_device(stage);
  CHECK(stage.run_for(Seconds(59)).empty());
  CHECK(stage.run_for(Seconds(1)) == Names{"train-1"});
}

TEST_CASE("Many tainted devices engage the brake, as many reports do") {
  Stage stage;
  stage.policy().match.device_taints = {{.key = std::string(kXid), .effect = {}}};
  stage.send_policy();
  stage.node("node-a", 0);
  k8s::ResourceSlice slice;
  slice.meta.name = "slice";
  slice.meta.uid = "uid-slice";
  slice.driver = kDriver;
  slice.pool = "node-a";
  slice.node_name = "node-a";
  for (int i = 0; i < 8; ++i) {
    const auto name = "gpu-" + std::to_string(i);
    slice.devices.push_back({.name = name, .taints = {}});
    stage.pod(
        {.name = "pod-" + name, .owner = "ReplicaSet/r-" + name, .health = Health::Unknown, .claim = "c-" + name});
    stage.claim("c-" + name, {name}, "pod-" + name);
  }
  stage.put(slice);
  stage.settle();
  for (auto& device : slice.devices)
    device.taints = {{.key = "gpu.example.com/gpu-lost", .value = {}, .effect = "NoSchedule"}};
  stage.policy().match.device_taints = {{.key = "gpu.example.com/gpu-lost", .effect = {}}};
  stage.send_policy();
  stage.put(slice);
  CHECK(stage.run_for(minutes(20), Seconds(5)).empty());
  CHECK(stage.reasons("pod-gpu-3").starts_with("Braked"));
}

TEST_CASE("A slices watch that is silent holds what rests on a taint") {
  auto stage = held_device();
  stage.policy().after = minutes(6);
  stage.send_policy();
  stage.silence(k8s::Kind::ResourceSlice);
  publish_taints(stage, {.first = {xid("79")}});
  CHECK(stage.run_for(minutes(10), Seconds(5)).empty());
  CHECK(stage.reasons("train-1").contains("ViewTooOld"));
  stage.speak(k8s::Kind::ResourceSlice);
  CHECK(stage.run_for(Seconds(5)) == Names{"train-1"});
}

TEST_CASE("An eviction that rests on a taint names the slice and the taints that must still stand") {
  auto stage = held_device();
  publish_taints(stage, {.first = {xid("79")}});
  std::vector<eviction::EvictPod> sent;
  stage.answer_evictions([&](const eviction::EvictPod& action) {
    sent.push_back(action);
    return Status{};
  });
  stage.run_for(minutes(2));
  REQUIRE(sent.size() == 1);
  CHECK(sent.front().signal.slice_name == "slice");
  CHECK(sent.front().signal.claim_name == "c");
  CHECK(sent.front().signal.device_taints == stage.policy().match.device_taints);
  CHECK(sent.front().signal.health.empty());
}

}  // namespace dhc::test
