// A PodGroup that is disrupted only as a whole: all of its pods go, or nobody.
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/controller/eviction/gang_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::minutes;

namespace {

using PodNames = std::vector<std::string>;
const PodNames kAllOfGroup = {"w-0", "w-1", "w-2", "w-3"};

/// The four of `GangStage`, of the PodGroup `train` and no other gang, under a policy that says `groups: Each`.
struct PodGroupStage : GangStage {
  explicit PodGroupStage(bool is_indivisible = true) {
    policy().evict->groups_together = false;
    send_policy();
    for (const auto& pod : kAllOfGroup) join(pod, "train");
    group("train", is_indivisible);
  }

  void join(const std::string& pod, const std::string& group) {
    annotate(pod, kGangMark, "");
    pod_named(pod).pod_group = group;
    pod_named(pod).is_marked = true;
    upsert_pod(pod);
  }

  void group(const std::string& name, bool is_indivisible, const std::string& ns = "default") {
    k8s::PodGroup group;
    group.meta.ns = ns;
    group.meta.name = name;
    group.meta.uid = fmt::format("uid-{}-{}", ns, name);
    group.is_indivisible = is_indivisible;
    put(group);
  }

  void together(bool is_so = true) {
    policy().evict->groups_together = is_so;
    send_policy();
  }
};

}  // namespace

TEST_CASE("No single pod of a PodGroup that is disrupted as a whole is evicted, and the verdict says what to set") {
  PodGroupStage stage;
  CHECK(stage.run_until("12:10:00").empty());
  CHECK(stage.message("w-0", Reason::GroupIndivisible) ==
        "PodGroup train is disrupted only as a whole (disruptionMode: all), and 1 of its 4 pods would go: policy p "
        "says evict.groups: Each");
  CHECK(stage.reasons("w-1").empty());
  stage.together();
  CHECK(stage.run_until("12:10:05") == kAllOfGroup);
}

TEST_CASE("A PodGroup that may be disrupted pod by pod, or that nobody knows, holds none of its pods") {
  SUBCASE("single") {
    PodGroupStage stage(false);
    CHECK(stage.run_until("12:02:00") == PodNames{"w-0"});
  }
  SUBCASE("not known") {
    PodGroupStage stage;
    stage.remove(k8s::Kind::PodGroup, "train");
    CHECK(stage.run_until("12:02:00") == PodNames{"w-0"});
  }
  SUBCASE("one of that name in another namespace") {
    PodGroupStage stage(false);
    stage.group("train", true, "other");
    CHECK(stage.run_until("12:02:00") == PodNames{"w-0"});
  }
  SUBCASE("not served") {
    PodGroupStage stage;
    stage.deliver(k8s::Delivery(k8s::Snapshot{.kind = k8s::Kind::PodGroup, .objects = {}, .served = false}));
    stage.silence(k8s::Kind::PodGroup);
    CHECK(stage.run_until("12:08:00") == PodNames{"w-0"});
  }
}

TEST_CASE("A pod that is held with its PodGroup goes as soon as the group may be split, or is gone, or is it alone") {
  PodGroupStage stage;
  CHECK(stage.run_until("12:05:00").empty());
  SUBCASE("made anew, to be disrupted pod by pod") {
    stage.group("train", false);
    CHECK(stage.run_until("12:05:05") == PodNames{"w-0"});
  }
  SUBCASE("deleted") {
    stage.remove(k8s::Kind::PodGroup, "train");
    CHECK(stage.run_until("12:05:05") == PodNames{"w-0"});
  }
  SUBCASE("the others end") {
    for (const auto* name : {"w-1", "w-2", "w-3"}) stage.remove(k8s::Kind::Pod, name);
    CHECK(stage.run_until("12:05:05") == PodNames{"w-0"});
  }
  SUBCASE("the others are being deleted, or have no node yet") {
    stage.pod_named("w-1").meta.deletion = stage.now().wall;
    stage.pod_named("w-2").meta.deletion = stage.now().wall;
    stage.pod_named("w-3").node_name.clear();
    for (const auto* name : {"w-1", "w-2"}) stage.upsert_pod(name);
    CHECK(stage.run_for(Seconds(5)).empty());
    stage.upsert_pod("w-3");
    CHECK(stage.run_until("12:05:15") == PodNames{"w-0"});
  }
}

TEST_CASE("A PodGroup that is known late, or that a pod joins late, holds from then on") {
  PodGroupStage stage(false);
  CHECK(stage.run_until("12:00:50").empty());
  SUBCASE("the group") { stage.group("train", true); }
  SUBCASE("the pod") {
    stage.join("w-0", "late");
    stage.join("w-1", "late");
    stage.group("late", true);
  }
  CHECK(stage.run_until("12:05:00").empty());
  CHECK(stage.verdict("w-0", Reason::GroupIndivisible) != nullptr);
}

TEST_CASE("A gang that is not all of its PodGroup stays, and one that is more than it goes") {
  PodGroupStage stage;
  stage.together();
  for (const auto* name : {"w-0", "w-1"}) stage.mark(name, "half");
  CHECK(stage.run_until("12:05:00").empty());
  CHECK(stage.message("w-0", Reason::GroupIndivisible) ==
        "PodGroup train is disrupted only as a whole (disruptionMode: all), and 2 of its 4 pods would go: gang half is "
        "not all of it");
  CHECK(stage.verdict("w-1", Reason::GangHeld) != nullptr);
  for (const auto* name : {"w-2", "w-3"}) stage.mark(name, "half");
  CHECK(stage.run_until("12:05:05") == kAllOfGroup);
}

TEST_CASE("What holds one pod of a PodGroup that is to go as a whole holds all, by its own name") {
  PodGroupStage stage;
  stage.together();
  stage.annotate("w-2", kOptOutAnnotation, "true");
  CHECK(stage.run_until("12:05:00").empty());
  CHECK(stage.message("w-0", Reason::OptedOut) ==
        "pod w-2 of PodGroup train: device-health.io/opt-out: \"true\" on the pod");
  CHECK(stage.verdict("w-0", Reason::GroupIndivisible) == nullptr);
}

TEST_CASE("No pod of a PodGroup goes while the watch of PodGroups is silent, pods of none do") {
  PodGroupStage stage(false);
  stage.report("w-0", Health::Healthy);
  CHECK(stage.run_until("12:00:10").empty());
  stage.silence(k8s::Kind::PodGroup);
  stage.run_until("12:04:50");
  stage.report("w-0", Health::Unhealthy);
  stage.pod(
      {.name = "alone", .node = "node-1", .owner = "StatefulSet/a", .device = "gpu-1", .health = Health::Unhealthy});
  CHECK(stage.run_until("12:07:00") == PodNames{"alone"});
  CHECK(stage.verdict("w-0", Reason::ViewTooOld) != nullptr);
  stage.speak(k8s::Kind::PodGroup);
  CHECK(stage.run_for(Seconds(3)) == PodNames{"w-0"});
}

TEST_CASE("An observing controller says GroupIndivisible as well, and after a restart it holds as before") {
  PodGroupStage stage;
  CHECK(stage.run_until("12:02:00").empty());
  stage.restart();
  CHECK(stage.run_until("12:10:00").empty());
  CHECK(stage.verdict("w-0", Reason::GroupIndivisible) != nullptr);
  stage.policy().mode = Mode::Observe;
  stage.send_policy();
  CHECK(stage.run_for(minutes(1)).empty());
  CHECK(stage.verdict("w-0", Reason::GroupIndivisible) != nullptr);
  CHECK(stage.verdict("w-0", Reason::WouldEvict) == nullptr);
}

}  // namespace dhc::test
