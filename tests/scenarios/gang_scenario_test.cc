// A gang in one move: the controller against the simulated API server, Job and disruption controllers, kubelets.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "domain/contract/notice_text.h"
#include "tests/support/core/job_world.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::job_shape;
using dhc::test::JobWorld;
using namespace std::chrono_literals;

namespace {

/// A Job of eight whose pods need each other, under a policy that says `groups: Together`; its podFailurePolicy ignores
/// disruptions. The device of one of them breaks.
struct GangWorld : JobWorld {
  explicit GangWorld(std::uint64_t seed = 1) : JobWorld(gang_shape(), seed) {
    policy().evict->groups_together = true;
    send_policy();
    for (const auto& name : live("train-")) first_.insert(name);
  }

  static JobShape gang_shape() {
    auto shape = job_shape(0, 8);
    shape.ignore_condition = "DisruptionTarget";
    shape.shape.labels = {{"app", "train"}, {"device-health.io/gang", "train"}};
    shape.shape.restart_policy = "Never";
    shape.shape.on_sigterm = OnSigterm::Exit;
    return shape;
  }

  void allow(int disruptions) {
    cluster.add_budget(
        {.name = "train", .match_labels = {{"app", "train"}}, .min_available = 8 - disruptions, .max_unavailable = {}});
    run_for(1s);
  }
  void change_budget(int disruptions) {
    const Json patch = {{"spec", {{"minAvailable", 8 - disruptions}}}};
    REQUIRE(cluster.kubectl_patch(Res::Budgets, "default", "train", patch).status == 200);
  }

  /// How many of the first eight have not been evicted.
  [[nodiscard]] std::size_t left() const {
    const auto gone = evictions();
    return static_cast<std::size_t>(std::ranges::count_if(
        first_, [&](const auto& name) { return std::ranges::count(gone, "default/" + name) == 0; }));
  }

  /// Runs second by second, and gives the longest time in which some of the first eight were gone and others were not.
  Seconds run_and_measure(Seconds span) {
    Seconds half{0};
    Seconds longest{0};
    for (Seconds passed{0}; passed < span; ++passed) {
      run_for(1s);
      const bool is_half = left() > 0 && left() < first_.size();
      half = is_half ? half + 1s : Seconds(0);
      longest = std::max(longest, half);
    }
    return longest;
  }

 private:
  std::set<std::string> first_;
};

}  // namespace

TEST_CASE(
    "A gang of eight with one bad device stays while a budget allows seven, then goes in one move, each pod once") {
  GangWorld world;
  world.allow(7);
  const auto bad = world.break_device();
  world.run_for(60s);
  CHECK(world.evictions().empty());
  CHECK(world.says(bad, "BlockedByBudget"));
  for (const auto& name : world.live("train-")) CHECK((name == bad || world.says(name, "GangHeld")));
  world.change_budget(8);
  CHECK(world.run_and_measure(120s) <= 1s);
  CHECK(world.left() == 0);
  CHECK(world.evictions().size() == 8);
  // The Job's back-off doubles with each of eight lost pods, up to ten minutes.
  world.run_for(10min);
  CHECK(world.live("train-").size() == 8);
  CHECK_FALSE(world.has_failed());
}

TEST_CASE("A controller that restarts at any moment of a gang's move evicts each pod once, and leaves no half gang") {
  for (const auto moment : {4900ms, 5000ms, 5050ms, 5100ms, 5150ms, 5200ms, 5300ms, 5500ms, 6s + 0ms}) {
    CAPTURE(moment.count());
    GangWorld world;
    world.allow(8);
    world.break_device();
    world.run_for(moment);
    world.restart_controller();
    CHECK(world.run_and_measure(120s) <= 15s);
    CHECK(world.left() == 0);
    CHECK(world.evictions().size() == 8);
  }
}

TEST_CASE("A budget that refuses midway makes a half gang, whose rest goes first when it allows more") {
  GangWorld world;
  world.allow(8);
  (void)world.break_device();
  // The controller hears of the change only when it has begun.
  world.hold(k8s::Kind::PodDisruptionBudget, true);
  world.change_budget(3);
  world.run_for(60s);
  CHECK(world.left() == 5);
  std::size_t half = 0;
  for (const auto& name : world.live("train-")) half += world.says(name, "GangHalf") ? 1U : 0U;
  CHECK(half == 5);
  world.hold(k8s::Kind::PodDisruptionBudget, false);
  world.change_budget(8);
  world.run_for(15min);
  CHECK(world.left() == 0);
  CHECK(world.evictions().size() == 8);
  CHECK(world.live("train-").size() == 8);
}

