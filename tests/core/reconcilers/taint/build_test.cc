#include "reconcilers/taint/build.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace dhc::taint {

using nlohmann::json;

namespace {

const ApplyRule kNew{.name = "dhc-1",
                     .api_version = "resource.k8s.io/v1",
                     .uid = {},
                     .resource_version = {},
                     .driver = "gpu.example.com",
                     .pool = "node-a",
                     .device_name = "gpu-0",
                     .effect = "NoSchedule",
                     .policy = "gpus",
                     .identity = "GPU-1",
                     .identity_attribute = "uuid",
                     .since = {},
                     .incidents = 2,
                     .device = {}};

const DeleteRule kDelete{.name = "dhc-1",
                         .api_version = "resource.k8s.io/v1beta2",
                         .uid = "u",
                         .resource_version = "7",
                         .key = {},
                         .device = {},
                         .policy = {}};

const PatchNodeTaint kTaint{.node = "node-a",
                            .uid = {},
                            .resource_version = "7",
                            .add = true,
                            .has_taints = true,
                            .index = 0,
                            .device = {},
                            .policy = {}};

json body_of(const ApplyRule& action) { return json::parse(build_rule(action)->body); }
json body_of(const PatchNodeTaint& action) { return json::parse(build_node_taint(action)->body); }

json first_operation() { return {{"op", "replace"}, {"path", "/metadata/resourceVersion"}, {"value", "7"}}; }

json our_taint() { return {{"key", "device-health.io/unhealthy"}, {"value", "Unhealthy"}, {"effect", "NoSchedule"}}; }

}  // namespace

TEST_CASE("A rule is applied by us, without force, and selects exactly one device") {
  const auto request = build_rule(kNew);
  REQUIRE(request.has_value());
  CHECK(request->method == k8s::Method::Patch);
  CHECK(request->target == "/apis/resource.k8s.io/v1/devicetaintrules/dhc-1?fieldManager=device-health-controller");
  CHECK(request->headers[1].value == "application/apply-patch+yaml");
  const auto spec = body_of(kNew)["spec"];
  CHECK(spec["deviceSelector"] == json({{"driver", "gpu.example.com"}, {"pool", "node-a"}, {"device", "gpu-0"}}));
  CHECK(spec["taint"] == our_taint());
}

TEST_CASE("A rule's labels name node, driver, device and policy, and its annotation repeats the driver's words") {
  auto action = kNew;
  action.node = "node-a";
  action.said = "XID 79\nforged";
  auto metadata = body_of(action)["metadata"];
  CHECK(metadata["labels"] == json({{"app.kubernetes.io/managed-by", "device-health-controller"},
                                    {"device-health.io/node", "node-a"},
                                    {"device-health.io/driver", "gpu.example.com"},
                                    {"device-health.io/device", "gpu-0"},
                                    {"device-health.io/policy", "gpus"}}));
  CHECK(metadata["annotations"]["device-health.io/said"] == "XID 79 forged");
  CHECK_FALSE(metadata["annotations"].contains("device-health.io/node"));
  action.node = std::string(200, 'n');
  action.said = {};
  metadata = body_of(action)["metadata"];
  CHECK(metadata["labels"]["device-health.io/node"].get<std::string>().size() == 63);
  CHECK(metadata["annotations"]["device-health.io/node"] == action.node);
  CHECK_FALSE(metadata["annotations"].contains("device-health.io/said"));
  action.node = {};
  CHECK_FALSE(body_of(action)["metadata"]["labels"].contains("device-health.io/node"));
}

TEST_CASE("A selector that lacks a part would select a whole pool or driver, and is refused") {
  for (auto part : {&ApplyRule::driver, &ApplyRule::pool, &ApplyRule::device_name}) {
    auto action = kNew;
    (action.*part).clear();
    const auto request = build_rule(action);
    REQUIRE_FALSE(request.has_value());
    CHECK(request.error().kind == ErrorKind::Invalid);
  }
}

TEST_CASE("NoExecute is no effect of ours") {
  auto action = kNew;
  action.effect = "NoExecute";
  CHECK_FALSE(build_rule(action).has_value());
  action.effect = "None";
  CHECK(body_of(action)["spec"]["taint"]["effect"] == "None");
}

TEST_CASE("The first apply names neither UID nor version, every later one both") {
  auto metadata = body_of(kNew)["metadata"];
  CHECK_FALSE(metadata.contains("uid"));
  CHECK_FALSE(metadata.contains("resourceVersion"));
  auto action = kNew;
  action.uid = "u";
  action.resource_version = "7";
  metadata = body_of(action)["metadata"];
  CHECK(metadata["uid"] == "u");
  CHECK(metadata["resourceVersion"] == "7");
}

TEST_CASE("A rule says by labels and annotations whose it is and what it remembers") {
  const auto metadata = body_of(kNew)["metadata"];
  CHECK(metadata["labels"]["app.kubernetes.io/managed-by"] == "device-health-controller");
  CHECK(metadata["annotations"] == json({{"device-health.io/effect", "NoSchedule"},
                                         {"device-health.io/policy", "gpus"},
                                         {"device-health.io/since", "1970-01-01T00:00:00Z"},
                                         {"device-health.io/incidents", "2"},
                                         {"device-health.io/identity", "GPU-1"},
                                         {"device-health.io/identity-attribute", "uuid"}}));
}

TEST_CASE("A rule is deleted only as it was seen") {
  const auto request = build_delete(kDelete);
  REQUIRE(request.has_value());
  CHECK(request->method == k8s::Method::Delete);
  CHECK(request->target == "/apis/resource.k8s.io/v1beta2/devicetaintrules/dhc-1");
  CHECK(json::parse(request->body)["preconditions"] == json({{"uid", "u"}, {"resourceVersion", "7"}}));
  auto action = kDelete;
  action.uid.clear();
  CHECK_FALSE(build_delete(action).has_value());
}

TEST_CASE("Where the server has no rules none is asked for") {
  auto action = kNew;
  action.api_version.clear();
  CHECK_FALSE(build_rule(action).has_value());
}

TEST_CASE("A node's taint is added beside the others, behind the version that was seen") {
  CHECK(body_of(kTaint) ==
        json({first_operation(), {{"op", "add"}, {"path", "/spec/taints/-"}, {"value", our_taint()}}}));
  auto first = kTaint;
  first.has_taints = false;
  CHECK(body_of(first) ==
        json({first_operation(), {{"op", "add"}, {"path", "/spec/taints"}, {"value", json::array({our_taint()})}}}));
  auto unseen = kTaint;
  unseen.resource_version.clear();
  CHECK_FALSE(build_node_taint(unseen).has_value());
}

TEST_CASE("A node's taint is removed only where our key stands") {
  auto action = kTaint;
  action.add = false;
  action.index = 2;
  CHECK(body_of(action) ==
        json({first_operation(),
              {{"op", "test"}, {"path", "/spec/taints/2/key"}, {"value", "device-health.io/unhealthy"}},
              {{"op", "remove"}, {"path", "/spec/taints/2"}}}));
}

}  // namespace dhc::taint
