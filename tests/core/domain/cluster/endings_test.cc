#include <doctest/doctest.h>

#include "domain/cluster/world.h"

namespace dhc::test {

TEST_CASE("A kubelet that rejects everything does not fill the memory, and the newest rejections are kept") {
  World world;
  const Now start{.mono = MonoTime(std::chrono::hours(1)), .wall = WallTime(std::chrono::hours(500'000))};
  for (int pod = 0; pod < 20'000; ++pod) {
    const Now now{.mono = start.mono + Millis(pod), .wall = start.wall + Millis(pod)};
    const auto name = "web-" + std::to_string(pod);
    k8s::Pod rejected;
    rejected.meta.ns = "default";
    rejected.meta.name = name;
    rejected.meta.uid = "uid-" + name;
    rejected.meta.creation = now.wall;
    rejected.meta.controller = k8s::OwnerRef{"apps/v1", "ReplicaSet", "web", "uid-web"};
    rejected.node_name = "node-a";
    rejected.phase = k8s::PodPhase::Failed;
    rejected.status_reason = "UnexpectedAdmissionError";
    rejected.requests = {{"example.com/gpu", 1}};
    world.apply(k8s::Upsert{rejected}, now);
    world.refresh(now);
    world.apply(k8s::Remove{.kind = k8s::Kind::Pod, .ns = "default", .name = name, .uid = "uid-" + name}, now);
  }
  CHECK(world.endings().size() == 2000);
  CHECK(world.endings().contains("uid-web-19999"));
  CHECK(!world.endings().contains("uid-web-0"));
  world.refresh({.mono = start.mono + std::chrono::hours(2), .wall = start.wall + std::chrono::hours(2)});
  CHECK(world.endings().empty());
}

TEST_CASE("Of a rejected pod with more labels than anybody selects by none is kept") {
  const auto kept = [](int labels, std::size_t length) {
    World world;
    const Now now{.mono = MonoTime(std::chrono::hours(1)), .wall = WallTime(std::chrono::hours(500'000))};
    k8s::Pod rejected;
    rejected.meta.ns = "default";
    rejected.meta.name = rejected.meta.uid = "p";
    rejected.meta.creation = now.wall;
    rejected.node_name = "node-a";
    rejected.phase = k8s::PodPhase::Failed;
    rejected.status_reason = "UnexpectedAdmissionError";
    rejected.requests = {{"example.com/gpu", 1}};
    std::vector<k8s::StringMap::value_type> all;
    for (int i = 0; i < labels; ++i) all.emplace_back(std::to_string(1000 + i), std::string(length, 'x'));
    rejected.meta.labels = k8s::StringMap(std::move(all));
    world.apply(k8s::Upsert{rejected}, now);
    world.refresh(now);
    return world.endings().at("p").pod.meta.labels.size();
  };
  CHECK(kept(64, 10) == 64);
  CHECK(kept(65, 10) == 0);
  CHECK(kept(40, 1000) == 0);
}

}  // namespace dhc::test
