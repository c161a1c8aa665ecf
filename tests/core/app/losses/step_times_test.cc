#include "app/losses/step_times.h"

#include <doctest/doctest.h>

namespace {
using dhc::Measured;
using dhc::Millis;
using dhc::MonoTime;
using dhc::Now;
using dhc::Seconds;
using dhc::Span;
using dhc::StepTimes;
using dhc::WallTime;

Now at(Millis time) { return {.mono = MonoTime(time), .wall = WallTime(time)}; }
using All = std::vector<Measured>;
}  // namespace

TEST_CASE("a replacement is a pod of the same controller that was made after the eviction and runs") {
  StepTimes times;
  times.evicted("old", "default/web", WallTime(Seconds(100)), WallTime(Seconds(160) + Millis(400)), at(Seconds(161)));
  CHECK(times.take() == All{{Span::ToEviction, Seconds(61)}});
  times.runs("old", "default/web", WallTime(Seconds(170)), at(Seconds(170)));      // the pod itself
  times.runs("other", "default/db", WallTime(Seconds(170)), at(Seconds(170)));     // of another
  times.runs("sibling", "default/web", WallTime(Seconds(159)), at(Seconds(170)));  // it was there before
  CHECK(times.take().empty());
  times.runs("new", "default/web", WallTime(Seconds(160)), at(Seconds(175)));
  CHECK(times.take() == All{{Span::ToReplacement, Seconds(75)}});
  times.runs("newer", "default/web", WallTime(Seconds(180)), at(Seconds(181)));
  CHECK(times.take().empty());
}

TEST_CASE("each pod replaces one, and the first evicted is the first replaced") {
  StepTimes times;
  times.evicted("a", "default/web", WallTime(Seconds(100)), WallTime(Seconds(110)), at(Seconds(110)));
  times.evicted("b", "default/web", WallTime(Seconds(105)), WallTime(Seconds(120)), at(Seconds(120)));
  (void)times.take();
  times.runs("c", "default/web", WallTime(Seconds(121)), at(Seconds(130)));
  times.runs("c", "default/web", WallTime(Seconds(121)), at(Seconds(131)));
  CHECK(times.take() == All{{Span::ToReplacement, Seconds(30)}});
  times.runs("d", "default/web", WallTime(Seconds(122)), at(Seconds(140)));
  CHECK(times.take() == All{{Span::ToReplacement, Seconds(35)}});
  CHECK_FALSE(times.is_waiting());
}

TEST_CASE("a replacement is waited for an hour, and not a millisecond longer") {
  StepTimes times;
  times.evicted("a", "default/web", WallTime(Seconds(0)), WallTime(Seconds(10)), at(Seconds(10)));
  times.evicted("b", "default/db", WallTime(Seconds(0)), WallTime(Seconds(10)), at(Seconds(10)));
  (void)times.take();
  times.runs("c", "default/web", WallTime(Seconds(20)), at(Seconds(3610)));
  CHECK(times.take().size() == 1);
  times.runs("d", "default/db", WallTime(Seconds(20)), at(Seconds(3610) + Millis(1)));
  CHECK(times.take().empty());
  times.forget(at(Seconds(3610)));
  CHECK(times.is_waiting());
  times.forget(at(Seconds(3610) + Millis(1)));
  CHECK_FALSE(times.is_waiting());
}

TEST_CASE("the time between incidents is that of one node, from the last that is known") {
  StepTimes times;
  times.recall("node-a", WallTime(Seconds(500)));
  times.recall("node-a", WallTime(Seconds(200)));
  times.opened("node-b", at(Seconds(900)));
  CHECK(times.take().empty());
  times.opened("node-a", at(Seconds(1000)));
  CHECK(times.take() == All{{Span::NodeInterval, Seconds(500)}});
  times.opened("node-a", at(Seconds(1000)));
  CHECK(times.take().empty());
  times.opened("node-a", at(Seconds(1010)));
  CHECK(times.take() == All{{Span::NodeInterval, Seconds(10)}});
}

TEST_CASE("what nobody takes is bounded, and a clock that was set back makes no time before nothing") {
  StepTimes times;
  times.measure(Span::ToTaint, WallTime(Seconds(100)), at(Seconds(50)));
  CHECK(times.take() == All{{Span::ToTaint, Millis(0)}});
  for (std::size_t i = 0; i < StepTimes::kMost + 10; ++i) {
    times.evicted(std::to_string(i), "default/web", WallTime(Seconds(1)), WallTime(Seconds(2)), at(Seconds(2)));
  }
  CHECK(times.take().size() == StepTimes::kMost);
  CHECK(times.counts().at(static_cast<std::size_t>(Span::ToEviction)) == StepTimes::kMost + 10);
}
