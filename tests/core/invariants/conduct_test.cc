#include "tests/support/core/conduct.h"

#include <string>

#include <doctest/doctest.h>

using dhc::k8s::Method;
using dhc::test::AnsweredRequest;
using dhc::test::Conduct;
using nlohmann::json;

namespace {

constexpr auto kRule = "/apis/resource.k8s.io/v1/devicetaintrules/dhc-1";
constexpr auto kJob = "/apis/batch/v1/namespaces/default/jobs/train";
constexpr auto kState = "/api/v1/namespaces/dhs/configmaps/device-health-incidents";
constexpr auto kStatus = "/api/v1/namespaces/default/pods/a/status?fieldManager=x";

AnsweredRequest eviction(const std::string& uid, unsigned status = 201) {
  return {.method = Method::Post,
          .target = "/api/v1/namespaces/default/pods/a/eviction",
          .body = {{"deleteOptions", {{"preconditions", {{"uid", uid}}}}}},
          .status = status};
}

AnsweredRequest rule(json selector, const std::string& effect = "NoSchedule") {
  return {.method = Method::Patch,
          .target = std::string(kRule) + "?fieldManager=x",
          .body = {{"spec",
                    {{"deviceSelector", std::move(selector)},
                     {"taint", {{"key", "device-health.io/unhealthy"}, {"effect", effect}}}}}},
          .status = 200};
}

AnsweredRequest good_rule() { return rule({{"driver", "d"}, {"pool", "p"}, {"device", "gpu-0"}}); }

AnsweredRequest deletion(const std::string& uid) {
  return {.method = Method::Delete, .target = kRule, .body = {{"preconditions", {{"uid", uid}}}}, .status = 200};
}

/// An object of another's kind that is made, with these marks of ours.
AnsweredRequest object(const std::string& manager = "device-health-controller", const std::string& incident = "i",
                       const std::string& field_manager = "device-health-hand-over") {
  return {.method = Method::Post,
          .target = "/apis/repair.example.com/v1/namespaces/repair/repairs?fieldManager=" + field_manager,
          .body = {{"metadata",
                    {{"labels", {{"app.kubernetes.io/managed-by", manager}}},
                     {"annotations", {{"device-health.io/incident", incident}}}}}},
          .status = 201};
}

AnsweredRequest object_deletion(const std::string& uid, const std::string& resource = "repairs") {
  return {.method = Method::Delete,
          .target = "/apis/repair.example.com/v1/namespaces/repair/" + resource + "/node-a",
          .body = {{"preconditions", {{"uid", uid}}}},
          .status = 200};
}

AnsweredRequest node(const char* operations) {
  return {.method = Method::Patch, .target = "/api/v1/nodes/a", .body = json::parse(operations), .status = 200};
}

AnsweredRequest limit(std::int64_t value, const std::string& uid = "u") {
  return {.method = Method::Patch,
          .target = kJob,
          .body = {{"metadata", {{"uid", uid}}}, {"spec", {{"backoffLimit", value}}}},
          .status = 200};
}

/// What breaks when these are sent one after the other: the invariants' names, in order.
template <class... Requests>
std::string broken_by(const Requests&... requests) {
  Conduct conduct;
  (conduct.take(requests), ...);
  std::string names;
  for (const auto& text : conduct.take_broken()) names += text.substr(0, text.find(':')) + " ";
  return names;
}

}  // namespace

TEST_CASE("an object of another's kind bears our marks, and is deleted by its UID") {
  CHECK(broken_by(object(), object_deletion("u")).empty());
  CHECK(broken_by(object("")) == "I14 ");
  CHECK(broken_by(object("device-health-controller", "")) == "I14 ");
  CHECK(broken_by(object("device-health-controller", "i", "x")) == "I14 ");
  CHECK(broken_by(object_deletion("u")) == "I14 ");
  CHECK(broken_by(object(), object_deletion("")) == "I14 ");
  CHECK(broken_by(object(), object_deletion("u", "resets")) == "I14 ");
}

TEST_CASE("An eviction names the UID, and succeeds once for each") {
  CHECK(broken_by(eviction("u"), eviction("v")).empty());
  CHECK(broken_by(eviction("u", 429), eviction("u", 500), eviction("u")).empty());
  CHECK(broken_by(eviction("u"), eviction("u")) == "I2 ");
  Conduct conduct;
  conduct.take(eviction("u", 500));
  conduct.eviction_ended("u", true);
  conduct.take(eviction("u"));
  CHECK(conduct.take_broken().size() == 1);
  conduct.eviction_ended("u", false);
  conduct.take(eviction("u"));
  CHECK(conduct.take_broken().empty());
  CHECK(broken_by(eviction("")) == "I1 ");
}

