// Evictions that the API server refuses, answers in doubt, or would be wrong by the time that they are sent.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/scenarios/resource.h"
#include "tests/support/core/scenario.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::Scenario;
using namespace std::chrono_literals;

namespace {

/// Ten nodes of `devices` devices; nothing brakes, and the limits are those that ship.
struct Fleet : Scenario {
  explicit Fleet(int devices = 8) {
    for (int i = 0; i < 10; ++i) cluster.add_node({fmt::format("node-{}", i), {{kResource, devices}}, {}, {}});
    whole_policy().limits = Limits{.brake_at_least = 10'000};
    send_policy();
  }
  void deploy(const std::string& name, int replicas) {
    PodShape shape;
    shape.resource = kResource;
    cluster.create_deployment("default", name, replicas, shape);
    run_for(10s);
    REQUIRE(live(name + "-").size() == static_cast<std::size_t>(replicas));
  }
  void budget(const std::string& name, const std::string& app, int min_available) {
    cluster.add_budget({"default", name, {{"app", app}}, min_available, std::nullopt});
  }
  void set_health(const std::string& pod, const std::string& health) {
    cluster.set_device_health(text(this->pod(pod), {"spec", "nodeName"}), plugin_device(pod), health);
  }
  /// Breaks the device of every pod of the Deployment, and names the pods.
  std::vector<std::string> break_all(const std::string& app) {
    auto pods = live(app + "-");
    for (const auto& pod : pods) set_health(pod, "Unhealthy");
    return pods;
  }
  [[nodiscard]] bool says(const std::string& pod, const std::string& reason) const {
    const auto words = reasons(pod);
    return std::ranges::find(words, reason) != words.end();
  }
  [[nodiscard]] std::string message(const std::string& pod, const std::string& reason) const {
    for (const auto& verdict : verdicts()) {
      if (verdict.subject.name == pod && to_string(verdict.reason) == reason) return verdict.message;
    }
    return {};
  }
  [[nodiscard]] bool evicted(const std::string& pod) const {
    const auto gone = evictions();
    return std::ranges::find(gone, "default/" + pod) != gone.end();
  }
  /// Eviction requests from `from` until now.
  [[nodiscard]] std::ptrdiff_t eviction_requests(MonoTime from) const {
    return std::ranges::count_if(cluster.requests(), [&](const RequestRecord& request) {
      return request.at.mono >= from && request.target.find("/eviction") != std::string::npos;
    });
  }
};

}  // namespace

TEST_CASE("Pods that two budgets select are refused for ever, and hold no eviction of any other pod") {
  Fleet world;
  world.deploy("double", 5);
  world.budget("one", "double", 1);
  world.budget("two", "double", 1);
  world.deploy("other", 5);
  const auto refused = world.break_all("double");
  world.run_for(3min);
  const auto others = world.break_all("other");
  world.run_for(4min);
  for (const auto& pod : others) CHECK(world.evicted(pod));
  for (const auto& pod : refused) {
    CHECK(!world.evicted(pod));
    CHECK(world.says(pod, "Refused"));
    CHECK(world.message(pod, "Refused").find("more than one PodDisruptionBudget") != std::string::npos);
  }
}

TEST_CASE("Two pods that two budgets select do not block their node") {
  Fleet world;
  for (int i = 1; i < 10; ++i) world.cluster.cordon(fmt::format("node-{}", i), true);
  world.deploy("double", 2);
  world.budget("one", "double", 1);
  world.budget("two", "double", 1);
  world.deploy("other", 1);
  for (int i = 1; i < 10; ++i) world.cluster.cordon(fmt::format("node-{}", i), false);
  world.break_all("double");
  world.run_for(3min);
  const auto others = world.break_all("other");
  world.run_for(10min);
  for (const auto& pod : others) CHECK(world.evicted(pod));
}

TEST_CASE("An admission webhook that is down holds the pods that it guards, and no others") {
  Fleet world;
  world.deploy("guarded", 5);
  world.deploy("other", 5);
  world.cluster.faults().add(
      {.method = k8s::Method::Post,
       .path_contains = "/pods/guarded-",
       .count = -1,
       .status = 500,
       .body =
           R"({"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,)"
           R"("message":"Internal error occurred: failed calling webhook \"pods.example.com\": connection refused"})"});
  const auto guarded = world.break_all("guarded");
  world.run_for(3min);
  const auto others = world.break_all("other");
  world.run_for(15min);
  for (const auto& pod : others) CHECK(world.evicted(pod));
  for (const auto& pod : guarded)
    CHECK(world.message(pod, "Refused").find("failed calling webhook") != std::string::npos);
}

