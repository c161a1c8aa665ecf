// Which physical device sits in a place: partitions that are made again, and drivers that name their cards anew.
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "domain/contract/names.h"
#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

const std::string kParent = "gpu.example.com/parentUUID";
const std::string kUuid = "gpu.example.com/uuid";

/// Two partitions of one card; of the first its own UUID.
void publish_partitions(Stage& stage, const std::string& card, const std::string& uuid) {
  publish(stage, {{.name = "gpu-0", .taints = {}, .attributes = {{kParent, card}, {kUuid, uuid}}},
                  {.name = "gpu-1", .taints = {}, .attributes = {{kParent, card}, {kUuid, "MIG-other"}}},
                  {.name = "gpu-9", .taints = {}, .attributes = {{kUuid, "GPU-z"}}}});
}

/// The first of the partitions is tainted and free.
Stage tainted_partition(const std::string& attribute = {}) {
  auto stage = gpu_stage({.partitions = false});
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().recover.identity_attribute = attribute;
  stage.send_policy();
  publish_partitions(stage, "GPU-a", "MIG-1");
  stage.run_for(Seconds(70));
  drop_pod(stage, "train-1", "train-gpu");
  stage.run_for(Seconds(10));
  return stage;
}

void replace_in(std::string& text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  text.replace(at, what.size(), by);
}

/// Each card of the node by its UUID, in order.
void publish_cards(Stage& stage, const std::vector<std::string>& uuids) {
  std::vector<k8s::SliceDevice> devices;
  for (std::size_t at = 0; at < uuids.size(); ++at) {
    devices.push_back({.name = "gpu-" + std::to_string(at), .taints = {}, .attributes = {{kUuid, uuids[at]}}});
  }
  publish(stage, std::move(devices));
}

/// One of two slices of a generation, with one card.
void publish_half(Stage& stage, int card, const std::string& uuid, std::int64_t generation) {
  const auto name = std::to_string(card);
  k8s::ResourceSlice slice;
  slice.meta.name = "slice-" + name + "-" + std::to_string(generation);
  slice.meta.uid = "uid-" + slice.meta.name;
  slice.driver = kDriver;
  slice.pool = "node-a";
  slice.node_name = "node-a";
  slice.generation = generation;
  slice.pool_slices = 2;
  slice.devices = {{.name = "gpu-" + name, .taints = {}, .attributes = {{kUuid, uuid}}}};
  stage.put(slice);
}

/// The first of these cards is tainted and free.
Stage tainted_card(const std::vector<std::string>& uuids) {
  auto stage = gpu_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.send_policy();
  publish_cards(stage, uuids);
  stage.run_for(Seconds(70));
  drop_pod(stage, "train-1", "train-gpu");
  stage.run_for(Seconds(10));
  return stage;
}

/// The same, published in halves.
Stage tainted_half() {
  auto stage = gpu_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.send_policy();
  stage.remove(k8s::Kind::ResourceSlice, "slice-node-a");
  publish_half(stage, 0, "A0", 1);
  publish_half(stage, 1, "A1", 1);
  stage.run_for(Seconds(70));
  drop_pod(stage, "train-1", "train-gpu");
  stage.run_for(Seconds(10));
  return stage;
}

bool keeps_rule(Stage& stage) {
  stage.run_for(minutes(30), Seconds(30));
  return stage.rule() != nullptr;
}

std::string identity_on_rule(Stage& stage) {
  if (stage.rule() == nullptr) return "no rule";
  return std::string(k8s::find(stage.rule()->meta.annotations, kIdentityAnnotation).value_or("none"));
}

}  // namespace

TEST_CASE("A partition that is made again on its card is the same device, and on another card another") {
  for (const auto& attribute : {std::string(), kParent}) {
    for (const bool restarts : {false, true}) {
      CAPTURE(attribute);
      CAPTURE(restarts);
      auto stage = tainted_partition(attribute);
      CHECK(identity_on_rule(stage) == "GPU-a/gpu-0");
      publish_partitions(stage, "GPU-a", "MIG-2");
      if (restarts) stage.restart();
      CHECK(keeps_rule(stage));
      publish_partitions(stage, "GPU-b", "MIG-2");
      if (restarts) stage.restart();
      CHECK(!keeps_rule(stage));
    }
  }
}

TEST_CASE("Whoever names a partition's own UUID asks for a clean start with each partition") {
  auto stage = tainted_partition(kUuid);
  CHECK(identity_on_rule(stage) == "MIG-1");
  publish_partitions(stage, "GPU-a", "MIG-2");
  CHECK(!keeps_rule(stage));
}

TEST_CASE("What an earlier version wrote of a partition becomes its card's, whatever it was made into meanwhile") {
  for (const auto& uuid : {"MIG-1", "MIG-2"}) {
    CAPTURE(uuid);
    auto stage = tainted_partition();
    auto text = stage.state_text();
    replace_in(text, R"("identity":"GPU-a/gpu-0","attribute":")" + kParent,
               R"("identity":"MIG-1","attribute":")" + kUuid);
    stage.put(state_map(text));
    publish_partitions(stage, "GPU-a", uuid);
    stage.restart();
    CHECK(keeps_rule(stage));
    CHECK(stage.state_text().contains(R"("identity":"GPU-a/gpu-0")"));
    publish_partitions(stage, "GPU-b", uuid);
    CHECK(!keeps_rule(stage));
  }
}

