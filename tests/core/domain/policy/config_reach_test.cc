#include "domain/policy/config_reach.h"

#include <doctest/doctest.h>

using namespace dhc;

namespace {
Match devices(std::vector<std::string> resources, std::vector<std::string> drivers) {
  Match match;
  match.resources = std::move(resources);
  match.drivers = std::move(drivers);
  return match;
}
}  // namespace

TEST_CASE("a match covers another only if that is certain") {
  CHECK(covers(Match{}, Match{}));
  CHECK(covers(Match{}, devices({"a.io/x"}, {})));
  CHECK_FALSE(covers(devices({"a.io/x"}, {}), Match{}));
  CHECK(covers(devices({"*"}, {"*"}), Match{}));
  CHECK_FALSE(covers(devices({"*"}, {}), Match{}));
  CHECK(covers(devices({"a.io/*"}, {}), devices({"a.io/x", "a.io/y*"}, {})));
  CHECK_FALSE(covers(devices({"a.io/*"}, {}), devices({"a.io/x"}, {"d.io"})));
  CHECK_FALSE(covers(devices({"a.io/?"}, {}), devices({"a.io/*"}, {})));
  CHECK(covers(devices({"a.io/*"}, {}), devices({"a.io/?"}, {})));
}

TEST_CASE("a match with more demands does not cover one with fewer") {
  Match wide;
  Match narrow;
  narrow.pods.requirements = {{"a", LabelSelector::Operator::In, {"b"}}};
  CHECK(covers(wide, narrow));
  CHECK_FALSE(covers(narrow, wide));
  narrow = {};
  narrow.message = *MessagePattern::compile("x");
  CHECK(covers(wide, narrow));
  CHECK_FALSE(covers(narrow, wide));
  wide.message = *MessagePattern::compile("y");
  CHECK_FALSE(covers(wide, narrow));
  wide.message = narrow.message;
  CHECK(covers(wide, narrow));
}

TEST_CASE("a match with more signals is not covered by one with fewer") {
  Match wide;
  Match narrow;
  wide.health = {k8s::Health::Unhealthy, k8s::Health::Unknown};
  CHECK(covers(wide, narrow));
  CHECK_FALSE(covers(narrow, wide));
  narrow.claim_conditions = {{"Ready", "False"}};
  CHECK_FALSE(covers(wide, narrow));
  wide.claim_conditions = {{"Other", "True"}, {"Ready", "False"}};
  CHECK(covers(wide, narrow));
}
