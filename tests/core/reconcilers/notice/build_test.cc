#include "reconcilers/notice/build.h"

#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/rfc3339.h"

namespace {
using dhc::notice::ApplyCondition;
using dhc::notice::EmitEvent;

dhc::WallTime at(const char* text) { return dhc::parse_rfc3339(text).value(); }

ApplyCondition condition() {
  return {.ns = "team-a",
          .name = "train-0",
          .uid = "u-1",
          .wanted = ApplyCondition::Wanted{.status = true,
                                           .reason = "DeviceUnhealthy",
                                           .message = "gpu-0 is Unhealthy",
                                           .last_transition = at("2026-11-20T18:23:16.987654Z")}};
}

EmitEvent event() {
  return {.regarding = {.kind = "Pod", .ns = "team-a", .name = "train-0", .uid = "u-1"},
          .name = "train-0.1a2b3c",
          .warning = true,
          .reason = "Evicted",
          .action = "Evict",
          .note = "gpu-0 is Unhealthy",
          .at = at("2026-11-20T18:23:16Z")};
}
}  // namespace

TEST_CASE("a condition is applied to the pod's status with its UID, our field manager and no force") {
  const auto request = dhc::notice::build_condition(condition());
  REQUIRE(request);
  CHECK(request->method == dhc::k8s::Method::Patch);
  CHECK(request->target == "/api/v1/namespaces/team-a/pods/train-0/status?fieldManager=device-health-controller");
  CHECK(request->body ==
        R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"train-0","namespace":"team-a","uid":"u-1"},)"
        R"("status":{"conditions":[{"type":"device-health.io/DeviceUnhealthy","status":"True",)"
        R"("reason":"DeviceUnhealthy","message":"gpu-0 is Unhealthy","lastTransitionTime":"2026-11-20T18:23:16Z"}]}})");
  CHECK(request->headers.back() == dhc::k8s::Header{"Content-Type", "application/apply-patch+yaml"});
}

TEST_CASE("a notice is an annotation in the same apply as the condition") {
  auto action = condition();
  action.notice = R"({"v":1})";
  const auto request = dhc::notice::build_condition(action);
  REQUIRE(request);
  const auto body = nlohmann::json::parse(request->body);
  CHECK(body["metadata"]["annotations"] == nlohmann::json{{"device-health.io/notice", R"({"v":1})"}});
  CHECK(body["metadata"]["uid"] == "u-1");
  CHECK(body["status"]["conditions"].size() == 1);
  CHECK(request->target == "/api/v1/namespaces/team-a/pods/train-0/status?fieldManager=device-health-controller");
}

TEST_CASE("a recovered device's condition says False") {
  auto action = condition();
  action.wanted->status = false;
  const auto request = dhc::notice::build_condition(action);
  REQUIRE(request);
  CHECK(request->body.find(R"("status":"False")") != std::string::npos);
}

TEST_CASE("a condition that is no longer wanted is removed by applying an empty list") {
  auto action = condition();
  action.wanted.reset();
  const auto request = dhc::notice::build_condition(action);
  REQUIRE(request);
  CHECK(request->body.ends_with(R"("status":{"conditions":[]}})"));
}

TEST_CASE("a condition for a pod without a UID is refused") {
  auto action = condition();
  action.uid.clear();
  CHECK_FALSE(dhc::notice::build_condition(action));
}

TEST_CASE("an Event has exactly what events.k8s.io/v1 asks for, with six digits of a second") {
  const auto request = dhc::notice::build_event(event(), "dhc-0");
  REQUIRE(request);
  CHECK(request->method == dhc::k8s::Method::Post);
  CHECK(request->target == "/apis/events.k8s.io/v1/namespaces/team-a/events");
  CHECK(request->body ==
        R"({"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"train-0.1a2b3c","namespace":"team-a"},)"
        R"("eventTime":"2026-11-20T18:23:16.000000Z","reportingController":"device-health.io/controller",)"
        R"("reportingInstance":"dhc-0","action":"Evict","reason":"Evicted",)"
        R"("regarding":{"apiVersion":"v1","kind":"Pod","namespace":"team-a","name":"train-0","uid":"u-1"},)"
        R"("note":"gpu-0 is Unhealthy","type":"Warning"})");
}

TEST_CASE("an Event about a node lives in the namespace default and names no namespace of the node") {
  auto action = event();
  action.regarding = {.kind = "Node", .ns = "", .name = "node-a", .uid = "u-9"};
  action.warning = false;
  const auto request = dhc::notice::build_event(action, "dhc-0");
  REQUIRE(request);
  CHECK(request->target == "/apis/events.k8s.io/v1/namespaces/default/events");
  const auto body = nlohmann::json::parse(request->body);
  CHECK(body["metadata"]["namespace"] == "default");
  CHECK_FALSE(body["regarding"].contains("namespace"));
  CHECK(body["type"] == "Normal");
}

TEST_CASE("a note of any length and content is sent as at most 1,024 bytes without control characters") {
  auto action = event();
  action.note = "bad\r\nx\x1b[31m" + std::string(1010, 'a') + "\xE2\x82\xAC\xE2\x82\xAC";
  const auto request = dhc::notice::build_event(action, "dhc-0");
  REQUIRE(request);
  const std::string note = nlohmann::json::parse(request->body)["note"];
  CHECK(note.size() <= 1024);
  CHECK(note.starts_with("bad  x [31m"));
  CHECK(note.ends_with("a\xE2\x82\xAC"));
}

TEST_CASE("an Event whose name would lead to another path is refused") {
  auto action = event();
  action.name = "../x";
  CHECK_FALSE(dhc::notice::build_event(action, "dhc-0"));
}
