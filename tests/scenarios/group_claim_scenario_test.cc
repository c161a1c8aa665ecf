// A claim that is reserved for a PodGroup: its holders are the pods that name it, and no eviction of theirs frees it.
#include <doctest/doctest.h>

#include "tests/support/core/drivers_world.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::Drivers;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

namespace {

/// Two workers share a claim that is their PodGroup's, and a coordinator of the group holds no device.
struct GroupClaimWorld : Drivers {
  explicit GroupClaimWorld(const std::string& mode = "all") {
    policy().evict->shared_claims_together = true;
    send_policy();
    cluster.add_pod_group("default", "train", mode, "shared");
    cluster.create_claim("default", "shared", kDriver, 1);
    PodShape coordinator;
    coordinator.pod_group = "train";
    PodShape worker = coordinator;
    worker.shared_claim = "shared";
    cluster.create_stateful_set("default", "worker", 2, worker);
    cluster.create_stateful_set("default", "coordinator", 1, coordinator);
    run_for(11min);  // the kind was not served before, and is asked for now and then
    REQUIRE(text(claim(), {"status", "allocation", "devices", "results"}).empty());
    device = std::string(kDriver) + "/" + node_of("worker-0") + "/" + dra_device("worker-0");
  }
  [[nodiscard]] Json claim() const { return object(Res::Claims, "shared"); }
  [[nodiscard]] std::string pod_message(const std::string& name, Reason reason) const {
    for (const auto& verdict : verdicts()) {
      if (verdict.subject.name == name && verdict.reason == reason) return verdict.message;
    }
    return {};
  }

  std::string device;
};

}  // namespace

TEST_CASE("pods of a claim that is their group's are told, and no more when the device is well") {
  GroupClaimWorld world;
  REQUIRE(list(world.claim(), {"status", "reservedFor"}).size() == 1);
  REQUIRE(text(list(world.claim(), {"status", "reservedFor"})[0], {"resource"}) == "podgroups");
  world.set_health(world.device, "Unhealthy", "Xid 79");
  world.run_for(30min);
  for (const auto* name : {"worker-0", "worker-1"}) {
    CHECK(world.pod_message(name, Reason::SharedClaim).contains("is reserved for PodGroup train, which keeps it"));
    CHECK(world.conditions(name) == Words{"True"});
  }
  CHECK(world.effect_of(world.device) == "NoSchedule");
  world.restart_controller();
  world.run_for(30min);
  CHECK(world.evictions().empty());
  world.set_health(world.device, "Healthy");
  world.run_for(12min);
  for (const auto* name : {"worker-0", "worker-1", "coordinator-0"}) CHECK(world.reasons(name).empty());
  CHECK(world.conditions("worker-0") == Words{"True", "False"});
  CHECK(world.rule_for(world.device).is_null());
  CHECK(world.evictions().empty());
}

TEST_CASE(
    "pods of a claim that is their group's are not evicted in vain: it keeps its device until the group is gone") {
  for (const std::string mode : {"all", "single"}) {
    CAPTURE(mode);
    GroupClaimWorld world(mode);
    world.policy().evict->groups_together = mode == "all";
    world.send_policy();
    world.set_health(world.device, "Unhealthy", "Xid 79");
    world.run_for(30min);
    for (const auto* name : {"worker-0", "worker-1"})
      CHECK(world.pod_message(name, Reason::SharedClaim).contains("is reserved for PodGroup train, which keeps it"));
    CHECK(world.evictions().empty());
    // What the words ask for moves them: nothing else would have.
    for (const auto* name : {"worker-0", "worker-1", "coordinator-0"})
      world.cluster.kubectl_delete(Res::Pods, "default", name);
    world.run_for(2min);
    CHECK(world.device ==
          std::string(Drivers::kDriver) + "/" + world.node_of("worker-0") + "/" + world.dra_device("worker-0"));
    CHECK(world.evictions().empty());
  }
}
