#include "app/mailbox.h"

#include <atomic>
#include <memory>
#include <thread>

#include <doctest/doctest.h>

using dhc::Mailbox;
using dhc::mono_now;
using dhc::Seconds;

TEST_CASE("a mailbox gives its items in order, as many as are there and no more than asked for") {
  Mailbox<int> box(8);
  const std::stop_token never;
  for (int i = 0; i < 5; ++i) CHECK(box.push(i, never));
  CHECK(box.pop_batch(3, mono_now() + Seconds(5), never) == std::vector{0, 1, 2});
  CHECK(box.pop_batch(3, mono_now() + Seconds(5), never) == std::vector{3, 4});
}

TEST_CASE("a batch is empty at the deadline when nothing arrived") {
  Mailbox<int> box(8);
  CHECK(box.pop_batch(3, mono_now(), {}).empty());
}

TEST_CASE("a full mailbox takes nothing more, and the item stays with its owner") {
  Mailbox<std::unique_ptr<int>> box(1);
  auto first = std::make_unique<int>(1);
  auto second = std::make_unique<int>(2);
  CHECK(box.try_push(first));
  CHECK_FALSE(box.try_push(second));
  CHECK(second != nullptr);
}

TEST_CASE("a full mailbox makes its writer wait until the reader took something") {
  Mailbox<int> box(2);
  std::atomic<bool> all = true;
  std::jthread writer([&](const std::stop_token& stop) {
    for (int i = 0; i < 100; ++i) all = all && box.push(i, stop);
  });
  std::vector<int> got;
  while (got.size() < 100) {
    const auto batch = box.pop_batch(7, mono_now() + Seconds(10), {});
    REQUIRE_FALSE(batch.empty());
    CHECK(batch.size() <= 2);
    got.insert(got.end(), batch.begin(), batch.end());
  }
  writer.join();
  CHECK(all);
  CHECK(got.back() == 99);
}

TEST_CASE("a stop ends a writer that waits for room and a reader that waits for items") {
  Mailbox<int> full(1);
  Mailbox<int> empty(1);
  REQUIRE(full.push(1, {}));
  std::atomic<int> stopped = 0;
  {
    std::jthread writer([&](const std::stop_token& stop) { stopped += full.push(2, stop) ? 0 : 1; });
    std::jthread reader([&](const std::stop_token& stop) { stopped += empty.pop(stop) ? 0 : 1; });
    std::jthread batch_reader([&](const std::stop_token& stop) {
      stopped += empty.pop_batch(1, mono_now() + Seconds(60), stop).empty() ? 1 : 0;
    });
  }
  CHECK(stopped == 3);
}
