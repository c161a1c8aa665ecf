#include "domain/cluster/room.h"

#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace {

using namespace dhc;
using Names = std::vector<std::string>;

const std::string kGpu = "example.com/gpu";
const std::string kDriver = "gpu.example.com";

Names names_of(const Room::Nodes& nodes) {
  Names names;
  for (const auto& [name, pools] : nodes) names.push_back(name);
  return names;
}

/// A room in which pods on one node ask for so many devices of those that it has.
struct Rented : Room {
  void look(const std::string& name, std::int64_t capacity, std::int64_t allocatable, HeldDevices held) {
    k8s::Node node;
    node.meta.name = name;
    node.capacity = {{kGpu, capacity}};
    node.allocatable = {{kGpu, allocatable}};
    NodeBook book;
    book.update(&node, {{kGpu, held}}, {});
    note_node(name, &node, book);
  }
  [[nodiscard]] Names nodes() const { return names_of(with_resource(kGpu)); }
};

/// The pools of one driver, each of one slice, and what claims hold of them.
struct Published : Room {
  void publish(const std::string& pool, const std::string& node, const std::set<std::string>& devices) {
    k8s::ResourceSlice slice;
    slice.meta.uid = slice.meta.name = "slice-" + pool;
    slice.driver = kDriver;
    slice.pool = pool;
    slice.node_name = node;
    slice.generation = ++generation;
    slice.pool_slices = 1;
    for (const auto& name : devices) slice.devices.push_back({.name = name, .taints = {}});
    if (!node.empty()) inventory.note_node(node, true);
    inventory.upsert(slice);
    look(pool);
  }
  void look(const std::string& pool) {
    inventory.settle_by_nodes({});
    note_pool({kDriver, pool});
    settle(inventory, [&](const DeviceKey& key) { return allocated.contains(key.device.str()); });
  }
  [[nodiscard]] Names nodes() const { return names_of(with_devices_of(kDriver)); }

  Inventory inventory;
  std::set<std::string> allocated;
  std::int64_t generation = 0;
};

TEST_CASE("a node has room for a device plugin's resource while pods ask for less than it has left") {
  Rented room;
  room.look("node-b", 8, 8, {.total = 7, .requested = 7});
  room.look("node-a", 8, 8, {.total = 8, .requested = 8});
  CHECK(room.nodes() == Names{"node-b"});
  room.look("node-a", 8, 8, {});
  CHECK(room.nodes() == Names{"node-a", "node-b"});
  SUBCASE("its kubelet hands out fewer") {
    room.look("node-b", 8, 7, {.total = 7, .requested = 7});
    CHECK(room.nodes() == Names{"node-a"});
  }
  SUBCASE("one that is held is bad, which its kubelet does not show yet") {
    room.look("node-b", 8, 8, {.total = 7, .unhealthy = 1, .requested = 7});
    CHECK(room.nodes() == Names{"node-a"});
  }
  SUBCASE("it is gone") {
    room.note_node("node-b", nullptr, {});
    CHECK(room.nodes() == Names{"node-a"});
  }
}

TEST_CASE("a node has room for a driver's devices while no claim holds one of them") {
  Published room;
  room.publish("node-a", "node-a", {"gpu-0", "gpu-1"});
  room.publish("second", "node-a", {"gpu-2"});
  CHECK(room.nodes() == Names{"node-a"});
  CHECK(room.pools_on("node-a") == std::set<Inventory::PoolName>{{kDriver, "node-a"}, {kDriver, "second"}});
  room.allocated = {"gpu-0", "gpu-1"};
  room.look("node-a");
  CHECK(room.nodes() == Names{"node-a"});
  room.allocated.insert("gpu-2");
  room.look("second");
  CHECK(room.nodes().empty());
  room.allocated.erase("gpu-1");
  room.look("node-a");
  CHECK(room.nodes() == Names{"node-a"});
  // What its driver has taken away nobody can be given.
  room.inventory.remove_slice("slice-node-a");
  room.look("node-a");
  CHECK(room.nodes().empty());
  CHECK(room.pools_on("node-a") == std::set<Inventory::PoolName>{{kDriver, "second"}});
}

TEST_CASE("the pools of no node are everywhere") {
  Published room;
  room.publish("node-a", "node-a", {"gpu-0"});
  CHECK_FALSE(room.is_everywhere(kDriver));
  room.publish("fabric", "", {"gpu-1"});
  CHECK(room.is_everywhere(kDriver));
  CHECK_FALSE(room.is_everywhere("other.example.com"));
}

}  // namespace
