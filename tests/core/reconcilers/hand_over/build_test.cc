#include "reconcilers/hand_over/build.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace dhc::hand_over {

namespace {

const ApplyNodeConditions kApply{.node = "node-a",
                                 .uid = "u",
                                 .seen_version = "7",
                                 .conditions = {{.type = "example.com/Bad",
                                                 .status = "True",
                                                 .reason = "DeviceHealthHandedOver",
                                                 .message = "gpu-0",
                                                 .last_transition = WallTime(Seconds(60))}},
                                 .asks = {},
                                 .hands_over = true,
                                 .policy = "gpus"};

}  // namespace

TEST_CASE("A node's conditions are applied to its status under a name of their own, by its UID, without force") {
  const auto request = build_conditions(kApply);
  REQUIRE(request.has_value());
  CHECK(request->method == k8s::Method::Patch);
  CHECK(request->target == "/api/v1/nodes/node-a/status?fieldManager=device-health-hand-over");
  CHECK(nlohmann::json::parse(request->body) == nlohmann::json::parse(R"({
    "apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-a", "uid": "u"},
    "status": {"conditions": [{"type": "example.com/Bad", "status": "True", "reason": "DeviceHealthHandedOver",
      "message": "gpu-0", "lastHeartbeatTime": "1970-01-01T00:01:00Z", "lastTransitionTime": "1970-01-01T00:01:00Z"}]}})"));
}

TEST_CASE("Without conditions the apply takes away those that we have") {
  auto none = kApply;
  none.conditions.clear();
  CHECK(nlohmann::json::parse(build_conditions(none)->body)["status"] ==
        nlohmann::json::parse(R"({"conditions": []})"));
  CHECK(none.words() == "conditions of node node-a: none of ours");
  CHECK(kApply.words() == "conditions of node node-a: example.com/Bad=True");
}

TEST_CASE("A node without a UID or with a name that fits in no path is not written") {
  auto nameless = kApply;
  nameless.node = "a/b";
  CHECK(build_conditions(nameless).error().kind == ErrorKind::Invalid);
  auto uidless = kApply;
  uidless.uid.clear();
  CHECK(build_conditions(uidless).error().kind == ErrorKind::Invalid);
}

}  // namespace dhc::hand_over
