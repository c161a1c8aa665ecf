#include "app/policy_desk.h"

#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "app/policy_map.h"

namespace {
using dhc::Message;

/// A desk and what it sent.
struct Office {
  std::vector<Message> sent;
  dhc::StatusStore status_store{{}};
  dhc::Metrics metrics;
  dhc::Log log{dhc::LogFormat::Text, dhc::LogLevel::Error, [](std::string_view) {}};
  dhc::PolicyDesk desk{{.mode_cap = dhc::Mode::Enforce, .events = false, .own_namespace = "dhc", .own_pod_uid = "u"},
                       [this](Message message) { sent.push_back(std::move(message)); },
                       status_store,
                       metrics,
                       log};

  void good(const std::string& release = {}) {
    desk.take({.policy = dhc::built_in_policy(), .brake_release = release, .cap_release = {}, .source = {}});
  }
  void bad(const char* why) {
    desk.take(
        {.policy = dhc::fail(dhc::ErrorKind::Invalid, why), .brake_release = {}, .cap_release = {}, .source = {}});
  }
};

dhc::k8s::ConfigMap map_of(std::string text) {
  dhc::k8s::ConfigMap map;
  map.meta.ns = "dhc";
  map.meta.name = "policy";
  map.meta.annotations = {{"device-health.io/brake-release", "2026-11-20T18:23:16Z"}};
  map.data = {{"policy.yaml", std::move(text)}};
  return map;
}

constexpr const char* kOnePolicy =
    "apiVersion: device-health.io/v1alpha1\nkind: DeviceHealthPolicy\nmetadata: {name: a}\nspec: {match: {}}\n";
const dhc::ConfigMapName kName{.ns = "dhc", .name = "policy"};
}  // namespace

TEST_CASE("a policy reaches the controller with what the program itself adds") {
  Office office;
  office.good("2026-11-20T18:23:16Z");
  REQUIRE(office.sent.size() == 1);
  const auto& policy = *std::get<dhc::PolicyChanged>(office.sent[0]).policy;
  CHECK(policy.mode_cap == dhc::Mode::Enforce);
  CHECK_FALSE(policy.events);
  CHECK(policy.own_namespace == "dhc");
  CHECK(policy.own_pod_uid == "u");
  CHECK(policy.brake_release == "2026-11-20T18:23:16Z");
  CHECK(office.status_store.facts().policy_loaded);
}

TEST_CASE("the same policy twice is no news, and neither is the same mistake") {
  Office office;
  office.good();
  office.good();
  CHECK(office.sent.size() == 1);
  office.bad("line 1");
  office.bad("line 1");
  CHECK(office.sent.size() == 2);
  CHECK(std::get<dhc::PolicyRejected>(office.sent[1]).why == "line 1");
}

TEST_CASE("a rejected configuration leaves the last good one in force and shows its mistake until it is mended") {
  Office office;
  office.good();
  office.bad("line 1");
  CHECK(office.status_store.facts().policy_loaded);
  CHECK(office.status_store.facts().policy_problem == "line 1");
  CHECK(office.metrics.text().find("device_health_policy_last_reload_success 0") != std::string::npos);
  office.good();
  CHECK(office.status_store.facts().policy_problem.empty());
  CHECK(std::holds_alternative<dhc::PolicyChanged>(office.sent.back()));
}

TEST_CASE("a ConfigMap is read with its brake release, and its mistakes name it") {
  const auto good = dhc::read_policy_map(dhc::k8s::Upsert{.object = map_of(kOnePolicy)}, kName);
  REQUIRE(good);
  CHECK(good->policy.has_value());
  CHECK(good->brake_release == "2026-11-20T18:23:16Z");
  const auto bad = dhc::read_policy_map(dhc::k8s::Upsert{.object = map_of("kind: [\n")}, kName);
  REQUIRE(bad);
  REQUIRE_FALSE(bad->policy);
  CHECK(bad->policy.error().message.find("policy.yaml:") != std::string::npos);
  CHECK(bad->source->name == "policy");
}

TEST_CASE("a ConfigMap that is gone or was never there is an error that says how to make it") {
  dhc::k8s::Snapshot nothing;
  nothing.kind = dhc::k8s::Kind::ConfigMap;
  const dhc::k8s::Remove gone{.kind = dhc::k8s::Kind::ConfigMap, .ns = "dhc", .name = "policy", .uid = "u"};
  for (const dhc::k8s::Delivery& delivery : {dhc::k8s::Delivery(nothing), dhc::k8s::Delivery(gone)}) {
    const auto read = dhc::read_policy_map(delivery, kName);
    REQUIRE(read);
    REQUIRE_FALSE(read->policy);
    CHECK(read->policy.error().message.starts_with("ConfigMap dhc/policy does not exist: kubectl"));
  }
}

TEST_CASE("another ConfigMap is no configuration") {
  auto other = map_of(kOnePolicy);
  other.meta.name = "other";
  CHECK_FALSE(dhc::read_policy_map(dhc::k8s::Upsert{.object = other}, kName));
}