TEST_CASE("Every pod of a gang reads the same deadline in its notice, and all go at it") {
  GangWorld world;
  world.policy().evict->notice = NoticeRules{.deadline = 2min, .extend_up_to = 0min};
  world.send_policy();
  const auto bad = world.break_device();
  world.run_for(30s);
  std::set<std::string> deadlines;
  for (const auto& name : world.live("train-")) {
    const auto notice = read_notice(text(world.pod(name), {"metadata", "annotations", std::string(kNoticeAnnotation)}));
    REQUIRE(notice);
    CHECK(notice->evict);
    CHECK(notice->gang == "gang train");
    CHECK(notice->with == (name == bad ? "" : bad));
    CHECK(notice->retry == "ignored");
    REQUIRE(notice->deadline);
    deadlines.insert(std::to_string(notice->deadline->time_since_epoch().count()));
  }
  CHECK(deadlines.size() == 1);
  CHECK(world.evictions().empty());
  CHECK(world.run_and_measure(3min) <= 1s);
  CHECK(world.left() == 0);
}

TEST_CASE("A gang whose Job counts losses gets a retry back for each pod before any goes") {
  auto shape = GangWorld::gang_shape();
  shape.ignore_condition.clear();
  shape.backoff_limit = 2;
  JobWorld world(shape);
  world.policy().evict->groups_together = true;
  world.policy().job_retry->max_per_job = 8;
  world.send_policy();
  world.break_device();
  world.run_for(10s);
  CHECK(world.evictions().empty());
  CHECK(world.limit() == 10);
  world.run_for(60s);
  CHECK(world.evictions().size() == 8);
  world.run_for(10min);
  CHECK_FALSE(world.has_failed());
  CHECK(world.live("train-").size() == 8);
}

TEST_CASE("A Job's PodGroup that is disrupted as a whole loses no single pod, and goes whole when the policy says so") {
  auto shape = GangWorld::gang_shape();
  shape.shape.labels = {{"app", "train"}};
  shape.shape.pod_group = "train";
  JobWorld world(shape);
  world.cluster.add_pod_group("default", "train", "all");
  world.run_for(11min);  // the kind was not served before, and is asked for now and then
  const auto bad = world.break_device();
  world.run_for(5min);
  CHECK(world.evictions().empty());
  CHECK(world.says(bad, "GroupIndivisible"));
  world.restart_controller();
  world.run_for(5min);
  CHECK(world.evictions().empty());
  world.policy().evict->groups_together = true;
  world.send_policy();
  world.run_for(30s);
  CHECK(world.evictions().size() == 8);
}

TEST_CASE("Where PodGroups are not served a pod that names one is evicted by itself, and nothing is said of it") {
  auto shape = GangWorld::gang_shape();
  shape.shape.labels = {{"app", "train"}};
  shape.shape.pod_group = "train";
  JobWorld world(shape);
  const auto bad = world.break_device();
  world.run_for(60s);
  CHECK(world.evictions() == std::vector<std::string>{"default/" + bad});
}

TEST_CASE("A gang whose bad devices fit one by one into a cap and not together stays whole until they do") {
  GangWorld world;
  auto& limits = world.whole_policy().limits;
  limits.cap_cluster = {.percent = 0, .at_least = 1};
  limits.cap_node = limits.cap_per_day = limits.cap_owner_per_day = {.percent = 100, .at_least = 100};
  world.hold_caps();
  world.send_policy();
  const auto bad = world.break_device();
  world.cluster.step(world.now);
  REQUIRE_FALSE(bad.empty());
  // Both break before either is known.
  for (const auto& name : world.live("train-")) {
    if (name == bad) continue;
    world.cluster.set_device_health(text(world.pod(name), {"spec", "nodeName"}), world.plugin_device(name),
                                    "Unhealthy");
    break;
  }
  world.run_for(2min);
  CHECK(world.evictions().empty());
  CHECK(world.says(bad, "CapReached"));
  limits.cap_cluster.at_least = 2;
  world.send_policy();
  world.run_for(2min);
  CHECK(world.left() == 0);
}
