#include "app/access_review.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

namespace {
bool has_write(const std::vector<dhc::NeededVerb>& verbs) {
  return std::ranges::any_of(verbs, [](const auto& needed) {
    return needed.verb != "list" && needed.verb != "watch" && needed.verb != "get";
  });
}
}  // namespace

TEST_CASE("observe mode without Events needs nothing but get, list and watch") {
  CHECK_FALSE(has_write(dhc::needed_verbs(dhc::Mode::Observe, false, nullptr, "", false)));
}

TEST_CASE("enforce mode needs to create evictions and to patch pod status, never to delete pods") {
  const auto verbs = dhc::needed_verbs(dhc::Mode::Enforce, false, nullptr, "", false);
  CHECK(std::ranges::count(verbs, "eviction", &dhc::NeededVerb::subresource) == 1);
  CHECK(std::ranges::count(verbs, "status", &dhc::NeededVerb::subresource) == 1);
  CHECK(std::ranges::none_of(verbs, [](const auto& v) { return v.resource == "pods" && v.verb == "delete"; }));
  // What an eviction rests on is read before it.
  for (const auto* resource : {"pods", "resourceclaims"}) {
    CHECK(std::ranges::count_if(verbs, [&](const auto& v) {
            return v.resource == resource && v.verb == "get" && v.needed_by == "evict";
          }) == 1);
  }
}

TEST_CASE("each kind of owner that the manifests name is asked for at the start, and no other") {
  std::ifstream file("manifests/base/rbac-owners.yaml");
  std::set<std::string> given;
  std::string group;
  for (std::string line; std::getline(file, line);) {
    if (const auto at = line.find("apiGroups: [\""); at != std::string::npos) {
      group = line.substr(at + 13, line.find('"', at + 13) - at - 13);
    }
    const auto at = line.find("resources: [");
    if (at == std::string::npos) continue;
    std::istringstream names(line.substr(at + 12, line.find(']') - at - 12));
    for (std::string name; std::getline(names >> std::ws, name, ',');) given.insert(group + "/" + name);
  }
  std::set<std::string> asked;
  for (const auto& needed : dhc::needed_verbs(dhc::Mode::Observe, false, nullptr, "", false)) {
    if (needed.verb != "get") continue;
    CHECK(needed.needed_by == "opt-out");
    CHECK(asked.insert(std::string(needed.group) + "/" + std::string(needed.resource)).second);
  }
  CHECK(asked == given);
  CHECK(given.contains("ray.io/rayclusters"));
}

TEST_CASE("a ConfigMap is asked for by its name only") {
  const dhc::ConfigMapName name{.ns = "dhc", .name = "policy"};
  const auto verbs = dhc::needed_verbs(dhc::Mode::Observe, false, &name, "", false);
  const auto map = std::ranges::find(verbs, "configmaps", &dhc::NeededVerb::resource);
  REQUIRE(map != verbs.end());
  CHECK(dhc::build_access_review(*map).body ==
        R"({"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":)"
        R"({"group":"","resource":"configmaps","verb":"list","namespace":"dhc","name":"policy"}}})");
}

TEST_CASE(
    "enforce mode needs to make, change and delete rules and to patch nodes, and the state needs its own ConfigMap") {
  const auto verbs = dhc::needed_verbs(dhc::Mode::Enforce, false, nullptr, "dhc", false);
  CHECK(std::ranges::count(verbs, "taint", &dhc::NeededVerb::needed_by) == 4);
  CHECK(std::ranges::count(verbs, "state", &dhc::NeededVerb::needed_by) == 4);
  CHECK(std::ranges::count(verbs, "device-health-incidents", &dhc::NeededVerb::name) == 4);
  CHECK(std::ranges::count(verbs, "device-health-state", &dhc::NeededVerb::name) == 2);
}

TEST_CASE("enforce mode needs to patch Jobs, observe mode does not") {
  const auto enforce = dhc::needed_verbs(dhc::Mode::Enforce, false, nullptr, "", false);
  const auto observe = dhc::needed_verbs(dhc::Mode::Observe, false, nullptr, "", false);
  CHECK(std::ranges::count(enforce, "jobRetry", &dhc::NeededVerb::needed_by) == 1);
  CHECK(std::ranges::count(observe, "jobRetry", &dhc::NeededVerb::needed_by) == 0);
}

