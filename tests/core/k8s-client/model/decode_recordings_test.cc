#include <algorithm>
#include <string>
#include <variant>

#include <doctest/doctest.h>

#include "base/rfc3339.h"
#include "k8s-client/model/decoder.h"
#include "tests/support/core/fixtures.h"

namespace {

using namespace dhc::k8s;
using dhc::parse_rfc3339;
using dhc::test::read_fixture;
using dhc::test::read_fixture_lines;

ListPage read_list(Kind kind, std::string_view file) {
  auto page = Decoder(kind).decode_list(read_fixture(file));
  REQUIRE(page.has_value());
  CHECK(page->bad.empty());
  return std::move(*page);
}

TEST_CASE("A recorded DRA pod is read with its claim, its unhealthy device and the driver's message") {
  const auto page = read_list(Kind::Pod, "recordings/list/pods.json");
  CHECK(page.resource_version == "1438");
  CHECK(page.continue_token.empty());
  REQUIRE(page.objects.size() == 4);
  Pod expected;
  expected.meta.ns = "default";
  expected.meta.name = "infer-5c79c8697c-fcmt8";
  expected.meta.uid = "40a44c2a-56f2-4107-99f8-2a2f5e8414a6";
  expected.meta.resource_version = "1436";
  expected.meta.creation = parse_rfc3339("2026-11-20T18:23:16Z");
  expected.meta.labels = {{"app", "infer"}, {"pod-template-hash", "5c79c8697c"}};
  expected.meta.controller =
      OwnerRef{"apps/v1", "ReplicaSet", "infer-5c79c8697c", "a251de64-245d-4b8b-8292-afb8a21e4b81"};
  expected.node_name = "node-a";
  expected.phase = PodPhase::Running;
  expected.grace_period_seconds = 1;
  expected.claims = {{"gpu", "infer-5c79c8697c-fcmt8-gpu-kqxqd"}};
  expected.allocated = {{"claim:gpu",
                         {{"example.com/gpu=5baf23c1-5f9d-4ffd-a8e3-cee06b6c34ae-gpu-1",
                           Health::Unhealthy,
                           "ECC error count exceeded threshold",
                           "",
                           {"main"}}}}};
  expected.images = std::vector<ContainerImage>{{.container = "main", .image = "registry.test/busybox:1"}};
  CHECK(page.objects[0] == Object(expected));
}

TEST_CASE("A recorded pod of a Job is read with its plugin device and its request") {
  const auto page = read_list(Kind::Pod, "recordings/list/pods.json");
  REQUIRE(page.objects.size() == 4);
  const auto& pod = std::get<Pod>(page.objects[3]);
  CHECK(pod.meta.name == "train-znwjv");
  CHECK(pod.meta.controller == OwnerRef{"batch/v1", "Job", "train", "6c472145-6c43-4baa-8dbb-d1d151cd8e37"});
  CHECK(pod.claims.empty());
  CHECK(pod.requests == std::vector<ResourceAmount>{{"example.com/gpu", 1}});
  CHECK(pod.allocated ==
        std::vector<AllocatedResource>{{"example.com/gpu", {{"gpu-1", Health::Unhealthy, "", "", {"main"}}}}});
}

TEST_CASE("A recorded claim is read with its allocation, its consumer and its driver's condition") {
  const auto page = read_list(Kind::ResourceClaim, "recordings/list/claims.json");
  REQUIRE(!page.objects.empty());
  const auto& claim = std::get<ResourceClaim>(page.objects[0]);
  CHECK(claim.allocated);
  CHECK(claim.results == std::vector<AllocationResult>{{"gpu", "gpu.example.com", "node-a", "gpu-1", false, {}}});
  CHECK(claim.reserved_for ==
        std::vector<ClaimConsumer>{{"", "pods", "infer-5c79c8697c-fcmt8", "40a44c2a-56f2-4107-99f8-2a2f5e8414a6"}});
  const Condition ready{"Ready", "True", "Prepared", "device prepared", parse_rfc3339("2026-11-20T18:23:16Z")};
  CHECK(claim.devices == std::vector<ClaimDeviceStatus>{{"gpu.example.com", "node-a", "gpu-1", {ready}}});
  CHECK(claim.meta.controller ==
        OwnerRef{"v1", "Pod", "infer-5c79c8697c-fcmt8", "40a44c2a-56f2-4107-99f8-2a2f5e8414a6"});
  CHECK(claim.meta.annotations.empty());
}

TEST_CASE("A recorded slice is read with its pool, generation and devices") {
  const auto page = read_list(Kind::ResourceSlice, "recordings/list/slices.json");
  REQUIRE(page.objects.size() == 1);
  const auto& slice = std::get<ResourceSlice>(page.objects[0]);
  CHECK(slice.driver == "gpu.example.com");
  CHECK(slice.pool == "node-a");
  CHECK(slice.generation == 1);
  CHECK(slice.pool_slices == 1);
  CHECK(slice.node_name == "node-a");
  const StringMap model = {{"model", "LATEST-GPU-MODEL"}};
  CHECK(slice.devices == std::vector<SliceDevice>{
                             {"gpu-0", {}, model}, {"gpu-1", {}, model}, {"gpu-2", {}, model}, {"gpu-3", {}, model}});
}

TEST_CASE("A recorded node is read with readiness, boot ID and only its extended resources") {
  const auto page = read_list(Kind::Node, "recordings/list/nodes.json");
  REQUIRE(page.objects.size() == 1);
  const auto& node = std::get<Node>(page.objects[0]);
  CHECK(node.meta.ns.empty());
  CHECK(node.ready);
  CHECK_FALSE(node.unschedulable);
  CHECK(node.boot_id == "00000000-0000-0000-0000-000000000002");
  CHECK(node.kubelet_version == "v1.37.1");
  CHECK(node.capacity == std::vector<ResourceAmount>{{"example.com/gpu", 3}});
  CHECK(node.allocatable == std::vector<ResourceAmount>{{"example.com/gpu", 0}});
}

TEST_CASE("A recorded rule is read with its selector and taint") {
  const auto page = read_list(Kind::DeviceTaintRule, "recordings/list/rules.json");
  REQUIRE(!page.objects.empty());
  const auto& rule = std::get<DeviceTaintRule>(page.objects[0]);
  CHECK(rule.has_selector);
  CHECK(rule.driver == "gpu.example.com");
  CHECK(rule.pool == "node-a");
  CHECK(rule.device == "gpu-1");
  CHECK_FALSE(rule.has_other_selectors);
  CHECK(rule.taint == Taint{"device-health.io/unhealthy", "ecc", "NoSchedule"});
  CHECK(rule.generation == 1);
  CHECK(rule.progress ==
        EvictionInProgress{1, "False", "OtherEffect", "Eviction only happens for the NoExecute effect."});
}

TEST_CASE("A recorded rule is made without a condition and gets it a moment later") {
  Decoder decoder(Kind::DeviceTaintRule);
  std::vector<bool> has_condition;
  for (const auto& line : read_fixture_lines("recordings/watch/rules-watchlist.ndjson")) {
    const auto event = decoder.decode_event(line);
    if (const auto* const changed = std::get_if<Changed>(&event.what)) {
      has_condition.push_back(std::get<DeviceTaintRule>(changed->object).progress.has_value());
    }
  }
  CHECK(has_condition == std::vector<bool>{false, true});
}

TEST_CASE("Recorded Jobs are read whole") {
  const auto page = read_list(Kind::Job, "recordings/list/jobs.json");
  REQUIRE(!page.objects.empty());
  for (const auto& object : page.objects) REQUIRE(kind_of(object) == Kind::Job);
  const auto found = std::ranges::find(page.objects, "train", [](const auto& object) { return meta_of(object).name; });
  REQUIRE(found != page.objects.end());
  const auto& train = std::get<Job>(*found);
  CHECK(train.backoff_limit == 0);
  CHECK(train.active == 1);
  CHECK_FALSE(is_ending(train));
}

struct Counts {
  int changed = 0;
  int deleted = 0;
  int bookmarks = 0;
  int end_marks = 0;
};

Counts count_events(Kind kind, std::string_view file) {
  Decoder decoder(kind);
  Counts counts;
  for (const auto& line : read_fixture_lines(file)) {
    const auto event = decoder.decode_event(line);
    CHECK_FALSE(event.resource_version.empty());
    REQUIRE_FALSE(std::holds_alternative<BadObject>(event.what));
    counts.changed += std::holds_alternative<Changed>(event.what) ? 1 : 0;
    counts.deleted += std::holds_alternative<Deleted>(event.what) ? 1 : 0;
    const auto* bookmark = std::get_if<Bookmark>(&event.what);
    counts.bookmarks += bookmark != nullptr ? 1 : 0;
    counts.end_marks += bookmark != nullptr && bookmark->initial_events_end ? 1 : 0;
  }
  return counts;
}

TEST_CASE("Every line of the recorded watches is read, and each WatchList has one end marker") {
  const auto pods = count_events(Kind::Pod, "recordings/watch/pods-watchlist.ndjson");
  CHECK(pods.changed == 71);
  CHECK(pods.deleted == 6);
  CHECK(pods.bookmarks == 3);
  CHECK(pods.end_marks == 1);
  const auto claims = count_events(Kind::ResourceClaim, "recordings/watch/claims-watchlist.ndjson");
  CHECK(claims.changed == 18);
  CHECK(claims.deleted == 3);
  CHECK(claims.end_marks == 1);
  CHECK(count_events(Kind::Job, "recordings/watch/jobs-watchlist.ndjson").changed == 14);
  CHECK(count_events(Kind::Node, "recordings/watch/nodes-watchlist.ndjson").changed > 0);
  CHECK(count_events(Kind::DeviceTaintRule, "recordings/watch/rules-watchlist.ndjson").deleted == 1);
  CHECK(count_events(Kind::ResourceSlice, "recordings/watch/slices-watchlist.ndjson").changed == 1);
  CHECK(count_events(Kind::ResourceSlice, "recordings/watch/slices-driver-dies.ndjson").deleted == 1);
}

TEST_CASE("A recorded driver's death reads as Unknown without a message, and its return as Unhealthy again") {
  Decoder decoder(Kind::Pod);
  std::vector<ReportedDevice> seen;
  for (const auto& line : read_fixture_lines("recordings/watch/pods-driver-dies.ndjson")) {
    const auto event = decoder.decode_event(line);
    const auto* changed = std::get_if<Changed>(&event.what);
    if (changed == nullptr) continue;
    const auto& pod = std::get<Pod>(changed->object);
    REQUIRE(pod.allocated.size() == 1);
    REQUIRE(pod.allocated[0].devices.size() == 1);
    if (pod.allocated[0].devices[0].resource_id.ends_with("-gpu-0")) seen.push_back(pod.allocated[0].devices[0]);
  }
  const std::string id = "example.com/gpu=508edba3-1789-435d-bb46-c396b9086cf7-gpu-0";
  const std::string xid = "Xid 79: GPU has fallen off the bus";
  CHECK(seen == std::vector<ReportedDevice>{{id, Health::Healthy, "", "", {"main"}},
                                            {id, Health::Unhealthy, xid, "", {"main"}},
                                            {id, Health::Unknown, "", "", {"main"}},
                                            {id, Health::Unhealthy, xid, "", {"main"}}});
}

TEST_CASE("A recorded ERROR event hands on its Status untouched and has no version to go on from") {
  const auto line = read_fixture_lines("recordings/status/watch-410.json").at(0);
  const auto event = Decoder(Kind::Pod).decode_event(line);
  CHECK(event.resource_version.empty());
  REQUIRE(std::holds_alternative<ErrorStatus>(event.what));
  CHECK(line == R"({"type":"ERROR","object":)" + std::get<ErrorStatus>(event.what).body + "}");
}

}  // namespace
