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
  std::string logged;
  dhc::Log log{dhc::LogFormat::Text, dhc::LogLevel::Info, [this](std::string_view line) { logged += line; }};
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

TEST_CASE("of a read that somebody has asked for it is said what came of it, once, though nothing did") {
  Office office;
  office.good();
  office.logged.clear();
  office.desk.expect();
  office.good();
  CHECK(office.logged.find("configuration read again: unchanged") != std::string::npos);
  office.bad("line 1");
  office.logged.clear();
  office.desk.expect();
  office.bad("line 1");
  CHECK(office.logged.find("configuration read again: rejected as before") != std::string::npos);
  office.logged.clear();
  office.bad("line 1");
  CHECK(office.logged.empty());
  CHECK(office.sent.size() == 2);
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

TEST_CASE("pauses of parts are read from annotations by name, and a bad one names its place") {
  auto map = map_of(kOnePolicy);
  map.meta.annotations = {
      {"device-health.io/pause.a", R"({"nodes":["n"],"until":"2026-11-20T12:00:00Z","reason":"r"})"},
      {"device-health.io/pause-reason", "of everything"}};
  const auto good = dhc::read_policy_map(dhc::k8s::Upsert{.object = map}, kName);
  REQUIRE(good);
  REQUIRE(good->pauses);
  CHECK(good->pauses->size() == 1);
  CHECK(good->pauses->front().reason == "r");
  map.meta.annotations.change_if([&](const auto& one) { return &one == &map.meta.annotations.front(); },
                                 [](auto& one) { one.second = "{nodes: [na]}"; });
  const auto bad = dhc::read_policy_map(dhc::k8s::Upsert{.object = map}, kName);
  REQUIRE(bad);
  CHECK(bad->policy);
  REQUIRE_FALSE(bad->pauses);
  CHECK(bad->pauses.error().message.starts_with(
      "configmap dhc/policy, annotation device-health.io/pause.a:1:1: pause has no until; "));
}

TEST_CASE(
    "what operators say in annotations holds although something else is rejected, and the last good pauses go on") {
  Office office;
  auto map = map_of(kOnePolicy);
  const auto take = [&] { office.desk.take(*dhc::read_policy_map(dhc::k8s::Upsert{.object = map}, kName)); };
  const auto in_force = [&] {
    std::shared_ptr<const dhc::Policy> policy;
    for (const auto& message : office.sent) {
      if (const auto* changed = std::get_if<dhc::PolicyChanged>(&message)) policy = changed->policy;
    }
    return *policy;
  };
  map.meta.annotations = {
      {"device-health.io/pause.a", R"({"nodes":["n"],"until":"2026-11-20T12:00:00Z","reason":"r"})"}};
  take();
  CHECK(in_force().pauses.size() == 1);
  map.meta.annotations = {{"device-health.io/pause-until", "2026-11-20T12:00:00Z"},
                          {"device-health.io/pause.a", "not a pause"}};
  take();
  CHECK(in_force().pauses.size() == 1);
  CHECK(in_force().pause_until == "2026-11-20T12:00:00Z");
  CHECK(std::holds_alternative<dhc::PolicyRejected>(office.sent.back()));
  CHECK(office.status_store.facts().policy_problem.contains("annotation device-health.io/pause.a"));
  const auto before = office.sent.size();
  take();
  CHECK(office.sent.size() == before);
  map.data = {{"policy.yaml", "kind: ["}};
  map.meta.annotations = {};
  take();
  CHECK(in_force().pauses.empty());
  CHECK(in_force().pause_until.empty());
  CHECK(in_force().policies.size() == 1);
  CHECK(std::holds_alternative<dhc::PolicyRejected>(office.sent.back()));
  office.desk.take(*dhc::read_policy_map(
      dhc::k8s::Remove{.kind = dhc::k8s::Kind::ConfigMap, .ns = "dhc", .name = "policy", .uid = "u"}, kName));
  CHECK(in_force().policies.size() == 1);
}

TEST_CASE("another ConfigMap is no configuration") {
  auto other = map_of(kOnePolicy);
  other.meta.name = "other";
  CHECK_FALSE(dhc::read_policy_map(dhc::k8s::Upsert{.object = other}, kName));
}
