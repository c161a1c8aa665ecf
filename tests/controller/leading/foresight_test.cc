// What a configuration would make of a cluster that stays as it is.
#include "app/foresight.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "domain/contract/names.h"
#include "domain/policy/config_duration.h"
#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

Outcome no_read(const owners::ReadOwner& read) {
  FAIL("read " << std::string_view(read.owner.name));
  return {.action = read, .status = {}};
}

Foresight foresee_on(const Stage& stage, Policy policy, Millis horizon = hours(1)) {
  return foresee(stage.lists(), {}, std::move(policy), stage.now(), horizon, no_read);
}

/// `pod: Reason +60s`, of pods alone and of what still holds at the end.
std::vector<std::string> lines_of(const Foresight& foresight) {
  std::vector<std::string> lines;
  for (const auto& one : foresight.foreseen) {
    if (one.verdict.subject.kind != "Pod" || one.ends) continue;
    const auto begins = std::chrono::duration_cast<Seconds>(one.begins);
    lines.push_back(
        fmt::format("{}: {} +{}", one.verdict.subject.name, to_string(one.verdict.reason), format_duration(begins)));
  }
  return lines;
}

/// A node of four with two pods, one on a bad device.
Stage one_bad() {
  Stage stage;
  stage.node("node-a", 4, 3);
  stage.pod({.name = "bad", .owner = "ReplicaSet/a", .device = "gpu-0", .health = Health::Unhealthy});
  stage.pod({.name = "good", .owner = "ReplicaSet/b", .device = "gpu-1"});
  return stage;
}

}  // namespace

TEST_CASE("an eviction is foreseen when its window will be over, of the pod on the bad device alone") {
  auto stage = one_bad();
  const auto foresight = foresee_on(stage, stage.whole_policy());
  CHECK(lines_of(foresight) == std::vector<std::string>{"bad: WouldEvict +1m"});
  CHECK(foresight.nodes == 1);
  CHECK(foresight.pods == 2);
  CHECK(foresight.devices_unhealthy == 1);
}

TEST_CASE("what comes after the horizon is not foreseen, what comes at it is") {
  auto stage = one_bad();
  CHECK(lines_of(foresee_on(stage, stage.whole_policy(), Seconds(59))) ==
        std::vector<std::string>{"bad: WaitingForWindow +0s"});
  CHECK(lines_of(foresee_on(stage, stage.whole_policy(), Seconds(60))) ==
        std::vector<std::string>{"bad: WouldEvict +1m"});
}

TEST_CASE("a policy that observes is foreseen as one that enforces, and a paused one as well") {
  auto stage = one_bad();
  auto policy = stage.whole_policy();
  policy.policies.front().mode = Mode::Observe;
  policy.limits.paused = true;
  CHECK(lines_of(foresee_on(stage, std::move(policy))) == std::vector<std::string>{"bad: WouldEvict +1m"});
}

TEST_CASE("an incident that the leader has written down goes on where it stood") {
  auto stage = one_bad();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().evict->after = minutes(10);
  stage.limits().paused = true;
  stage.send_policy();
  stage.run_for(minutes(5));
  const auto text = stage.state_text();
  REQUIRE_FALSE(text.empty());
  const auto lines = lines_of(foresee_on(stage, stage.whole_policy()));
  REQUIRE(lines.size() == 1);
  // Ten minutes after the incident opened, of which four have passed; without the state it would be eleven.
  CHECK(lines.front() == "bad: WouldEvict +6m");
}

TEST_CASE("nothing is foreseen where all is well, over a whole day in few steps") {
  Stage stage;
  stage.node("node-a", 4);
  stage.pod({.name = "good", .owner = "ReplicaSet/b", .device = "gpu-1"});
  CHECK(foresee_on(stage, stage.whole_policy(), hours(24)).foreseen.empty());
}

TEST_CASE("an owner that is not watched is read once, and its opt-out is foreseen") {
  Stage stage;
  stage.node("node-a", 4, 3);
  auto& pod = stage.pod({.name = "ray", .owner = "", .device = "gpu-0", .health = Health::Unhealthy});
  pod.meta.controller = k8s::OwnerRef{.api_version = "ray.io/v1", .kind = "RayCluster", .name = "r", .uid = "uid-r"};
  stage.upsert_pod("ray");
  int reads = 0;
  const auto foresight =
      foresee(stage.lists(), {}, stage.whole_policy(), stage.now(), hours(1), [&](const owners::ReadOwner& read) {
        ++reads;
        OwnerSight sight;
        sight.state = OwnerSight::State::Found;
        sight.meta.annotations = {{std::string(kOptOutAnnotation), "true"}};
        return Outcome{.action = read, .status = {}, .sight = sight};
      });
  CHECK(lines_of(foresight) == std::vector<std::string>{"ray: OptedOut +0s"});
  CHECK(reads == 1);
}

}  // namespace dhc::test