TEST_CASE("A refused eviction is not asked for again within 30 s, and soon only every ten minutes") {
  Fleet world;
  world.deploy("double", 1);
  world.budget("one", "double", 0);
  world.budget("two", "double", 0);
  world.break_all("double");
  world.run_for(65s);
  const auto start = world.now.mono;
  REQUIRE(world.eviction_requests({}) == 1);
  world.run_for(24s);
  CHECK(world.eviction_requests({}) == 1);
  world.run_for(1h);
  const auto asked = world.eviction_requests(start);
  CHECK(asked >= 6);
  CHECK(asked <= 12);
}

TEST_CASE("An etcd timeout that committed all the same is an eviction, and is not repeated") {
  Fleet world;
  world.deploy("infer", 1);
  world.cluster.lags().sigterm_exit = 25s;
  world.cluster.faults().add(
      {.method = k8s::Method::Post, .path_contains = "/eviction", .count = 1, .status = 500, .handled_first = true});
  const auto pods = world.break_all("infer");
  world.run_for(10min);
  CHECK(world.eviction_requests({}) == 1);
  const auto outcome = std::ranges::find_if(
      world.outcomes(), [](const Outcome& done) { return std::holds_alternative<eviction::EvictPod>(done.action); });
  REQUIRE(outcome != world.outcomes().end());
  CHECK(outcome->status.has_value());
  CHECK(world.live("infer-") != pods);
}

TEST_CASE("A hundred pods that a budget blocks cost at most six times perMinute requests, and no eviction") {
  Fleet world(30);  // a bad device that is held costs two: its own, and the one that its pod still asks for
  world.deploy("blocked", 100);
  world.budget("all", "blocked", 100);
  world.deploy("other", 3);
  world.break_all("blocked");
  world.run_for(2min);
  auto start = world.now.mono;
  world.run_for(1min);
  CHECK(world.eviction_requests(start) <= 61);
  const auto others = world.break_all("other");
  start = world.now.mono;
  world.run_for(2min);
  CHECK(world.eviction_requests(start) <= 121);
  for (const auto& pod : others) {
    INFO(fmt::format("{}", fmt::join(world.reasons(pod), " ")));
    CHECK(world.evicted(pod));
  }
  CHECK(world.evictions().size() == 3);
}

TEST_CASE("A pod whose device has recovered behind a silent watch is not evicted") {
  Fleet world;
  world.deploy("infer", 1);
  const auto pod = world.break_all("infer").front();
  world.run_for(50s);
  world.hold(k8s::Kind::Pod, true);
  world.set_health(pod, "Healthy");
  world.run_for(3min);
  CHECK(world.evictions().empty());
  CHECK(world.eviction_requests({}) == 0);
  CHECK(world.says(pod, "SignalGone"));
  world.hold(k8s::Kind::Pod, false);
  world.run_for(3min);
  CHECK(world.evictions().empty());
  CHECK(!world.says(pod, "SignalGone"));
}

TEST_CASE("A pod that opted out behind a silent watch is not evicted") {
  Fleet world;
  world.deploy("infer", 1);
  const auto pod = world.break_all("infer").front();
  world.run_for(50s);
  world.hold(k8s::Kind::Pod, true);
  world.cluster.kubectl_patch(Res::Pods, "default", pod,
                              {{"metadata", {{"annotations", {{"device-health.io/opt-out", "true"}}}}}});
  world.run_for(3min);
  CHECK(world.evictions().empty());
}

TEST_CASE("Without the right to read pods nothing is evicted, and the verdict names the refusal") {
  Fleet world;
  world.deploy("infer", 1);
  world.cluster.faults().add(
      {.method = k8s::Method::Get,
       .path_contains = "/namespaces/default/pods/",
       .watches = false,
       .count = -1,
       .status = 403,
       .body = R"({"kind":"Status","reason":"Forbidden","code":403,"message":"cannot get resource \"pods\""})"});
  const auto pod = world.break_all("infer").front();
  world.run_for(5min);
  CHECK(world.eviction_requests({}) == 0);
  CHECK(world.message(pod, "Refused").find("cannot get resource \"pods\"") != std::string::npos);
}