TEST_CASE("What an earlier version wrote of a configured parent is the same card") {
  auto stage = tainted_partition(kParent);
  auto text = stage.state_text();
  replace_in(text, R"("identity":"GPU-a/gpu-0")", R"("identity":"GPU-a")");
  stage.put(state_map(text));
  stage.restart();
  CHECK(keeps_rule(stage));
  CHECK(stage.state_text().contains(R"("identity":"GPU-a/gpu-0")"));
}

TEST_CASE("A driver that names every card anew at each start has swapped none, and one card alone is another") {
  for (const bool restarts : {false, true}) {
    CAPTURE(restarts);
    auto stage = tainted_card({"A0", "A1", "A2"});
    publish_cards(stage, {"B0", "B1", "B2"});
    if (restarts) stage.restart();
    CHECK(keeps_rule(stage));
    CHECK(identity_on_rule(stage) == "B0");
    publish_cards(stage, {"C0", "C1", "C2"});
    if (restarts) stage.restart();
    CHECK(keeps_rule(stage));
    publish_cards(stage, {"D0", "C1", "C2"});
    if (restarts) stage.restart();
    CHECK(!keeps_rule(stage));
  }
}

TEST_CASE("Cards that have changed places are others, and so is the only card of a pool") {
  auto places = tainted_card({"A0", "A1"});
  publish_cards(places, {"A1", "A0"});
  CHECK(!keeps_rule(places));
  auto alone = tainted_card({"A0"});
  publish_cards(alone, {"B0"});
  CHECK(!keeps_rule(alone));
}

TEST_CASE("A generation that is half seen says nothing yet about its cards") {
  for (const bool restarts : {false, true}) {
    for (const bool swapped : {false, true}) {
      CAPTURE(restarts);
      CAPTURE(swapped);
      auto stage = tainted_half();
      REQUIRE(stage.rule() != nullptr);
      publish_half(stage, 0, "B0", 2);
      if (restarts) stage.restart();
      CHECK(keeps_rule(stage));
      publish_half(stage, 1, swapped ? "A1" : "B1", 2);
      if (restarts) stage.restart();
      CHECK(keeps_rule(stage) == !swapped);
    }
  }
}

TEST_CASE("A driver that begins with its first slice again is judged once the pool is whole") {
  auto stage = tainted_half();
  stage.remove(k8s::Kind::ResourceSlice, "slice-0-1");
  stage.settle();
  stage.remove(k8s::Kind::ResourceSlice, "slice-1-1");
  stage.settle();
  publish_half(stage, 0, "B0", 1);
  stage.settle();
  publish_half(stage, 1, "B1", 1);
  CHECK(keeps_rule(stage));
}

TEST_CASE("A report that is not yet an incident stands when a driver names every card anew") {
  auto stage = gpu_stage();
  publish_cards(stage, {"A0", "A1"});
  stage.run_for(Seconds(30));
  publish_cards(stage, {"B0", "B1"});
  stage.run_for(Seconds(31));
  CHECK(stage.rule() != nullptr);
  auto swapped = gpu_stage();
  publish_cards(swapped, {"A0", "A1"});
  swapped.run_for(Seconds(30));
  publish_cards(swapped, {"B0", "A1"});
  swapped.run_for(Seconds(31));
  CHECK(swapped.rule() == nullptr);
}

TEST_CASE("Another attribute in the configuration is no swap, also where the driver names its card anew meanwhile") {
  const std::string serial = "gpu.example.com/serial";
  const auto publish_one = [&](Stage& stage, const std::string& uuid, const std::string& number) {
    publish(stage, {{.name = "gpu-0", .taints = {}, .attributes = {{serial, number}, {kUuid, uuid}}}});
  };
  auto stage = gpu_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.send_policy();
  publish_one(stage, "A0", "S0");
  stage.run_for(Seconds(70));
  drop_pod(stage, "train-1", "train-gpu");
  stage.run_for(Seconds(10));
  stage.policy().recover.identity_attribute = serial;
  stage.send_policy();
  publish_one(stage, "B0", "S0");
  stage.restart();
  CHECK(keeps_rule(stage));
  publish_one(stage, "B0", "S1");
  CHECK(!keeps_rule(stage));
}

TEST_CASE("What a rule remembers follows the names of its card, for when the state is lost") {
  auto stage = tainted_card({"A0", "A1"});
  publish_cards(stage, {"B0", "B1"});
  stage.run_for(minutes(2));
  stage.remove(k8s::Kind::ConfigMap, "device-health-incidents");
  stage.restart();
  CHECK(keeps_rule(stage));
}

}  // namespace dhc::test
