// A kubelet with a word for a device's health that is neither Healthy, Unhealthy nor Unknown.
#include <algorithm>

#include <doctest/doctest.h>

#include "tests/support/core/taint_world.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::TaintWorld;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

namespace {

constexpr auto kForGood = "PermanentlyUnhealthy";

/// On an API server that knows the word.
struct LaterWorld : TaintWorld {
  LaterWorld() { cluster.store().serve_health_word(kForGood); }
};

[[nodiscard]] std::string unknown_word(const TaintWorld& world) {
  const auto found = std::ranges::find(world.verdicts(), Reason::HealthWordUnknown, &Verdict::reason);
  return found == world.verdicts().end() ? std::string() : found->subject.name + ": " + found->message;
}

}  // namespace

TEST_CASE("a word that no policy names is shown and moves nobody, and is acted on once a policy names it") {
  LaterWorld world;
  const auto device = world.start_one();
  world.set_health(device, kForGood, "row remapping failed");
  world.run_for(1h);
  CHECK(unknown_word(world).starts_with("gpu.example.com: the kubelet reports PermanentlyUnhealthy (1 device)"));
  CHECK(world.steps().empty());
  world.restart_controller();
  world.run_for(30min);
  CHECK_FALSE(unknown_word(world).empty());
  CHECK(world.steps().empty());
  world.policy().match.health_words = {kForGood};
  world.send_policy();
  world.run_for(2min);
  CHECK(unknown_word(world).empty());
  CHECK(world.steps() == Words{"PATCH rule", "evict"});
  CHECK(world.device_of("s-0") != device);
}

TEST_CASE("a word that no policy names ends no incident, and no step is taken in it before the device is bad again") {
  LaterWorld world;
  world.policy().evict->after = 5min;
  world.send_policy();
  const auto device = world.start_one();
  world.set_health(device, "Unhealthy", "Xid 79");
  world.run_until_tainted(device);
  world.set_health(device, kForGood);
  world.run_for(1h);
  CHECK_FALSE(unknown_word(world).empty());
  CHECK(world.says_of_pod("s-0", "WaitingWhileUnknown"));
  CHECK(world.effect_of(device) == "NoSchedule");
  CHECK(world.evictions().empty());
  world.set_health(device, "Unhealthy", "Xid 79");
  world.run_for(30s);
  CHECK(unknown_word(world).empty());
  CHECK(world.evictions() == Words{"default/s-0"});
}

TEST_CASE("a word that the API server refuses is never seen, and what the kubelet says next is acted on") {
  TaintWorld world;
  world.policy().match.health_words = {kForGood};
  world.send_policy();
  const auto device = world.start_one();
  world.set_health(device, kForGood, "row remapping failed");
  world.run_for(1h);
  CHECK(world.health("s-0") == "Healthy");
  CHECK(unknown_word(world).empty());
  CHECK(world.steps().empty());
  world.set_health(device, "Unhealthy", "Xid 79");
  world.run_for(2min);
  CHECK(world.steps() == Words{"PATCH rule", "evict"});
}
