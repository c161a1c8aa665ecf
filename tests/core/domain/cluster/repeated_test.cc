// What changes nothing that is kept is no news: most of a real cluster's updates.
#include <doctest/doctest.h>

#include "domain/cluster/world.h"
#include "domain/contract/names.h"
#include "domain/contract/our_taint.h"
#include "tests/support/core/fixtures.h"

namespace dhc::test {

namespace {

const Now kNow{.mono = MonoTime(Seconds(100)), .wall = WallTime(Seconds(1'000'000))};

k8s::Pod gpu_pod() {
  k8s::Pod pod;
  pod.meta.ns = "default";
  pod.meta.name = "train-0";
  pod.meta.uid = "u-1";
  pod.meta.resource_version = "1";
  pod.node_name = "node-a";
  pod.phase = k8s::PodPhase::Running;
  pod.allocated = {{.name = "example.com/gpu",
                    .devices = {{.resource_id = "gpu-0", .health = k8s::Health::Healthy, .message = {}}}}};
  return pod;
}

template <class T>
bool is_news(World& world, T object) {
  return world.apply(k8s::Upsert{.object = std::move(object)}, kNow);
}

/// Of the first sight, of the same with a later version, and of a change.
template <class T, class Change>
void check_news(T object, Change change) {
  World world;
  object.meta.uid = "u-1";
  object.meta.name = "one";
  object.meta.resource_version = "1";
  CHECK(is_news(world, object));
  object.meta.resource_version = "2";
  CHECK_FALSE(is_news(world, object));
  change(object);
  CHECK(is_news(world, object));
}

}  // namespace

TEST_CASE("A pod that differs in nothing but its version is no news, and its version is taken over") {
  World world;
  auto pod = gpu_pod();
  CHECK(is_news(world, pod));
  world.refresh(kNow);
  pod.meta.resource_version = "2";
  CHECK_FALSE(is_news(world, pod));
  CHECK(world.pod("u-1")->pod.meta.resource_version == "2");
  pod.allocated[0].devices[0].health = k8s::Health::Unhealthy;
  CHECK(is_news(world, pod));
  world.refresh(kNow);
  CHECK(world.tracker().not_healthy().size() == 1);
}

TEST_CASE("A pod that could not be read is news as soon as it can be, also unchanged") {
  World world;
  CHECK(is_news(world, gpu_pod()));
  CHECK(world.apply(
      k8s::Unreadable{.kind = k8s::Kind::Pod, .ns = "default", .name = "train-0", .uid = "u-1", .why = "x"}, kNow));
  CHECK_FALSE(world.pod("u-1")->readable);
  CHECK(is_news(world, gpu_pod()));
  CHECK(world.pod("u-1")->readable);
}

TEST_CASE("A pod without devices is never news, unless it was known with one") {
  World world;
  k8s::Pod plain;
  plain.meta = gpu_pod().meta;
  CHECK_FALSE(is_news(world, plain));
  CHECK(is_news(world, gpu_pod()));
  CHECK(is_news(world, plain));
  CHECK(world.pod("u-1") == nullptr);
  CHECK_FALSE(world.apply(k8s::Remove{.kind = k8s::Kind::Pod, .ns = "default", .name = "train-0", .uid = "u-1"}, kNow));
}

TEST_CASE("A driver's pod that begins anew is news, although it holds no device itself") {
  World world;
  k8s::Pod driver;
  driver.meta = gpu_pod().meta;
  driver.meta.controller = k8s::OwnerRef{.api_version = "apps/v1", .kind = "DaemonSet", .name = "driver", .uid = "d"};
  driver.node_name = "node-a";
  driver.phase = k8s::PodPhase::Running;
  driver.kubelet_plugin = true;
  driver.plugin_folders = {"plugins"};
  driver.last_start = WallTime(Seconds(999'000));
  CHECK(is_news(world, driver));
  CHECK_FALSE(is_news(world, driver));
  driver.last_start = WallTime(Seconds(999'500));
  CHECK(is_news(world, driver));
}

TEST_CASE("A claim, node, Job or owner that differs in nothing but its version is no news") {
  check_news(k8s::ResourceClaim{}, [](auto& claim) { claim.allocated = true; });
  check_news(k8s::Node{}, [](auto& node) { node.ready = true; });
  check_news(k8s::Job{}, [](auto& job) { ++job.failed; });
  check_news(k8s::Owner{}, [](auto& owner) { owner.meta.labels = {{"a", "b"}}; });
}

TEST_CASE("A claim that comes back after its deletion is news, also unchanged") {
  World world;
  k8s::ResourceClaim claim;
  claim.meta.ns = "default";
  claim.meta.name = "gpu";
  claim.meta.uid = "c-1";
  auto pod = gpu_pod();
  pod.claims = {{.name = "gpu", .claim_name = "gpu"}};
  CHECK(is_news(world, pod));
  CHECK(is_news(world, claim));
  CHECK(world.apply(k8s::Remove{.kind = k8s::Kind::ResourceClaim, .ns = "default", .name = "gpu", .uid = "c-1"}, kNow));
  CHECK(world.standing_claim("default/gpu") == nullptr);
  CHECK(is_news(world, claim));
  CHECK(world.standing_claim("default/gpu") != nullptr);
}

TEST_CASE("A replacement that a list shows unchanged after the data went back is still known") {
  World world;
  k8s::Job job;
  job.meta.ns = "default";
  job.meta.name = "again";
  job.meta.uid = "j-2";
  job.meta.labels = {{std::string(kRecreatedFromLabel), "j-1"}};
  k8s::Job dead;
  dead.meta.ns = "default";
  dead.meta.uid = "j-1";
  CHECK(is_news(world, job));
  REQUIRE(world.is_recreated(dead));
  (void)world.apply(k8s::Snapshot{.kind = k8s::Kind::Job, .objects = {job}, .went_back = true}, kNow);
  CHECK(world.is_recreated(dead));
}

TEST_CASE("A node's taint that a list shows after the data went back is not lost") {
  World world;
  k8s::Node node;
  node.meta.name = "node-a";
  node.meta.uid = "n-1";
  node.taints = {node_taint()};
  CHECK(is_news(world, node));
  (void)world.apply(k8s::Snapshot{.kind = k8s::Kind::Node, .objects = {node}, .went_back = true}, kNow);
  CHECK_FALSE(world.is_lost_taint("node-a"));
  node.taints.clear();
  (void)world.apply(k8s::Snapshot{.kind = k8s::Kind::Node, .objects = {node}, .went_back = true}, kNow);
  CHECK(world.is_lost_taint("node-a"));
}

TEST_CASE("A watch's word is news when it is the first, ends a silence or a doubt, or begins one") {
  World world;
  const auto told = [&](Millis at, k8s::WatchWord word = k8s::WatchWord::Heard) {
    return world.apply(k8s::Told{.kind = k8s::Kind::Pod, .name = {}, .word = word, .at = MonoTime(at)}, kNow);
  };
  CHECK(told(Seconds(0)));
  CHECK_FALSE(told(kOldestView - Millis(1)));
  CHECK(told(2 * kOldestView - Millis(1)));
  CHECK(told(2 * kOldestView, k8s::WatchWord::Doubted));
  CHECK_FALSE(told(2 * kOldestView, k8s::WatchWord::Doubted));
  CHECK(told(2 * kOldestView + Millis(1)));
  CHECK_FALSE(told(2 * kOldestView + Millis(2)));
}

}  // namespace dhc::test