TEST_CASE("A DeviceTaintRule is ours, means one device and never ends a pod, and none but ours is deleted") {
  CHECK(broken_by(good_rule(), deletion("u")).empty());
  CHECK(broken_by(deletion("u")) == "I14 ");
  CHECK(broken_by(good_rule(), deletion("")) == "I14 ");
  CHECK(broken_by(rule({{"driver", "d"}, {"pool", "p"}})) == "I14 ");
  CHECK(broken_by(rule({{"driver", "d"}, {"pool", "p"}, {"device", "gpu-0"}}, "NoExecute")) == "I12 ");
  auto other = good_rule();
  other.target = "/apis/resource.k8s.io/v1/devicetaintrules/maintenance";
  CHECK(broken_by(other) == "I14 ");
}

TEST_CASE("Of a node only our own taint is changed, at a version that was seen") {
  CHECK(broken_by(node(R"([{"op": "replace", "path": "/metadata/resourceVersion", "value": "5"},
                           {"op": "add", "path": "/spec/taints/-", "value": {"key": "device-health.io/unhealthy"}}])"))
            .empty());
  CHECK(broken_by(node(R"([{"op": "replace", "path": "/metadata/resourceVersion", "value": "5"},
                           {"op": "test", "path": "/spec/taints/1/key", "value": "device-health.io/unhealthy"},
                           {"op": "remove", "path": "/spec/taints/1"}])"))
            .empty());
  CHECK(broken_by(node(R"([{"op": "replace", "path": "/metadata/resourceVersion", "value": "5"},
                           {"op": "remove", "path": "/spec/taints/1"}])")) == "I14 ");
  CHECK(broken_by(node(R"([{"op": "replace", "path": "/metadata/resourceVersion", "value": "5"},
                           {"op": "add", "path": "/spec/taints/-", "value": {"key": "team/broken"}}])")) == "I14 ");
  CHECK(broken_by(node(R"([{"op": "replace", "path": "/metadata/resourceVersion", "value": "5"},
                           {"op": "add", "path": "/spec/unschedulable", "value": true}])")) == "I14 ");
  CHECK(broken_by(node(R"([{"op": "add", "path": "/spec/taints/-",
                            "value": {"key": "device-health.io/unhealthy"}}])")) == "I14 ");
}

TEST_CASE("Of a node's status only our conditions are applied, by its UID and under their own name") {
  const auto apply = [](json metadata, const std::string& reason,
                        const std::string& manager = "device-health-hand-over") {
    return AnsweredRequest{
        .method = Method::Patch,
        .target = "/api/v1/nodes/node-a/status?fieldManager=" + manager,
        .body = {{"apiVersion", "v1"},
                 {"kind", "Node"},
                 {"metadata", std::move(metadata)},
                 {"status",
                  {{"conditions", json::array({{{"type", "Bad"}, {"status", "True"}, {"reason", reason}}})}}}},
        .status = 200};
  };
  const json ours = {{"name", "node-a"}, {"uid", "u"}};
  CHECK(broken_by(apply(ours, "DeviceHealthHandedOver"), apply(ours, "DeviceHealthRecovered")).empty());
  CHECK(broken_by(apply(ours, "KubeletReady")) == "I14 ");
  CHECK(broken_by(apply(ours, "DeviceHealthHandedOver", "other")) == "I14 ");
  CHECK(broken_by(apply({{"name", "node-a"}}, "DeviceHealthHandedOver")) == "I1 ");
  CHECK(broken_by(apply({{"name", "node-a"}, {"uid", "u"}, {"labels", json::object()}}, "DeviceHealthHandedOver")) ==
        "I14 ");
  auto more = apply(ours, "DeviceHealthHandedOver");
  more.body["status"]["capacity"] = json::object();
  CHECK(broken_by(more) == "I14 ");
}

TEST_CASE("Of a Job only its limit and our notes are changed, and the limit falls for takeBack alone") {
  CHECK(broken_by(limit(3), limit(4), limit(4)).empty());
  CHECK(broken_by(limit(4), limit(3)) == "I16 ");
  CHECK(broken_by(limit(4), limit(3, "made anew")).empty());
  CHECK(broken_by(limit(4, "")) == "I1 ");
  auto more = limit(4);
  more.body["spec"]["parallelism"] = 1;
  CHECK(broken_by(more) == "I14 ");
  auto tested = limit(4);
  tested.body = json::parse(R"([{"op": "test", "path": "/metadata/uid", "value": "u"},
                                {"op": "add", "path": "/metadata/annotations/device-health.io~1losses", "value": "x"},
                                {"op": "replace", "path": "/spec/backoffLimit", "value": 2}])");
  CHECK(broken_by(limit(2), tested).empty());
  CHECK(broken_by(limit(3), tested) == "I16 ");
  tested.body[1]["path"] = "/metadata/annotations/team";
  CHECK(broken_by(tested) == "I14 ");
  tested.body[1]["path"] = "/metadata/annotations";
  CHECK(broken_by(tested) == "I14 ");
  tested.body[1]["value"] = json::object();
  CHECK(broken_by(tested).empty());
  Conduct conduct;
  conduct.take(limit(4));
  conduct.etcd_restored();
  conduct.take(limit(3));
  CHECK(conduct.take_broken().empty());
  conduct.let_take_back();
  conduct.take(limit(4));
  conduct.take(limit(3));
  CHECK(conduct.take_broken().empty());
}

TEST_CASE("A condition is ours, of one UID, and what is written is bounded") {
  const auto condition = [](const std::string& type, const std::string& message, const std::string& uid) {
    return AnsweredRequest{
        .method = Method::Patch,
        .target = kStatus,
        .body = {{"metadata", {{"uid", uid}}}, {"status", {{"conditions", {{{"type", type}, {"message", message}}}}}}},
        .status = 200};
  };
  const std::string ours = "device-health.io/DeviceUnhealthy";
  CHECK(broken_by(condition(ours, "bad", "u")).empty());
  CHECK(broken_by(condition(ours, "bad", "")) == "I1 ");
  CHECK(broken_by(condition("Ready", "bad", "u")) == "I14 ");
  CHECK(broken_by(condition(ours, std::string(32'769, 'x'), "u")) == "I8 ");
  AnsweredRequest event{.method = Method::Post,
                        .target = "/apis/events.k8s.io/v1/namespaces/default/events",
                        .body = {{"note", std::string(1024, 'x')}},
                        .status = 201};
  CHECK(broken_by(event).empty());
  event.body["note"] = std::string(1025, 'x');
  CHECK(broken_by(event) == "I8 ");
  AnsweredRequest state{.method = Method::Patch,
                        .target = kState,
                        .body = {{"data", {{"incidents.json", std::string(524'288, 'x')}}}},
                        .status = 200};
  CHECK(broken_by(state).empty());
  state.body["data"]["incidents.json"] = std::string(524'289, 'x');
  CHECK(broken_by(state) == "I8 ");
}

TEST_CASE("Whatever else is written is not ours, and to ask for rights or for a dry run writes nothing") {
  CHECK(broken_by(AnsweredRequest{
            .method = Method::Delete, .target = "/api/v1/namespaces/default/pods/a", .body = nullptr, .status = 200}) ==
        "I14 ");
  CHECK(broken_by(AnsweredRequest{
            .method = Method::Put, .target = "/api/v1/nodes/a/status", .body = nullptr, .status = 200}) == "I14 ");
  CHECK(broken_by(AnsweredRequest{.method = Method::Patch,
                                  .target = "/api/v1/namespaces/dhs/configmaps/settings",
                                  .body = nullptr,
                                  .status = 200}) == "I14 ");
  CHECK(broken_by(AnsweredRequest{.method = Method::Post,
                                  .target = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                                  .body = json::object(),
                                  .status = 201},
                  AnsweredRequest{.method = Method::Delete,
                                  .target = "/api/v1/namespaces/default/pods/a?dryRun=All",
                                  .body = nullptr,
                                  .status = 200})
            .empty());
}

TEST_CASE("Who leads is said of the record that was read") {
  const auto lease = [](json metadata, json spec) {
    return AnsweredRequest{.method = Method::Patch,
                           .target = "/apis/coordination.k8s.io/v1/namespaces/dhs/leases/dhc?fieldManager=x",
                           .body = {{"metadata", std::move(metadata)}, {"spec", std::move(spec)}},
                           .status = 200};
  };
  const json spec = {{"holderIdentity", "a"}};
  CHECK(broken_by(lease({{"uid", "u"}, {"resourceVersion", "7"}}, spec)).empty());
  CHECK(broken_by(lease({{"uid", "u"}}, spec)) == "I5 ");
  CHECK(broken_by(lease({{"resourceVersion", "7"}}, spec)) == "I5 ");
  auto made = lease({{"name", "dhc"}}, nullptr);
  CHECK(broken_by(made).empty());
  made.method = Method::Delete;
  CHECK(broken_by(made) == "I14 ");
}
