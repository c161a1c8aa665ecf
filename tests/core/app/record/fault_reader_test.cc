#include "app/record/fault_reader.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "domain/tuning/sweep.h"
#include "tests/support/core/taint_world.h"

using namespace dhc;
using namespace dhc::test;

namespace {

using std::chrono::minutes;

tuning::FaultTrace read(std::string_view text) {
  record::FaultReader reader;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto fed = reader.feed(text.substr(0, end));
    REQUIRE_MESSAGE(fed, fed.error().message);
    text.remove_prefix(end + 1);
  }
  return reader.finish();
}

/// What lies between two moments, to the minute.
minutes between(WallTime from, WallTime to) { return std::chrono::round<minutes>(to - from); }

bool has_remark(const tuning::FaultTrace& trace, std::string_view words) {
  return std::ranges::any_of(trace.remarks, [&](const std::string& remark) { return remark.contains(words); });
}

/// A DRA device that a pod holds, and nobody is evicted.
struct Watched : TaintWorld {
  Watched() {
    whole_policy().mode_cap = Mode::Observe;
    send_policy();
    device = start_one();
    run_for(minutes(10));
  }
  std::string device;
};

}  // namespace

TEST_CASE("A fault is as long as the kubelet called the device bad") {
  Watched world;
  world.set_health(world.device, "Unhealthy");
  world.run_for(minutes(20));
  world.set_health(world.device, "Healthy");
  world.run_for(minutes(30));
  const auto trace = read(world.recording());
  REQUIRE(trace.broken.size() == 1);
  const auto& broken = trace.broken.front();
  CHECK(broken.name == world.device);
  CHECK(broken.scope == TaintWorld::kDriver);
  CHECK(broken.node == world.node_of("s-0"));
  REQUIRE(broken.faults.size() == 1);
  const auto& fault = broken.faults.front();
  CHECK(between(fault.from, fault.to) == minutes(20));
  CHECK(fault.told_to == fault.to);
  CHECK(between(fault.to, trace.to) == minutes(30));
  CHECK(trace.devices == 8);
  CHECK(trace.known.at({TaintWorld::kDriver, ""}) == 8);
  CHECK(trace.known.at({TaintWorld::kDriver, broken.node}) == 4);
  CHECK_FALSE(has_remark(trace, "nobody has said when it ended"));
}

TEST_CASE("Devices that are first seen while one is bad count like those that were there when it broke") {
  Watched world;
  world.set_health(world.device, "Unhealthy");
  world.run_for(minutes(5));
  world.cluster.add_node({"node-c", {}, {{TaintWorld::kDriver, 4}}, {}});
  world.run_for(minutes(5));
  const auto trace = read(world.recording());
  CHECK(trace.devices == 12);
  CHECK(trace.known.at({TaintWorld::kDriver, ""}) == 12);
  CHECK(trace.known.at({TaintWorld::kDriver, trace.broken.front().node}) == 4);
}

TEST_CASE("A device that is Healthy in between has two faults") {
  Watched world;
  for (int i = 0; i < 2; ++i) {
    world.set_health(world.device, "Unhealthy");
    world.run_for(minutes(5));
    world.set_health(world.device, "Healthy");
    world.run_for(minutes(5));
  }
  const auto trace = read(world.recording());
  REQUIRE(trace.broken.size() == 1);
  CHECK(trace.broken.front().faults.size() == 2);
}

TEST_CASE("Of a device that lost its pod nobody knows how long it was bad, and the trace says so") {
  TaintWorld world;
  const auto device = world.start_one();
  world.run_for(minutes(10));
  world.set_health(device, "Unhealthy");
  world.run_for(minutes(30));
  const auto trace = read(world.recording());
  REQUIRE(trace.broken.size() == 1);
  const auto& fault = trace.broken.front().faults.front();
  REQUIRE(fault.told_to);
  // The pod is evicted a minute later, and is gone within another.
  CHECK(between(fault.from, *fault.told_to) <= minutes(2));
  CHECK(*fault.told_to - fault.from >= Seconds(50));
  CHECK(fault.to == trace.to);
  CHECK(has_remark(trace, "1 fault: nobody has said when it ended"));
  const auto swept = tuning::sweep(trace, tuning::running_of(nullptr, {}), {});
  CHECK(swept.silent.running.outcome.first == 1);
  CHECK(swept.silent.running.outcome.repeats == 0);
}