TEST_CASE("an election needs its own Lease and no other") {
  const auto verbs = dhc::needed_verbs(dhc::Mode::Observe, false, nullptr, "dhc", true);
  CHECK(std::ranges::count(verbs, "leases", &dhc::NeededVerb::resource) == 5);
  CHECK(std::ranges::count(verbs, "device-health-controller", &dhc::NeededVerb::name) == 5);
  const auto lease = std::ranges::find(verbs, "leases", &dhc::NeededVerb::resource);
  REQUIRE(lease != verbs.end());
  CHECK(dhc::forbidden_line(*lease) == "forbidden: leases.coordination.k8s.io get (needed by: leader election)");
}

TEST_CASE("a missing verb is one line that names resource, verb and who needs it") {
  const auto verbs = dhc::needed_verbs(dhc::Mode::Enforce, true, nullptr, "", false);
  const auto evict = std::ranges::find(verbs, "eviction", &dhc::NeededVerb::subresource);
  REQUIRE(evict != verbs.end());
  CHECK(dhc::forbidden_line(*evict) == "forbidden: pods/eviction create (needed by: evict)");
  const auto events = std::ranges::find(verbs, "events", &dhc::NeededVerb::resource);
  REQUIRE(events != verbs.end());
  CHECK(dhc::forbidden_line(*events) == "forbidden: events.events.k8s.io create (needed by: events)");
}

TEST_CASE("the owners' kinds, which are many, are asked for after all else") {
  const auto verbs = dhc::needed_verbs(dhc::Mode::Enforce, true, nullptr, "dhc", true);
  const auto first = std::ranges::find(verbs, "opt-out", &dhc::NeededVerb::needed_by);
  REQUIRE(first != verbs.end());
  CHECK(std::all_of(first, verbs.end(), [](const dhc::NeededVerb& needed) { return needed.needed_by == "opt-out"; }));
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

namespace {

dhc::DevicePolicy handing_over(dhc::Mode mode, const char* kind, bool keeps) {
  dhc::DevicePolicy policy;
  policy.mode = mode;
  policy.hand_over = dhc::HandOverRules{};
  policy.hand_over->resource = dhc::HandOverResource{.api_version = "repair.example.com/v1",
                                                     .kind = kind,
                                                     .ns = "repair",
                                                     .name = "{node}",
                                                     .text = {},
                                                     .keeps = keeps};
  return policy;
}

}  // namespace

TEST_CASE("a hand-over's rights are asked for where a policy enforces it, each kind once") {
  dhc::Policy policy;
  policy.mode_cap = dhc::Mode::Enforce;
  policy.policies = {handing_over(dhc::Mode::Enforce, "Order", true), handing_over(dhc::Mode::Enforce, "Order", false),
                     handing_over(dhc::Mode::Enforce, "Ticket", true), handing_over(dhc::Mode::Observe, "Wish", false)};
  CHECK(dhc::condition_verbs(policy).empty());
  policy.policies.back().hand_over->condition = dhc::HandOverCondition{.type = "NeedsRepair"};
  CHECK(dhc::condition_verbs(policy).empty());
  policy.policies.front().hand_over->condition = dhc::HandOverCondition{.type = "NeedsRepair"};
  const auto condition = dhc::condition_verbs(policy);
  REQUIRE(condition.size() == 1);
  CHECK(dhc::forbidden_line(condition.front()) == "forbidden: nodes/status patch (needed by: handOver.nodeCondition)");

  const auto resources = dhc::handed_resources(policy);
  REQUIRE(resources.size() == 2);
  const auto verbs = dhc::object_verbs(resources.front(), "orders");
  REQUIRE(verbs.size() == 3);  // one of the two deletes it
  CHECK(dhc::forbidden_line(verbs.back()) ==
        "forbidden: orders.repair.example.com delete (needed by: handOver.resource)");
  CHECK(verbs.back().ns == "repair");
  CHECK(dhc::object_verbs(resources.back(), "tickets").size() == 2);

  policy.mode_cap = dhc::Mode::Observe;
  CHECK(dhc::condition_verbs(policy).empty());
  CHECK(dhc::handed_resources(policy).empty());
}
