#include "cli/demo_tally.h"

#include <array>

#include <doctest/doctest.h>

namespace {
using dhc::cli::DemoTally;
using dhc::cli::end_of;

DemoTally one_holder() {
  DemoTally tally;
  tally.count({.what = dhc::sim::DemoEvent::What::Broke,
               .node = "node-a",
               .device = "gpu-0",
               .kind = "example.com/gpu",
               .message = "",
               .holders = {"default/a"}});
  return tally;
}

dhc::Verdict verdict_on(const char* name) {
  dhc::Verdict verdict;
  verdict.subject = {.kind = "Pod", .ns = "default", .name = name, .uid = "u"};
  verdict.reason = dhc::Reason::BlockedByBudget;
  return verdict;
}
}  // namespace

TEST_CASE("the demo ends well when exactly the holders of broken devices were evicted") {
  CHECK(end_of(one_holder(), std::array{std::string("default/a")}, {}).exact);
}

TEST_CASE("the demo ends badly when a pod without a broken device was evicted, and names it") {
  const auto end = end_of(one_holder(), std::array{std::string("default/a"), std::string("default/b")}, {});
  CHECK_FALSE(end.exact);
  CHECK(end.text.find("evicted without a broken device: default/b") != std::string::npos);
}

TEST_CASE("the demo ends badly when a holder is neither evicted nor has a reason") {
  const auto end = end_of(one_holder(), {}, {});
  CHECK_FALSE(end.exact);
  CHECK(end.text.find("not evicted: default/a (no reason given)") != std::string::npos);
}

TEST_CASE("a holder that stands for a reason is told with it") {
  const auto end = end_of(one_holder(), {}, std::array{verdict_on("a")});
  CHECK(end.exact);
  CHECK(end.text.find("not evicted: default/a (BlockedByBudget: )") != std::string::npos);
}

TEST_CASE("the demo ends badly when a pod was evicted twice") {
  CHECK_FALSE(end_of(one_holder(), std::array{std::string("default/a"), std::string("default/a")}, {}).exact);
}
