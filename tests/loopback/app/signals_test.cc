#include "app/signals.h"

#include <chrono>
#include <csignal>
#include <semaphore>
#include <unistd.h>

#include <doctest/doctest.h>

#include "tests/support/shell/loopback.h"

TEST_CASE("a reload that hangs keeps no SIGTERM waiting") {
  std::binary_semaphore begun(0);
  std::binary_semaphore goes_on(0);
  const dhc::Signals signals([&] {
    begun.release();
    goes_on.acquire();
  });
  REQUIRE(::kill(::getpid(), SIGHUP) == 0);
  REQUIRE(begun.try_acquire_for(std::chrono::seconds(20)));
  REQUIRE(::kill(::getpid(), SIGTERM) == 0);
  CHECK(dhc::test::eventually([&] { return signals.token().stop_requested(); }));
  CHECK(signals.signalled());
  goes_on.release();
}
