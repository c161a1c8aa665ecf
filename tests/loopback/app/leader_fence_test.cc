#include "app/leader_fence.h"

#include <doctest/doctest.h>

namespace {
using dhc::LeaderFence;
using dhc::Millis;
using dhc::Seconds;

dhc::k8s::LeaseTerm term_of(Millis begin, Millis end) {
  return {.begin_until = dhc::k8s::boot_now() + begin, .end_by = dhc::k8s::boot_now() + end};
}
}  // namespace

TEST_CASE("the fence is closed before any term, after one that has ended, and when it is told so") {
  LeaderFence fence;
  dhc::k8s::Request request;
  const auto refusal = fence.admit(request);
  REQUIRE_FALSE(refusal);
  CHECK(refusal.error().kind == dhc::ErrorKind::Cancelled);
  fence.set(term_of(Seconds(60), Seconds(64)));
  CHECK(fence.admit(request));
  fence.set(term_of(Millis(0), Seconds(4)));
  CHECK_FALSE(fence.admit(request));
  fence.set(term_of(Seconds(60), Seconds(64)));
  fence.set(std::nullopt);
  CHECK_FALSE(fence.admit(request));
}

TEST_CASE("a request gets no more time than the term leaves, and never more than it asked for") {
  LeaderFence fence;
  fence.set(term_of(Seconds(10), Seconds(14)));
  for (const auto asked :
       {std::optional<Millis>(Seconds(35)), std::optional<Millis>(), std::optional<Millis>(Seconds(3))}) {
    dhc::k8s::Request request;
    request.timeouts.total = asked;
    REQUIRE(fence.admit(request));
    REQUIRE(request.timeouts.total);
    CHECK(request.timeouts.end_by);
    CHECK(*request.timeouts.total <= std::min(asked.value_or(Seconds(14)), Millis(Seconds(14))));
    CHECK(*request.timeouts.total > Seconds(2));
  }
}

TEST_CASE("a machine that slept finds the fence closed: the clock is one that goes on") {
  dhc::MonoTime now{Seconds(1000)};
  LeaderFence fence([&] { return now; });
  fence.set(dhc::k8s::LeaseTerm{.begin_until = now + Seconds(10), .end_by = now + Seconds(14)});
  dhc::k8s::Request request;
  CHECK(fence.admit(request));
  now += Seconds(10);
  const auto refusal = fence.admit(request);
  REQUIRE_FALSE(refusal);
  CHECK(refusal.error().kind == dhc::ErrorKind::Cancelled);
}
