// Of how many cards a share is taken, while what is listed comes and goes.
#include "domain/cluster/card_counts.h"

#include <chrono>
#include <string>

#include <doctest/doctest.h>

#include "domain/cluster/world.h"
#include "domain/limits/brake.h"

namespace dhc {

namespace {

using std::chrono::hours;
using std::chrono::minutes;

const std::string kResource = "example.com/gpu";
const std::string kDriver = "gpu.example.com";

Now tick(Millis since) {
  const WallTime noon = std::chrono::sys_days(std::chrono::year(2026) / 11 / 20) + hours(12);
  return {.mono = MonoTime(hours(100)) + since, .wall = noon + since};
}

/// One node with one plugin, and a controller that began ten minutes ago.
struct OnePlugin {
  CardCounts counts;
  explicit OnePlugin(std::int64_t cards) {
    list(cards, -kCardProof);
    counts.settle(tick(-kCardProof));
    counts.settle(tick(Millis(0)));
  }
  void list(std::int64_t cards, Millis at, std::int64_t replicas = 1) {
    counts.note_node("node-a", {{kResource, {.cards = cards, .replicas = replicas}}}, tick(at));
  }
  std::int64_t known(Millis at) {
    counts.settle(tick(at));
    return now().known;
  }
  [[nodiscard]] CardCount now(const std::string& node = "node-a") const {
    const auto here = counts.of(DeviceKey::Source::Plugin, kResource, node);
    CHECK(counts.of(DeviceKey::Source::Plugin, kResource, "").known == here.known);
    CHECK(counts.of(DeviceKey::Source::Dra, kResource, node).known == 0);
    return here;
  }
};

k8s::ResourceClaim claim_on(const std::string& pool) {
  k8s::ResourceClaim claim;
  claim.meta.ns = "default";
  claim.meta.name = "c";
  claim.meta.uid = "uid-c";
  claim.allocated = true;
  claim.results = {{.request = "gpu", .driver = kDriver, .pool = pool, .device = "gpu-0"}};
  return claim;
}

k8s::ResourceSlice slice_of(int devices, const std::string& node = "node-a", const std::string& pool = "rack-1") {
  k8s::ResourceSlice slice;
  slice.meta.name = "slice-" + pool;
  slice.meta.uid = "uid-" + pool;
  slice.driver = kDriver;
  slice.pool = pool;
  slice.generation = 1;
  slice.node_name = node;
  for (int i = 0; i < devices; ++i) slice.devices.push_back({.name = "gpu-" + std::to_string(i), .taints = {}});
  return slice;
}

k8s::Node node_a() {
  k8s::Node node;
  node.meta.name = "node-a";
  node.meta.uid = "uid-node-a";
  return node;
}

std::int64_t known_of_driver(const World& world, const std::string& node = "node-a") {
  return world.cards().of(DeviceKey::Source::Dra, kDriver, node).known;
}

}  // namespace

TEST_CASE("Cards count once they have been listed for ten minutes, and not a millisecond earlier") {
  OnePlugin one(8);
  one.list(10'000, Seconds(1));
  CHECK(one.counts.next_change_at() == tick(Seconds(1) + kCardProof).mono);
  CHECK(one.known(Seconds(1) + kCardProof - Millis(1)) == 8);
  CHECK(one.now().there == 10'000);
  CHECK(one.known(Seconds(1) + kCardProof) == 10'000);
  CHECK(one.counts.next_change_at() == std::nullopt);
}

TEST_CASE("A list of a moment never counts, however often it comes") {
  OnePlugin one(8);
  for (int i = 0; i < 100; ++i) {
    const Millis begin = i * (kCardProof + Seconds(1));
    one.list(10'000, begin);
    CHECK(one.known(begin + kCardProof - Millis(1)) == 8);
    one.list(8, begin + kCardProof - Millis(1));
    CHECK(one.known(begin + kCardProof) == 8);
  }
  CHECK(one.counts.next_change_at() == std::nullopt);
}

TEST_CASE("Of a list that grows and shrinks the least that stood for ten minutes counts") {
  OnePlugin one(8);
  one.list(16, Millis(0));
  one.list(10'000, minutes(1));
  one.list(12, minutes(2));
  one.list(64, minutes(3));
  CHECK(one.known(kCardProof) == 12);
  CHECK(one.known(2 * kCardProof - Millis(1)) == 12);
  CHECK(one.known(2 * kCardProof) == 64);
}

TEST_CASE("Cards that are listed no more count for another day, to the millisecond") {
  OnePlugin one(8);
  one.list(0, Millis(0));
  CHECK(one.known(kCardMemory - Millis(1)) == 8);
  CHECK(one.counts.next_change_at() == tick(kCardMemory).mono);
  CHECK(one.known(kCardMemory) == 0);
  CHECK(one.counts.next_change_at() == std::nullopt);
}

TEST_CASE("The day begins anew with each list of all cards, and what was listed within it counts after it") {
  OnePlugin one(8);
  one.list(0, Millis(0));
  one.list(8, hours(23));
  one.list(2, hours(23) + Seconds(1));
  one.list(6, hours(30));
  one.list(1, hours(31));
  CHECK(one.known(hours(47)) == 8);
  CHECK(one.known(hours(47) + Seconds(1)) == 6);
  CHECK(one.known(hours(71)) == 6);
  CHECK(one.known(hours(71) + Seconds(1)) == 1);
}

TEST_CASE("What stands at the start counts at once, and until ten minutes have passed only while it is listed") {
  CardCounts counts;
  const CardLister lister{.source = DeviceKey::Source::Plugin, .place = "node-a", .scope = kResource};
  const auto known = [&] { return counts.of(lister.source, kResource, "").known; };
  counts.note(lister, "node-a", {.cards = 10'000}, tick(Millis(0)));
  counts.note(lister, "node-a", {.cards = 9'000}, tick(Millis(0)));
  counts.settle(tick(Millis(0)));
  CHECK(known() == 9'000);
  SUBCASE("to the millisecond") {
    counts.note(lister, "node-a", {.cards = 8}, tick(kCardProof - Millis(1)));
    CHECK(known() == 8);
  }
  SUBCASE("and after that for a day") {
    counts.note(lister, "node-a", {.cards = 8}, tick(kCardProof));
    CHECK(known() == 9'000);
    counts.settle(tick(kCardProof + kCardMemory));
    CHECK(known() == 8);
  }
}

TEST_CASE("What turns out to be replicas of one card counts as one card at once") {
  OnePlugin one(32);
  one.list(8, Seconds(1), 4);
  CHECK(one.known(Seconds(1)) == 8);
  SUBCASE("also while nothing is listed") {
    OnePlugin away(32);
    away.list(0, Seconds(1));
    away.list(0, Seconds(2), 4);
    CHECK(away.known(Seconds(2)) == 8);
    CHECK(away.known(Seconds(1) + kCardMemory) == 0);
  }
}

TEST_CASE("What pods are said to hold is there, and counts once it has been said for as long as a list must stand") {
  OnePlugin one(8);
  const auto hold = [&](std::int64_t cards, Millis at) {
    one.counts.note_node("node-a", {{kResource, {.cards = 8, .replicas = 1, .held = cards}}}, tick(at));
  };
  hold(10'000, Seconds(1));
  CHECK(one.now().known == 8);
  CHECK(one.now().there == 10'000);
  SUBCASE("for a moment") {
    hold(2, Seconds(2));
    CHECK(one.known(Seconds(1) + kCardProof) == 8);
    CHECK(one.now().there == 8);
  }
  SUBCASE("for long enough") {
    CHECK(one.known(Seconds(1) + kCardProof - Millis(1)) == 8);
    CHECK(one.known(Seconds(1) + kCardProof) == 10'000);
  }
}

TEST_CASE("A resource that its node no longer names is remembered for a day, and a node that is gone not at all") {
  OnePlugin one(8);
  one.counts.note_node("node-a", {}, tick(Millis(0)));
  CHECK(one.known(kCardMemory - Millis(1)) == 8);
  SUBCASE("a day") { CHECK(one.known(kCardMemory) == 0); }
  SUBCASE("gone") {
    one.counts.forget_node("node-a");
    CHECK(one.now().there == 0);
    CHECK(one.counts.next_change_at() == std::nullopt);
  }
}

TEST_CASE("A driver's pool counts by the same rule, and another node's begins anew") {
  World world;
  world.apply(k8s::Upsert{node_a()}, tick(Millis(0)));
  world.apply(k8s::Upsert{slice_of(8)}, tick(Millis(0)));
  world.refresh(tick(Millis(0)));
  CHECK(known_of_driver(world) == 8);
  world.apply(k8s::Upsert{slice_of(100, "node-a", "rack-2")}, tick(kCardProof));
  world.refresh(tick(kCardProof));
  CHECK(world.next_change_at(tick(kCardProof)) == tick(2 * kCardProof).mono);
  world.refresh(tick(2 * kCardProof - Millis(1)));
  CHECK(known_of_driver(world) == 8);
  world.refresh(tick(2 * kCardProof));
  CHECK(known_of_driver(world) == 108);
  CHECK(known_of_driver(world, "") == 108);
  auto other = node_a();
  other.meta.name = "node-b";
  world.apply(k8s::Upsert{other}, tick(2 * kCardProof));
  world.apply(k8s::Remove{.kind = k8s::Kind::Node, .ns = {}, .name = "node-a", .uid = "uid-node-a"},
              tick(2 * kCardProof));
  world.apply(k8s::Upsert{slice_of(100, "node-b", "rack-2")}, tick(2 * kCardProof));
  world.refresh(tick(2 * kCardProof));
  CHECK(known_of_driver(world, "node-b") == 0);
}

TEST_CASE("A pool that nobody has published for a day is forgotten, but not while a claim holds a device of it") {
  for (const bool is_held : {false, true}) {
    CAPTURE(is_held);
    World world;
    world.apply(k8s::Upsert{node_a()}, tick(Millis(0)));
    world.apply(k8s::Upsert{slice_of(8)}, tick(Millis(0)));
    world.refresh(tick(Millis(0)));
    if (is_held) {
      world.apply(k8s::Upsert{claim_on("rack-1")}, tick(Millis(0)));
    }
    const auto gone = minutes(20);
    world.apply(k8s::Remove{.kind = k8s::Kind::ResourceSlice, .ns = {}, .name = "slice-rack-1", .uid = "uid-rack-1"},
                tick(gone));
    world.refresh(tick(gone));
    CHECK(world.next_change_at(tick(gone)) == tick(gone + kCardMemory).mono);
    world.refresh(tick(gone + kCardMemory - Millis(1)));
    CHECK(known_of_driver(world) == 8);
    CHECK(world.inventory().pools().size() == 1);
    world.refresh(tick(gone + kCardMemory));
    CHECK(known_of_driver(world) == 0);
    CHECK(world.inventory().pools().size() == (is_held ? 1 : 0));
  }
}

namespace {

/// A pool of two slices with four devices each.
k8s::ResourceSlice half_of_pool(int half, std::int64_t generation) {
  auto slice = slice_of(0);
  slice.meta.name = slice.meta.name + std::to_string(half);
  slice.meta.uid = slice.meta.uid + std::to_string(half);
  slice.generation = generation;
  slice.pool_slices = 2;
  for (int i = 0; i < 4; ++i) slice.devices.push_back({.name = "gpu-" + std::to_string(4 * half + i), .taints = {}});
  return slice;
}

void show(World& world, k8s::Object object, Millis at) {
  world.apply(k8s::Upsert{std::move(object)}, tick(at));
  world.refresh(tick(at));
}

std::int64_t cards_of_pool(const World& world) { return world.inventory().pools().at({kDriver, "rack-1"}).cards; }

}  // namespace

TEST_CASE("A pool of several slices counts whole, however often and in whatever order it is published again") {
  for (const bool overlaps : {false, true}) {
    CAPTURE(overlaps);
    World world;
    world.apply(k8s::Upsert{node_a()}, tick(Millis(0)));
    for (const int half : {0, 1}) world.apply(k8s::Upsert{half_of_pool(half, 1)}, tick(Millis(0)));
    world.refresh(tick(Millis(0)));
    CHECK(known_of_driver(world) == 8);
    for (int i = 1; i <= 12; ++i) {
      const Millis at = i * minutes(5);
      show(world, half_of_pool(0, i + 1), at);
      CHECK(known_of_driver(world) == 8);
      // The other half follows a second later, or not before the next generation has begun.
      show(world, half_of_pool(1, overlaps ? i : i + 1), at + Seconds(1));
      CHECK(known_of_driver(world) == 8);
    }
  }
}

TEST_CASE("What a whole generation no longer has is not listed, though its slice of an older one still stands") {
  World world;
  world.apply(k8s::Upsert{node_a()}, tick(Millis(0)));
  for (const int half : {0, 1}) show(world, half_of_pool(half, 1), Millis(0));
  auto whole = half_of_pool(0, 2);
  show(world, whole, Seconds(1));
  CHECK(cards_of_pool(world) == 8);
  whole.generation = 3;
  whole.pool_slices = 1;
  show(world, whole, Seconds(2));
  CHECK(cards_of_pool(world) == 4);
  whole.generation = 4;
  whole.pool_slices = 0;  // as an older client may write it
  show(world, whole, Seconds(3));
  CHECK(cards_of_pool(world) == 4);
}

TEST_CASE("Slices of another node that claims the pool are no part of a generation that is not whole") {
  World world;
  world.apply(k8s::Upsert{node_a()}, tick(Millis(0)));
  show(world, half_of_pool(0, 1), Millis(0));
  auto rogue = half_of_pool(1, 1);
  rogue.node_name = "node-x";
  show(world, rogue, Millis(0));
  CHECK(cards_of_pool(world) == 4);
}

TEST_CASE("The cards of a node that is made anew within one turn have yet to be proven") {
  for (const bool is_removed : {false, true}) {
    CAPTURE(is_removed);
    World world;
    auto node = node_a();
    node.boot_id = "boot-1";
    node.capacity = {{kResource, 8}};
    world.apply(k8s::Upsert{node}, tick(Millis(0)));
    show(world, slice_of(8), Millis(0));
    const auto of_plugin = [&] { return world.cards().of(DeviceKey::Source::Plugin, kResource, "node-a"); };
    world.refresh(tick(minutes(20)));
    CHECK(of_plugin().known == 8);
    CHECK(known_of_driver(world) == 8);
    if (is_removed) {
      world.apply(k8s::Remove{.kind = k8s::Kind::Node, .ns = {}, .name = "node-a", .uid = "uid-node-a"},
                  tick(minutes(20)));
    }
    node.meta.uid = "another";
    show(world, node, minutes(20));
    CHECK(of_plugin().known == 0);
    CHECK(of_plugin().there == 8);
    CHECK(known_of_driver(world) == 0);
    world.refresh(tick(minutes(20) + kCardProof));
    CHECK(of_plugin().known == 8);
    CHECK(known_of_driver(world) == 8);
  }
}

TEST_CASE("The pool of a node that is gone lists no cards, though an incident guards it") {
  World world;
  world.apply(k8s::Upsert{node_a()}, tick(Millis(0)));
  show(world, slice_of(8), Millis(0));
  world.note_guarded_pools({{kDriver, "rack-1"}});
  world.refresh(tick(minutes(20)));
  world.apply(k8s::Remove{.kind = k8s::Kind::ResourceSlice, .ns = {}, .name = "slice-rack-1", .uid = "uid-rack-1"},
              tick(minutes(21)));
  world.refresh(tick(minutes(21)));
  CHECK(known_of_driver(world, "") == 8);
  world.apply(k8s::Remove{.kind = k8s::Kind::Node, .ns = {}, .name = "node-a", .uid = "uid-node-a"}, tick(minutes(22)));
  world.refresh(tick(minutes(22)));
  CHECK(world.inventory().pools().size() == 1);
  CHECK(known_of_driver(world, "") == 0);
}

TEST_CASE("Of pools that change their names the last ones are remembered, and those in use") {
  World world;
  world.apply(k8s::Upsert{node_a()}, tick(Millis(0)));
  world.apply(k8s::Upsert{claim_on("rack-0")}, tick(Millis(0)));
  for (int i = 0; i < 300; ++i) {
    const auto pool = "rack-" + std::to_string(i);
    show(world, slice_of(1, "node-a", pool), i * minutes(1));
    world.apply(k8s::Remove{.kind = k8s::Kind::ResourceSlice, .ns = {}, .name = "slice-" + pool, .uid = "uid-" + pool},
                tick(i * minutes(1) + Seconds(30)));
    world.refresh(tick(i * minutes(1) + Seconds(30)));
  }
  const auto& pools = world.inventory().pools();
  CHECK(pools.size() == 65);
  CHECK(pools.contains({kDriver, "rack-0"}));
  CHECK(pools.contains({kDriver, "rack-299"}));
  CHECK_FALSE(pools.contains({kDriver, "rack-1"}));
}

TEST_CASE("A node that has listed a resource for a moment is no node with it, of which the brake takes a share") {
  World world;
  const auto list = [&](const std::string& name, std::int64_t cards, Millis at) {
    auto node = node_a();
    node.meta.name = name;
    node.meta.uid = "uid-" + name;
    node.boot_id = "boot-1";
    node.capacity = {{kResource, cards}};
    world.apply(k8s::Upsert{node}, tick(at));
  };
  const auto nodes_at = [&](Millis at) {
    world.refresh(tick(at));
    return known_cards(world, {.scope = kResource, .node = {}, .nodes = true});
  };
  for (const auto* name : {"node-a", "node-b", "node-c"}) list(name, 8, Millis(0));
  CHECK(nodes_at(Millis(0)) == 3);
  list("liar", 8, minutes(20));
  CHECK(nodes_at(minutes(20)) == 3);
  list("liar", 0, minutes(21));
  CHECK(nodes_at(minutes(21)) == 3);
  list("node-a", 0, minutes(21));
  CHECK(nodes_at(minutes(22)) == 3);
  list("liar", 8, minutes(22));
  CHECK(nodes_at(minutes(22)) == 3);
  CHECK(nodes_at(minutes(22) + kCardProof) == 4);
}

}  // namespace dhc
