#include "base/wake_queue.h"

#include <string>

#include <doctest/doctest.h>

namespace dhc {

namespace {

MonoTime minute(int count) { return MonoTime(std::chrono::minutes(count)); }

}  // namespace

TEST_CASE("a wake queue finds what is due, and what comes next") {
  WakeQueue<std::string> queue;
  queue.note("b", minute(3));
  queue.note("a", minute(2));
  queue.note("c", minute(5));
  CHECK(queue.due(minute(1)).empty());
  CHECK(queue.due(minute(3)) == std::vector<std::string>{"a", "b"});
  CHECK(queue.next_after(minute(1)) == minute(2));
  // What is due changes nothing any more by time alone.
  CHECK(queue.next_after(minute(3)) == minute(5));
  CHECK_FALSE(queue.next_after(minute(5)));
}

TEST_CASE("a wake queue keeps one time of each key: the earlier that is noted, or the one that is set") {
  WakeQueue<std::string> queue;
  queue.note("a", minute(5));
  queue.note("a", minute(2));
  queue.note("a", minute(9));
  CHECK(queue.next_after(minute(0)) == minute(2));
  CHECK_FALSE(queue.next_after(minute(2)));
  queue.set("a", minute(7));
  CHECK(queue.due(minute(6)).empty());
  CHECK(queue.next_after(minute(0)) == minute(7));
  queue.erase("a");
  queue.erase("never there");
  CHECK_FALSE(queue.next_after(minute(0)));
  CHECK(queue.due(minute(99)).empty());
  CHECK_FALSE(queue.contains("a"));
}

}  // namespace dhc
