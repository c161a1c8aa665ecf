#include "domain/limits/cap_count.h"

#include <doctest/doctest.h>

namespace dhc {

namespace {

const DeviceKey kCard = DeviceKey::plugin("node-a", "example.com/gpu", "GPU-1");

}  // namespace

TEST_CASE("a card that counts for two reasons counts once, until the last of them has gone") {
  CapCount count;
  count.count("node-a", kCard, {.node = true, .cluster = true});
  count.count("node-a", kCard, {.node = false, .cluster = true});
  CHECK(count.on_node("node-a") == 1);
  CHECK(count.in_cluster() == 1);
  count.uncount("node-a", kCard, {.node = true, .cluster = true});
  CHECK(count.on_node("node-a") == 0);
  CHECK(count.in_cluster("node-a") == 1);
  CHECK_FALSE(count.against("node-a", kCard).node);
  CHECK(count.against("node-a", kCard).cluster);
  count.uncount("node-a", kCard, {.node = false, .cluster = true});
  CHECK(count.in_cluster() == 0);
  CHECK_FALSE(count.against("node-a", kCard).cluster);
}

TEST_CASE("what counts against nothing leaves no trace") {
  CapCount count;
  count.count("node-a", kCard, {});
  count.uncount("node-a", kCard, {});
  CHECK(count.in_cluster() == 0);
  CHECK(count.on_node("node-a") == 0);
}

TEST_CASE("a whole node counts as long as one of its devices asks for it") {
  CapCount count;
  count.count_node("node-a");
  count.count_node("node-a");
  count.uncount_node("node-a");
  CHECK(count.whole_nodes().contains("node-a"));
  count.uncount_node("node-a");
  CHECK(count.whole_nodes().empty());
}

TEST_CASE("evictions add up, and the first that has a time is the oldest") {
  CapCount count;
  count.count_evictions(2, WallTime(std::chrono::hours(1)));
  count.count_evictions(3, WallTime(std::chrono::hours(2)));
  count.count_evictions(1);
  CHECK(count.evictions() == 6);
  CHECK(count.first_eviction() == WallTime(std::chrono::hours(1)));
}

}  // namespace dhc
