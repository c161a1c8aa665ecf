#include "domain/findings/rejecting_node.h"

#include <chrono>
#include <string>
#include <utility>

#include <doctest/doctest.h>

namespace dhc {

namespace {

constexpr auto kAsked = "example.com/gpu";

Now time_after(Millis since) {
  const WallTime morning = std::chrono::sys_days(std::chrono::year(2026) / 11 / 20) + std::chrono::hours(8);
  return {.mono = MonoTime(std::chrono::hours(100)) + since, .wall = morning + since};
}

k8s::Pod asking_pod(const std::string& name, Millis made) {
  k8s::Pod pod;
  pod.meta.ns = "default";
  pod.meta.name = name;
  pod.meta.uid = "uid-" + name;
  pod.meta.creation = std::chrono::floor<Seconds>(time_after(made).wall);
  pod.node_name = "node-a";
  pod.requests = {{kAsked, 1}};
  return pod;
}

/// A node whose kubelet rejects what it is given.
struct Rejections {
  World world;
  Policy policy;
  Rejections() {
    policy.policies.push_back({.name = "p", .mode = Mode::Enforce});
    policy.policies.front().job_retry = JobRetryRules{.rejections = 2, .rejections_within = Seconds(60)};
    k8s::Node node;
    node.meta.name = node.meta.uid = "node-a";
    node.allocatable = {{kAsked, 4}};
    world.apply(k8s::Upsert{std::move(node)}, time_after(Seconds(0)));
  }
  void show(k8s::Pod pod, Millis at) {
    world.apply(k8s::Upsert{std::move(pod)}, time_after(at));
    world.refresh(time_after(at));
  }
  void reject(const std::string& name, Millis at, const std::string& reason = "UnexpectedAdmissionError") {
    auto pod = asking_pod(name, at);
    pod.phase = k8s::PodPhase::Failed;
    pod.status_reason = reason;
    pod.status_message = "Allocate failed due to requested number of devices unavailable for example.com/gpu";
    show(std::move(pod), at);
  }
  [[nodiscard]] RejectingNodes seen(Millis at) const { return find_rejecting_nodes(world, policy, time_after(at)); }
};

}  // namespace

TEST_CASE("A node rejects from the rejection that makes them enough, for as long as enough are within the time") {
  Rejections rejections;
  rejections.reject("a", Seconds(0));
  auto found = rejections.seen(Seconds(0));
  REQUIRE(found.size() == 1);
  CHECK(found.begin()->first == std::pair<std::string, std::string>("node-a", kAsked));
  CHECK_FALSE(found.begin()->second.since());
  rejections.reject("b", Seconds(30));
  found = rejections.seen(Seconds(60) - Millis(1));
  REQUIRE(found.size() == 1);
  REQUIRE(found.begin()->second.since());
  CHECK(found.begin()->second.since()->mono == time_after(Seconds(30)).mono);
  CHECK(found.begin()->second.changes_at() == time_after(Seconds(60)).mono);
  found = rejections.seen(Seconds(60));
  REQUIRE(found.size() == 1);
  CHECK_FALSE(found.begin()->second.since());
  CHECK(rejections.seen(Seconds(90)).empty());
}

TEST_CASE("What the kubelet did not reject, or no policy that looks covers, is no rejection") {
  Rejections rejections;
  rejections.reject("a", Seconds(0), "Evicted");
  CHECK(rejections.seen(Seconds(1)).empty());
  rejections.reject("b", Seconds(1));
  REQUIRE(rejections.seen(Seconds(1)).size() == 1);
  rejections.policy.policies.front().mode = Mode::Off;
  CHECK(rejections.seen(Seconds(1)).empty());
  rejections.policy.policies.front().mode = Mode::Observe;
  CHECK(rejections.seen(Seconds(1)).size() == 1);
  rejections.policy.policies.front().job_retry.reset();
  CHECK(rejections.seen(Seconds(1)).empty());
}

TEST_CASE("A kubelet admits again when a pod runs there that asks for the resource and is younger than the rejection") {
  Rejections rejections;
  const auto key = DeviceKey::plugin("node-a", kAsked, {});
  auto pod = asking_pod("old", Seconds(10));
  pod.phase = k8s::PodPhase::Running;
  rejections.show(pod, Seconds(10));
  CHECK_FALSE(admitted_since(rejections.world, key, time_after(Seconds(20)).wall));
  pod = asking_pod("young", Seconds(21));
  rejections.show(pod, Seconds(21));
  CHECK_FALSE(admitted_since(rejections.world, key, time_after(Seconds(20)).wall));
  pod.phase = k8s::PodPhase::Running;
  rejections.show(pod, Seconds(22));
  CHECK(admitted_since(rejections.world, key, time_after(Seconds(20)).wall));
  CHECK_FALSE(admitted_since(rejections.world, DeviceKey::plugin("node-a", "example.com/nic", {}),
                             time_after(Seconds(20)).wall));
}

}  // namespace dhc
