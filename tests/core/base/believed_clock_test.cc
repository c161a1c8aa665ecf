#include "base/believed_clock.h"

#include <doctest/doctest.h>

using namespace dhc;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

/// A machine's two clocks.
struct Machine {
  MonoTime mono{hours(5)};
  WallTime wall{hours(400'000)};
  BelievedClock clock;

  Now raw() const { return {.mono = mono, .wall = wall}; }
  void pass(Millis time) {
    mono += time;
    wall += time;
  }
  WallTime believed() { return clock.take(raw()).wall; }
  /// How far what is believed is ahead of the machine's clock.
  Millis ahead() { return std::chrono::duration_cast<Millis>(believed() - wall); }
};

Machine settled() {
  Machine machine;
  (void)machine.clock.take(machine.raw());
  machine.clock.settle();
  return machine;
}

}  // namespace

TEST_CASE("a clock that is corrected by minutes is believed at once, to the microsecond") {
  auto machine = settled();
  for (const auto by : {Millis(1), Millis(-1), Millis(minutes(5)), Millis(-minutes(5))}) {
    machine.pass(Seconds(1));
    machine.wall += by;
    CHECK(machine.ahead() == Millis(0));
    CHECK(machine.clock.at(machine.raw()).wall == machine.wall);
  }
}

TEST_CASE("a clock that is set is believed when that has stood for a minute and the server agrees") {
  for (const auto by : {Millis(hours(25)), Millis(-hours(25)), BelievedClock::kApart + Millis(1)}) {
    auto machine = settled();
    machine.wall += by;
    CHECK(machine.ahead() == -by);
    machine.clock.server_is_ahead(Millis(0), machine.raw());
    machine.pass(minutes(1) - Millis(1));
    CHECK(machine.ahead() == -by);
    machine.pass(Millis(1));
    CHECK(machine.ahead() == Millis(0));
  }
}

TEST_CASE("a clock that is set for a moment is never believed") {
  auto machine = settled();
  machine.wall += hours(25);
  CHECK(machine.ahead() == -hours(25));
  machine.clock.server_is_ahead(Millis(0), machine.raw());
  machine.pass(Seconds(59));
  CHECK(machine.ahead() == -hours(25));
  machine.wall -= hours(25);
  CHECK(machine.ahead() == Millis(0));
  machine.pass(minutes(2));
  machine.wall += hours(25);
  CHECK(machine.ahead() == -hours(25));
}

TEST_CASE("a clock that is set and that the server contradicts is not believed, however long that lasts") {
  auto machine = settled();
  machine.wall += hours(25);
  CHECK(machine.ahead() == -hours(25));
  machine.clock.server_is_ahead(-hours(25), machine.raw());
  for (int day = 0; day < 3; ++day) {
    machine.pass(hours(24));
    CHECK(machine.ahead() == -hours(25));
    CHECK(machine.clock.server_ahead() == Millis(0));
  }
  // It is set right, by somebody who also sets the server's.
  machine.clock.server_is_ahead(Millis(0), machine.raw());
  machine.pass(minutes(1));
  CHECK(machine.ahead() == Millis(0));
}

TEST_CASE("a step about which the server says nothing is believed after an hour") {
  auto machine = settled();
  machine.wall += hours(3);
  CHECK(machine.ahead() == -hours(3));
  machine.pass(hours(1) - Millis(1));
  CHECK(machine.ahead() == -hours(3));
  machine.pass(Millis(1));
  CHECK(machine.ahead() == Millis(0));
}

TEST_CASE("each step has to stand for its own time") {
  auto machine = settled();
  machine.wall += hours(3);
  CHECK(machine.ahead() == -hours(3));
  machine.pass(minutes(59));
  machine.wall += hours(25);
  CHECK(machine.ahead() == -hours(28));
  machine.pass(minutes(1));
  CHECK(machine.ahead() == -hours(28));
  machine.pass(minutes(59) - Millis(1));
  CHECK(machine.ahead() == -hours(28));
  machine.pass(Millis(1));
  CHECK(machine.ahead() == Millis(0));
}

TEST_CASE("a process begins with the server's clock where ours is apart from it, and goes on with that") {
  Machine machine;
  (void)machine.clock.take(machine.raw());
  machine.clock.server_is_ahead(-hours(25), machine.raw());
  CHECK(machine.ahead() == -hours(25));
  CHECK(machine.clock.server_ahead() == Millis(0));
  machine.clock.settle();
  for (int hour = 0; hour < 24 * 7; ++hour) {
    machine.pass(hours(1));
    CHECK(machine.ahead() == -hours(25));
  }
  // What is no more than a drift is corrected for where times of the server are read.
  Machine near;
  near.clock.server_is_ahead(minutes(4), near.raw());
  CHECK(near.ahead() == Millis(0));
  CHECK(near.clock.server_ahead() == minutes(4));
}

TEST_CASE("what the server says of a clock that has run all along changes nothing of it") {
  auto machine = settled();
  machine.clock.server_is_ahead(-hours(25), machine.raw());
  machine.pass(hours(2));
  CHECK(machine.ahead() == Millis(0));
  CHECK(machine.clock.server_ahead() == -hours(25));
}

TEST_CASE("clocks that run a little apart are as far apart as they were until that is a second") {
  auto machine = settled();
  machine.clock.server_is_ahead(Millis(1499), machine.raw());
  (void)machine.believed();
  CHECK(machine.clock.server_ahead() == Millis(1499));
  for (int i = 0; i < 9; ++i) {
    machine.pass(Seconds(1));
    machine.wall -= Millis(100);
    (void)machine.believed();
    CHECK(machine.clock.server_ahead() == Millis(1499));
  }
  machine.wall -= Millis(100);
  (void)machine.believed();
  CHECK(machine.clock.server_ahead() == Millis(2499));
}
