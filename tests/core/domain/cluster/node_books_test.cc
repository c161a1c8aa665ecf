#include "domain/cluster/node_books.h"

#include <string>

#include <doctest/doctest.h>

namespace {

using namespace dhc;

const std::string kCounted = "example.com/gpu";

/// A book of one node whose plugin has eight devices, of which pods hold four.
struct Told {
  bool look() { return book.update(&node, {{kCounted, held}}, now); }

  k8s::Node node = [] {
    k8s::Node made;
    made.meta.name = "node-a";
    made.meta.uid = "first";
    made.ready = true;
    made.boot_id = "boot";
    made.capacity = {{kCounted, 8}};
    made.allocatable = {{kCounted, 8}};
    return made;
  }();
  HeldDevices held{.total = 4, .requested = 4};
  Now now;
  NodeBook book;
};

TEST_CASE("mere numbers of a node change nothing of what its reports are worth") {
  Told told;
  CHECK(told.look());
  CHECK_FALSE(told.look());
  told.node.allocatable = {{kCounted, 7}};
  CHECK_FALSE(told.look());
  told.held = {.total = 5, .unhealthy = 1, .requested = 5};
  CHECK_FALSE(told.look());
  told.node.unschedulable = true;
  CHECK_FALSE(told.look());
  // A resource that a plugin of before has left behind.
  told.node.capacity.push_back({"example.com/nic", 0});
  CHECK_FALSE(told.look());
}

TEST_CASE("another node, boot, kubelet or plugin changes what reports are worth") {
  Told told;
  told.look();
  SUBCASE("another node under its name") { told.node.meta.uid = "second"; }
  SUBCASE("another boot") { told.node.boot_id = "later"; }
  SUBCASE("its kubelet has gone silent") { told.node.ready = false; }
  SUBCASE("its plugin gives out none") { told.node.allocatable = {{kCounted, 0}}; }
  SUBCASE("its plugin has gone") { told.node.capacity = {{kCounted, 0}}; }
  SUBCASE("its plugin has fewer than pods hold") { told.node.capacity = {{kCounted, 3}}; }
  SUBCASE("it has a resource more") { told.node.capacity.push_back({"example.com/nic", 1}); }
  CHECK(told.look());
  CHECK_FALSE(told.look());
}

TEST_CASE("a node that is gone says nothing") {
  Told told;
  told.look();
  CHECK(told.book.update(nullptr, {}, told.now));
  CHECK(told.look());
}

}  // namespace
