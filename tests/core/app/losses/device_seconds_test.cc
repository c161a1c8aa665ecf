#include "app/losses/device_seconds.h"

#include <doctest/doctest.h>

namespace {
using dhc::DeviceKey;
using dhc::DeviceSeconds;
using dhc::LossCause;
using dhc::Millis;
using dhc::MonoTime;
using dhc::Seconds;

const DeviceKey kFirst = DeviceKey::plugin("node-a", "example.com/gpu", "gpu-0");
const DeviceKey kSecond = DeviceKey::plugin("node-a", "example.com/gpu", "gpu-1");

Millis lost(const DeviceSeconds& seconds, LossCause cause) {
  return seconds.lost().at(static_cast<std::size_t>(cause));
}
}  // namespace

TEST_CASE("what is lost is the number of devices times how long it was that number, to the millisecond") {
  DeviceSeconds seconds;
  seconds.advance(MonoTime(Seconds(1000)));
  seconds.set(kFirst, LossCause::UnhealthyHeld);
  seconds.advance(MonoTime(Seconds(1010)));
  seconds.set(kSecond, LossCause::UnhealthyHeld);
  seconds.advance(MonoTime(Seconds(1015)));
  seconds.set(kFirst, LossCause::KeptOff);
  seconds.set(kFirst, LossCause::KeptOff);
  seconds.advance(MonoTime(Seconds(1015) + Millis(1)));
  CHECK(lost(seconds, LossCause::UnhealthyHeld) == Seconds(20) + Millis(1));
  CHECK(lost(seconds, LossCause::KeptOff) == Millis(1));
  CHECK(lost(seconds, LossCause::Quarantine) == Millis(0));
  seconds.set(kFirst, std::nullopt);
  seconds.set(kSecond, std::nullopt);
  seconds.advance(MonoTime(Seconds(9999)));
  CHECK(lost(seconds, LossCause::UnhealthyHeld) == Seconds(20) + Millis(1));
}

TEST_CASE("time that does not pass, or goes back, adds nothing and takes nothing away") {
  DeviceSeconds seconds;
  seconds.set(kFirst, LossCause::Recovering);
  seconds.advance(MonoTime(Seconds(1000)));
  CHECK(lost(seconds, LossCause::Recovering) == Millis(0));
  seconds.advance(MonoTime(Seconds(1001)));
  seconds.advance(MonoTime(Seconds(1001)));
  seconds.advance(MonoTime(Seconds(900)));
  seconds.advance(MonoTime(Seconds(1002)));
  CHECK(lost(seconds, LossCause::Recovering) == Seconds(2));
}

TEST_CASE("a look at all finds those that are lost no more, also those that nobody names") {
  DeviceSeconds seconds;
  seconds.advance(MonoTime(Seconds(1000)));
  seconds.set(kFirst, LossCause::KeptOff);
  seconds.look_at_all({kSecond}, [](const DeviceKey& key) {
    return key == kSecond ? std::optional(LossCause::Quarantine) : std::nullopt;
  });
  CHECK(seconds.devices().at(static_cast<std::size_t>(LossCause::KeptOff)) == 0);
  CHECK(seconds.devices().at(static_cast<std::size_t>(LossCause::Quarantine)) == 1);
}

TEST_CASE("who leads no more loses nothing, and keeps what it has counted") {
  DeviceSeconds seconds;
  seconds.advance(MonoTime(Seconds(1000)));
  seconds.set(kFirst, LossCause::KeptOff);
  seconds.advance(MonoTime(Seconds(1007)));
  seconds.clear();
  seconds.advance(MonoTime(Seconds(5000)));
  CHECK(lost(seconds, LossCause::KeptOff) == Seconds(7));
}
