#include "domain/history/owner_loss.h"

#include <doctest/doctest.h>

namespace dhc {

namespace {

const DeviceKey kLostTo = DeviceKey::plugin("node-a", "example.com/gpu", "GPU-1");
const DeviceKey kAlsoLostTo = DeviceKey::plugin("node-a", "example.com/gpu", "GPU-2");

TimedLoss loss_of(const std::string& owner, Millis at) {
  return {.at = MonoTime(at), .loss = {.owner_uid = owner, .at = WallTime(at), .holders = {"pod-of-" + owner}}};
}

}  // namespace

TEST_CASE("losses are found by their owner and device, and by the device alone") {
  OwnerLosses losses;
  losses.set(kLostTo, loss_of("b", Seconds(1)));
  losses.set(kLostTo, loss_of("a", Seconds(2)));
  losses.set(kAlsoLostTo, loss_of("a", Seconds(3)));
  REQUIRE(losses.find("a", kLostTo) != nullptr);
  CHECK(losses.find("a", kLostTo)->at == MonoTime(Seconds(2)));
  CHECK(losses.find("b", kAlsoLostTo) == nullptr);
  const auto all = losses.of(kLostTo);
  REQUIRE(all.size() == 2);
  CHECK(all[0]->loss.owner_uid == "a");
  CHECK(all[1]->loss.owner_uid == "b");
  CHECK(losses.of(DeviceKey()).empty());
}

TEST_CASE("a loss is forgotten an hour after the last of its kind") {
  OwnerLosses losses;
  losses.set(kLostTo, loss_of("a", Seconds(0)));
  losses.set(kLostTo, loss_of("a", Seconds(10)));
  losses.set(kAlsoLostTo, loss_of("a", Seconds(20)));
  CHECK(losses.forget(MonoTime(kLossMemory + Seconds(9))).empty());
  CHECK(losses.forget(MonoTime(kLossMemory + Seconds(10))) == std::vector{kLostTo});
  CHECK_FALSE(losses.has_any_of(kLostTo));
  CHECK(losses.has_any_of(kAlsoLostTo));
  CHECK(losses.all().size() == 1);
}

}  // namespace dhc
