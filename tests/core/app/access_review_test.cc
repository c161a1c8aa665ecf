#include "app/access_review.h"

#include <algorithm>

#include <doctest/doctest.h>

namespace {
bool has_write(const std::vector<dhc::NeededVerb>& verbs) {
  return std::ranges::any_of(verbs, [](const auto& needed) { return needed.verb != "list" && needed.verb != "watch"; });
}
}  // namespace

TEST_CASE("observe mode without Events needs nothing but list and watch") {
  CHECK_FALSE(has_write(dhc::needed_verbs(dhc::Mode::Observe, false, nullptr)));
}

TEST_CASE("enforce mode needs to create evictions and to patch pod status, never to delete pods") {
  const auto verbs = dhc::needed_verbs(dhc::Mode::Enforce, false, nullptr);
  CHECK(std::ranges::count(verbs, "eviction", &dhc::NeededVerb::subresource) == 1);
  CHECK(std::ranges::count(verbs, "status", &dhc::NeededVerb::subresource) == 1);
  CHECK(std::ranges::count(verbs, "delete", &dhc::NeededVerb::verb) == 0);
}

TEST_CASE("a ConfigMap is asked for by its name only") {
  const dhc::ConfigMapName name{.ns = "dhc", .name = "policy"};
  const auto verbs = dhc::needed_verbs(dhc::Mode::Observe, false, &name);
  const auto map = std::ranges::find(verbs, "configmaps", &dhc::NeededVerb::resource);
  REQUIRE(map != verbs.end());
  CHECK(dhc::build_access_review(*map).body ==
        R"({"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":)"
        R"({"group":"","resource":"configmaps","verb":"list","namespace":"dhc","name":"policy"}}})");
}

TEST_CASE("a missing verb is one line that names resource, verb and who needs it") {
  const auto verbs = dhc::needed_verbs(dhc::Mode::Enforce, true, nullptr);
  const auto evict = std::ranges::find(verbs, "eviction", &dhc::NeededVerb::subresource);
  REQUIRE(evict != verbs.end());
  CHECK(dhc::forbidden_line(*evict) == "forbidden: pods/eviction create (needed by: evict)");
  CHECK(dhc::forbidden_line(verbs.back()) == "forbidden: events.events.k8s.io create (needed by: events)");
}

TEST_CASE("the answer of an access review is read, and anything else is malformed") {
  CHECK(dhc::parse_access_review(R"({"status":{"allowed":true}})").value());
  CHECK_FALSE(dhc::parse_access_review(R"({"status":{"allowed":false}})").value());
  for (const char* body : {"", "[]", "{}", R"({"status":null})", R"({"status":{"allowed":"yes"}})", "{"}) {
    CAPTURE(body);
    const auto answer = dhc::parse_access_review(body);
    REQUIRE_FALSE(answer);
    CHECK(answer.error().kind == dhc::ErrorKind::Malformed);
  }
}