TEST_CASE("A device that a later pod finds well was bad for nobody knows how long, until then at most") {
  TaintWorld world;
  world.policy().recover.hold = minutes(5);
  world.send_policy();
  const auto device = world.start_one();
  world.run_for(minutes(10));
  world.set_health(device, "Unhealthy");
  world.run_for(minutes(3));
  world.set_health(device, "Healthy");
  world.run_for(minutes(12));
  // The hold is over, and all devices that are left are taken.
  world.cluster.create_stateful_set("default", "t", 7, TaintWorld::dra_pod());
  world.run_for(minutes(5));
  const auto trace = read(world.recording());
  REQUIRE(trace.broken.size() == 1);
  REQUIRE(trace.broken.front().faults.size() == 1);
  const auto& fault = trace.broken.front().faults.front();
  CHECK(between(fault.from, *fault.told_to) <= minutes(2));
  CHECK(between(fault.from, fault.to) == minutes(15));
  CHECK(fault.to < trace.to);
  CHECK(has_remark(trace, "1 fault: nobody has said when it ended"));
}

TEST_CASE("A recording in which nothing breaks has no faults") {
  Watched world;
  const auto trace = read(world.recording());
  CHECK(trace.broken.empty());
  CHECK(between(trace.from, trace.to) >= minutes(10));
}

TEST_CASE("A line that is none of a recording is refused") {
  record::FaultReader reader;
  CHECK_FALSE(reader.feed("{\"pod\":1}"));
  CHECK_FALSE(reader.feed("nonsense"));
}

TEST_CASE("A second replica's run, which overlaps with the first, is left out and said") {
  Watched world;
  world.set_health(world.device, "Unhealthy");
  world.run_for(minutes(5));
  const auto text = world.recording();
  auto other = text;
  // The run's name is in the first line alone.
  const auto name = other.find("\"run\":\"") + 7;
  other.replace(name, other.find('"', name) - name, "20991231T000000Z-0000000b");
  const auto trace = read(text + other);
  REQUIRE(trace.broken.size() == 1);
  CHECK(trace.broken.front().faults.size() == 1);
  CHECK(has_remark(trace, "1 run left out"));
}

TEST_CASE("The devices of one card say so, and the card counts once") {
  Watched world;
  world.cluster.add_node({"node-c", {{TaintWorld::kResource, 0}}, {}, {}});
  for (const auto* device : {"GPU-0::0", "GPU-0::1", "GPU-0::2", "GPU-1::0"})
    world.cluster.restore_device("node-c", TaintWorld::kResource, device);
  world.cluster.create_stateful_set("default", "t", 12, TaintWorld::plugin_pod());
  world.run_for(minutes(10));
  for (const auto* device : {"GPU-0::0", "GPU-0::1", "GPU-0::2"})
    world.cluster.set_device_health("node-c", device, "Unhealthy");
  world.run_for(minutes(5));
  auto trace = read(world.recording());
  REQUIRE(trace.broken.size() == 3);
  CHECK_FALSE(trace.broken.front().card.empty());
  for (const auto& device : trace.broken) CHECK(device.card == trace.broken.front().card);
  CHECK(trace.devices == 10);
  CHECK(trace.known.at({TaintWorld::kResource, "node-c"}) == 2);
  CHECK(has_remark(trace, "3 of the devices that broke are replicas or partitions of 1 physical card:"));
  world.cluster.set_device_health("node-c", "GPU-1::0", "Unhealthy");
  world.run_for(minutes(5));
  trace = read(world.recording());
  REQUIRE(trace.broken.size() == 4);
  CHECK(trace.broken.back().card.empty());
  CHECK(has_remark(trace, "3 of the devices that broke are replicas or partitions of 1 physical card:"));
}
