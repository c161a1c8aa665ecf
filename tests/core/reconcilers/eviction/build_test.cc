#include "reconcilers/eviction/build.h"

#include <doctest/doctest.h>

namespace {
dhc::eviction::EvictPod pod() {
  return {.ns = "team-a",
          .name = "train-0",
          .uid = "7780c5da-2fdc-45c0-8a31-0e5badca20c6",
          .grace_period_seconds = std::nullopt,
          .shared_claim_uid = {},
          .key = {},
          .device = "gpu.example.com/node-a/gpu-0",
          .policy = "gpus"};
}
}  // namespace

TEST_CASE("an eviction carries the pod's UID as a precondition and leaves the grace period to the pod") {
  const auto request = dhc::eviction::build_eviction(pod());
  REQUIRE(request);
  CHECK(request->method == dhc::k8s::Method::Post);
  CHECK(request->target == "/api/v1/namespaces/team-a/pods/train-0/eviction");
  CHECK(request->body ==
        R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"train-0","namespace":"team-a"},)"
        R"("deleteOptions":{"preconditions":{"uid":"7780c5da-2fdc-45c0-8a31-0e5badca20c6"}}})");
}

TEST_CASE("a policy's grace period goes into the delete options, zero included") {
  auto action = pod();
  action.grace_period_seconds = 0;
  const auto request = dhc::eviction::build_eviction(action);
  REQUIRE(request);
  CHECK(request->body.ends_with(
      R"("deleteOptions":{"preconditions":{"uid":"7780c5da-2fdc-45c0-8a31-0e5badca20c6"},"gracePeriodSeconds":0}})"));
}

TEST_CASE("an eviction waits 35 s for its answer, silent or not, because the server itself retries for ten") {
  const auto request = dhc::eviction::build_eviction(pod());
  REQUIRE(request);
  CHECK(request->timeouts.total == dhc::Seconds(35));
  CHECK(request->timeouts.idle == dhc::Seconds(35));
}

TEST_CASE("a pod without a UID is never evicted") {
  auto action = pod();
  action.uid.clear();
  const auto request = dhc::eviction::build_eviction(action);
  REQUIRE_FALSE(request);
  CHECK(request.error().kind == dhc::ErrorKind::Invalid);
}

TEST_CASE("a name that would lead to another path is refused") {
  for (const char* name : {"", ".", "..", "a/b", "a%2fb", "a\nb", "../../../apis"}) {
    CAPTURE(name);
    auto action = pod();
    action.name = name;
    CHECK_FALSE(dhc::eviction::build_eviction(action));
    action = pod();
    action.ns = name;
    CHECK_FALSE(dhc::eviction::build_eviction(action));
  }
}

TEST_CASE("a name with a question mark or a space is one encoded segment of the path") {
  auto action = pod();
  action.name = "a?b c";
  const auto request = dhc::eviction::build_eviction(action);
  REQUIRE(request);
  CHECK(request->target == "/api/v1/namespaces/team-a/pods/a%3Fb%20c/eviction");
}
