#include "reconcilers/uninstall/plan.h"

#include <chrono>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/rfc3339.h"
#include "reconcilers/uninstall/build.h"

using namespace dhc;
using namespace dhc::uninstall;
using Json = nlohmann::json;

namespace {

Json object(const std::string& name, const std::string& ns = {}) {
  Json metadata = {{"name", name}, {"uid", "uid-" + name}, {"resourceVersion", "7"}};
  if (!ns.empty()) metadata["namespace"] = ns;
  return {{"metadata", std::move(metadata)}};
}

std::string list_of(const std::vector<Json>& items, const std::string& next = {}) {
  return Json{{"metadata", {{"continue", next}}}, {"items", items}}.dump();
}

Found find(k8s::Kind kind, const std::vector<Json>& items, const std::string& version = "v1") {
  auto found = find_traces(kind, version, list_of(items));
  REQUIRE(found);
  return *std::move(found);
}

std::vector<std::string> names(const std::vector<Trace>& traces) {
  std::vector<std::string> all;
  for (const Trace& trace : traces) all.push_back(to_string(trace));
  return all;
}

using Names = std::vector<std::string>;

Json rule(const std::string& name, const std::string& manager, const std::string& key) {
  Json json = object(name);
  if (!manager.empty()) json["metadata"]["labels"] = {{"app.kubernetes.io/managed-by", manager}};
  json["spec"] = {{"taint", {{"key", key}, {"effect", "NoSchedule"}}}};
  return json;
}

Json taint_of(const std::string& key, const std::string& effect = "NoSchedule",
              const std::string& value = "Unhealthy") {
  return {{"key", key}, {"value", value}, {"effect", effect}};
}

Json node(const std::string& name, const std::vector<Json>& taints) {
  Json json = object(name);
  json["spec"] = {{"taints", taints}, {"unschedulable", true}};
  return json;
}

/// A pod with a condition of our type, owned by `manager` through `operation`.
Json pod(const std::string& name, const std::string& manager, const std::string& operation) {
  Json json = object(name, "ns");
  json["status"]["conditions"] = {{{"type", "Ready"}, {"status", "True"}},
                                  {{"type", "device-health.io/DeviceUnhealthy"}, {"status", "True"}}};
  const Json fields = {
      {"f:status", {{"f:conditions", {{R"(k:{"type":"device-health.io/DeviceUnhealthy"})", {{"f:status", {}}}}}}}}};
  json["metadata"]["managedFields"] = {
      {{"manager", "kubelet"}, {"operation", "Update"}, {"fieldsV1", {{"f:status", {{"f:phase", {}}}}}}},
      {{"manager", manager}, {"operation", operation}, {"subresource", "status"}, {"fieldsV1", fields}}};
  return json;
}

/// Gives the pod the annotation of a notice, owned by `manager` through an apply.
Json noticed(Json pod, const std::string& manager) {
  pod["metadata"]["annotations"] = {{"device-health.io/notice", "{}"}, {"device-health.io/notice-response", "done"}};
  pod["metadata"]["managedFields"].push_back(
      {{"manager", manager},
       {"operation", "Apply"},
       {"subresource", "status"},
       {"fieldsV1", {{"f:metadata", {{"f:annotations", {{"f:device-health.io/notice", Json::object()}}}}}}}});
  return pod;
}

Json job(const std::string& name, const std::vector<std::string>& keys, const std::vector<std::string>& ours) {
  Json json = object(name, "ns");
  Json fields = Json::object();
  for (const auto& key : keys) json["metadata"]["annotations"][key] = "x";
  for (const auto& key : ours) fields["f:" + key] = Json::object();
  json["metadata"]["managedFields"] = {{{"manager", "device-health-controller"},
                                        {"operation", "Update"},
                                        {"fieldsV1", {{"f:metadata", {{"f:annotations", fields}}}}}}};
  return json;
}

}  // namespace

TEST_CASE("a rule is ours by label and prefix together") {
  const std::string ours = "device-health-controller";
  const std::string key = "device-health.io/unhealthy";
  const auto found = find(k8s::Kind::DeviceTaintRule,
                          {rule("dhc-1", ours, key), rule("dhc-2", "", key), rule("by-hand", ours, key),
                           rule("dhc-3", "someone", "example.com/bad"), rule("theirs", "", "example.com/bad")},
                          "resource.k8s.io/v1beta2");
  CHECK(names(found.traces) == Names{"DeviceTaintRule dhc-1"});
  const std::string why = " taints with device-health.io/unhealthy, but has not both our label and our prefix";
  CHECK(found.left == Names{"DeviceTaintRule dhc-2" + why, "DeviceTaintRule by-hand" + why});
  const auto request = build_removal(found.traces[0]);
  REQUIRE(request);
  CHECK(request->method == k8s::Method::Delete);
  CHECK(request->target == "/apis/resource.k8s.io/v1beta2/devicetaintrules/dhc-1");
  CHECK(Json::parse(request->body)["preconditions"] == Json{{"uid", "uid-dhc-1"}});
}

TEST_CASE(
    "of a node's taints only those go that are as we make them, the last one first, and an operator's with our key is "
    "named") {
  const auto found =
      find(k8s::Kind::Node,
           {node("a", {taint_of("device-health.io/unhealthy"), taint_of("node.kubernetes.io/unschedulable"),
                       taint_of("device-health.io/unhealthy"), taint_of("device-health.io/unhealthy", "NoExecute"),
                       taint_of("device-health.io/unhealthy", "NoSchedule", "mine")}),
            node("b", {taint_of("example.com/device-health.io"), taint_of("device-health.io/unhealthy-too")}),
            node("c", {})});
  REQUIRE(names(found.traces) == Names{"taint device-health.io/unhealthy of Node a"});
  const std::string why = " of Node a: we taint with value Unhealthy and effect NoSchedule only";
  CHECK(found.left == Names{"device-health.io/unhealthy=Unhealthy:NoExecute" + why,
                            "device-health.io/unhealthy=mine:NoSchedule" + why});
  const auto request = build_removal(found.traces[0]);
  REQUIRE(request);
  CHECK(request->target == "/api/v1/nodes/a?fieldManager=device-health-controller");
  CHECK(request->body == R"([{"op":"replace","path":"/metadata/resourceVersion","value":"7"},)"
                         R"({"op":"remove","path":"/spec/taints/2"},{"op":"remove","path":"/spec/taints/0"}])");
}

TEST_CASE("a pod's notice goes with its condition or alone, another client's stays, and so does the answer") {
  const auto found = find(
      k8s::Kind::Pod, {noticed(pod("a", "device-health-controller", "Apply"), "device-health-controller"),
                       noticed(object("b", "ns"), "device-health-controller"), noticed(object("c", "ns"), "kubectl")});
  CHECK(names(found.traces) == Names{"condition device-health.io/DeviceUnhealthy of Pod ns/a",
                                     "annotation device-health.io/notice of Pod ns/b"});
  CHECK(found.left ==
        Names{"annotation device-health.io/notice of Pod ns/c: device-health-controller does not own it"});
  const auto request = build_removal(found.traces.back());
  REQUIRE(request);
  CHECK(request->target == "/api/v1/namespaces/ns/pods/b/status?fieldManager=device-health-controller");
  CHECK(request->body.find("annotations") == std::string::npos);
}

TEST_CASE(
    "a node's conditions go that our field manager for them applied, whatever their types, and others' are named") {
  Json json = object("a");
  json["status"]["conditions"] = {
      {{"type", "Ready"}, {"status", "True"}, {"reason", "KubeletReady"}},
      {{"type", "a.example.com/Bad"}, {"status", "False"}, {"reason", "DeviceHealthRecovered"}},
      {{"type", "Theirs"}, {"status", "True"}, {"reason", "DeviceHealthHandedOver"}}};
  const auto owned_by = [](const std::string& manager, const std::string& type) {
    const Json fields = {{"f:status", {{"f:conditions", {{"k:{\"type\":\"" + type + "\"}", {{"f:status", {}}}}}}}}};
    return Json{{"manager", manager}, {"operation", "Apply"}, {"subresource", "status"}, {"fieldsV1", fields}};
  };
  json["metadata"]["managedFields"] = {owned_by("device-health-hand-over", "a.example.com/Bad"),
                                       owned_by("npd", "Theirs")};
  const auto found = find(k8s::Kind::Node, {json, node("b", {})});
  REQUIRE(names(found.traces) == Names{"condition a.example.com/Bad of Node a"});
  CHECK(found.left == Names{"condition Theirs of Node a: device-health-hand-over does not own it"});
  const auto request = build_removal(found.traces[0]);
  REQUIRE(request);
  CHECK(request->target == "/api/v1/nodes/a/status?fieldManager=device-health-hand-over");
  CHECK(Json::parse(request->body) ==
        Json::parse(R"({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "uid": "uid-a"},
                        "status": {"conditions": []}})"));
}

TEST_CASE("a pod's condition goes if our field manager applied it, and is named if somebody else wrote it") {
  Json plain = object("d", "ns");
  plain["status"]["conditions"] = {{{"type", "Ready"}, {"status", "True"}}};
  const auto found = find(k8s::Kind::Pod, {pod("a", "device-health-controller", "Apply"), pod("b", "kubectl", "Update"),
                                           pod("c", "device-health-controller", "Update"), plain});
  CHECK(names(found.traces) == Names{"condition device-health.io/DeviceUnhealthy of Pod ns/a"});
  CHECK(found.left ==
        Names{"condition device-health.io/DeviceUnhealthy of Pod ns/b: device-health-controller does not own it",
              "condition device-health.io/DeviceUnhealthy of Pod ns/c: device-health-controller does not own it"});
  const auto request = build_removal(found.traces[0]);
  REQUIRE(request);
  CHECK(request->target == "/api/v1/namespaces/ns/pods/a/status?fieldManager=device-health-controller");
  CHECK(request->headers[1] == k8s::Header{"Content-Type", "application/apply-patch+yaml"});
  const Json body = Json::parse(request->body);
  CHECK(body["status"] == Json{{"conditions", Json::array()}});
  CHECK(body["metadata"]["uid"] == "uid-a");
}

TEST_CASE("a Job loses the annotations that we wrote and keeps those of people") {
  const std::string credits = "device-health.io/retry-credits";
  const std::string opt_out = "device-health.io/opt-out";
  const auto found = find(
      k8s::Kind::Job, {job("a", {credits, opt_out, "example.com/x"}, {credits, opt_out, "example.com/x"}),
                       job("b", {"device-health.io/acknowledge", "device-health.io/brake-release"},
                           {"device-health.io/acknowledge", "device-health.io/brake-release"}),
                       job("c", {"device-health.io/note"}, {}), job("d", {"device-health.io"}, {"device-health.io"})});
  REQUIRE(names(found.traces) == Names{"annotation device-health.io/retry-credits of Job ns/a"});
  CHECK(found.left == Names{"annotation device-health.io/note of Job ns/c: device-health-controller did not write it"});
  const auto request = build_removal(found.traces[0]);
  REQUIRE(request);
  CHECK(request->target == "/apis/batch/v1/namespaces/ns/jobs/a?fieldManager=device-health-controller");
  CHECK(request->headers[1] == k8s::Header{"Content-Type", "application/merge-patch+json"});
  CHECK(Json::parse(request->body) == Json{{"metadata", {{"uid", "uid-a"}, {"annotations", {{credits, nullptr}}}}}});
}

TEST_CASE("the ConfigMap and the Lease go if our label is on them") {
  Json map = object("device-health-incidents", "sys");
  const auto plain = find_named(TraceKind::StateMap, map.dump());
  REQUIRE(plain);
  CHECK(plain->traces.empty());
  CHECK(plain->left == Names{"ConfigMap sys/device-health-incidents: it has not our label"});
  map["metadata"]["labels"] = {{"app.kubernetes.io/managed-by", "device-health-controller"}};
  const auto ours = find_named(TraceKind::StateMap, map.dump());
  REQUIRE(names(ours->traces) == Names{"ConfigMap sys/device-health-incidents"});
  CHECK(build_removal(ours->traces[0])->target == "/api/v1/namespaces/sys/configmaps/device-health-incidents");
  map["metadata"]["labels"] = {{"app.kubernetes.io/managed-by", "Helm"}};
  const auto theirs = find_named(TraceKind::StateMap, map.dump());
  CHECK(theirs->traces.empty());
  CHECK(theirs->left == Names{"ConfigMap sys/device-health-incidents: it is managed by Helm"});
  Json labelled = object("device-health-controller", "sys");
  labelled["metadata"]["labels"] = {{"app.kubernetes.io/managed-by", "device-health-controller"}};
  const auto lease = find_named(TraceKind::Lease, labelled.dump());
  CHECK(build_removal(lease->traces.at(0))->target ==
        "/apis/coordination.k8s.io/v1/namespaces/sys/leases/device-health-controller");
}

TEST_CASE("all of one name are read in the controller's own namespace, that of 0.1.0 too") {
  CHECK(build_get(TraceKind::StateMap, "sys")->target == "/api/v1/namespaces/sys/configmaps/device-health-incidents");
  CHECK(build_get(TraceKind::EarlierStateMap, "sys")->target ==
        "/api/v1/namespaces/sys/configmaps/device-health-state");
  CHECK(build_get(TraceKind::StatusMap, "sys")->target == "/api/v1/namespaces/sys/configmaps/device-health-status");
  CHECK(build_get(TraceKind::Lease, "sys")->target ==
        "/apis/coordination.k8s.io/v1/namespaces/sys/leases/device-health-controller");
  CHECK_FALSE(build_get(TraceKind::Lease, ""));
  CHECK_FALSE(build_get(TraceKind::Lease, "a/b"));
  CHECK_FALSE(build_get(TraceKind::Rule, "sys"));
}

TEST_CASE("nothing is removed without a UID, a version of the node or a usable name") {
  Trace trace;
  trace.name = "a";
  trace.ns = "ns";
  for (const TraceKind kind : {TraceKind::Rule, TraceKind::NodeTaint, TraceKind::Condition, TraceKind::Annotation,
                               TraceKind::StateMap, TraceKind::EarlierStateMap, TraceKind::Lease}) {
    trace.kind = kind;
    trace.uid = {};
    CHECK_FALSE(build_removal(trace));
    trace.uid = "u";
    CHECK(build_removal(trace).has_value() == (kind != TraceKind::NodeTaint));
    trace.name = "a/b";
    CHECK_FALSE(build_removal(trace));
    trace.name = "a";
  }
}

namespace {
k8s::Lease lease_of(const std::string& holder, const std::string& renewed, std::int64_t duration = 15) {
  k8s::Lease lease{.meta = {}, .holder = holder, .duration_seconds = duration};
  lease.meta.uid = "u";
  lease.renew_time = renewed;
  return lease;
}
}  // namespace

TEST_CASE("a holder is waited for until its time is over by our clock, however old or new its own time looks") {
  const MonoTime start{Seconds(100)};
  for (const auto& [asked, given] : {std::pair{15, 15}, std::pair{1, 15}, std::pair{40, 40}}) {
    LeaseLooks looks;
    looks.add(lease_of("pod-1", "1999-01-01T00:00:00.000000Z", asked), start);
    CHECK(looks.certain_at() == start + Seconds(given));
    looks.add(lease_of("pod-1", "1999-01-01T00:00:00.000000Z", asked), start + Seconds(9));
    CHECK(looks.certain_at() == start + Seconds(given));
    CHECK_FALSE(looks.running());
    CHECK(looks.holder() == "pod-1");
  }
}

TEST_CASE("a Lease that is renewed, taken or made and taken between two looks has a controller behind it") {
  const MonoTime start{Seconds(100)};
  const auto held = lease_of("pod-1", "2026-11-20T12:00:00.000000Z");
  const auto free = lease_of("", "2026-11-20T12:00:00.000000Z", 1);
  for (const std::optional<k8s::Lease>& first :
       {std::optional(held), std::optional(free), std::optional<k8s::Lease>()}) {
    LeaseLooks looks;
    looks.add(first, start);
    looks.add(lease_of("pod-2", "2026-11-20T12:00:02.000000Z"), start + Seconds(2));
    CHECK(looks.running() == "pod-2 renewed the Lease while we looked");
  }
}

TEST_CASE("a Lease that is given up while we look, or was free, or is none leaves a standby the time to take it") {
  const MonoTime start{Seconds(100)};
  const auto free = lease_of("", "2026-11-20T12:00:00.000000Z", 1);
  LeaseLooks looks;
  looks.add(lease_of("pod-1", "2026-11-20T11:59:59.000000Z"), start);
  looks.add(free, start + Seconds(1));
  CHECK_FALSE(looks.running());
  CHECK(looks.certain_at() == start + Seconds(6));
  LeaseLooks none;
  none.add(std::nullopt, start);
  CHECK(none.certain_at() == start + Seconds(5));
  none.add(lease_of("", "", 0), start + Seconds(2));
  CHECK(none.certain_at() == start + Seconds(7));
  CHECK_FALSE(none.running());
}

TEST_CASE("pages go on by their token, and an answer that is no list is not an empty cluster") {
  const auto page = find_traces(k8s::Kind::Node, "v1", list_of({}, "more"));
  REQUIRE(page);
  CHECK(page->continue_token == "more");
  for (const char* body : {"", "[]", "{}", "{\"items\":", "null"}) {
    CAPTURE(body);
    const auto bad = find_traces(k8s::Kind::Node, "v1", body);
    REQUIRE_FALSE(bad);
    CHECK(bad.error().kind == ErrorKind::Malformed);
  }
  CHECK_FALSE(find_traces(k8s::Kind::ResourceClaim, "v1", list_of({object("a")})));
}

TEST_CASE("objects of odd shapes are no traces and no crash") {
  const std::vector<Json> odd = {Json(nullptr), Json(5), Json::array({1}), Json{{"metadata", 3}},
                                 Json{{"metadata", {{"annotations", 5}, {"managedFields", "x"}, {"labels", {1}}}},
                                      {"spec", {{"taints", {1, nullptr, {{"key", 4}}}}, {"taint", 3}}},
                                      {"status", {{"conditions", {nullptr, {{"type", 3}}}}}}}};
  for (const Place& place : kPlaces) {
    const auto found = find(place.kind, odd);
    CHECK(found.traces.empty());
    CHECK(found.left.empty());
  }
}

TEST_CASE("The state names the objects by which nodes were handed over, and they go by their path and UID") {
  const Json made = {{"slot", "s-1"},
                     {"phase", "Made"},
                     {"node", "node-a"},
                     {"policy", "p"},
                     {"apiVersion", "a.b/v1"},
                     {"kind", "Repair"},
                     {"namespace", "repair"},
                     {"name", "node-a"},
                     {"incident", "i-1"},
                     {"incidents", {"i-1"}},
                     {"at", "2026-11-26T00:00:00Z"}};
  auto noted = made;
  noted["slot"] = "s-2";
  noted["phase"] = "Noted";
  noted["name"] = "node-b";
  auto over = made;
  over["slot"] = "s-3";
  over["phase"] = "Over";
  const Json state = {{"version", 2}, {"handedOver", {made, noted, over}}, {"devices", Json::array()}};
  const auto found = remembered_objects(Json{{"data", {{"incidents.json", state.dump()}}}}.dump());
  REQUIRE(found.size() == 2);
  CHECK(title_of(found[0]) == "Repair repair/node-a");
  CHECK(title_of(found[1]) == "Repair repair/node-b");
  const auto trace = trace_of_object(found[0], "/apis/a.b/v1/namespaces/repair/repairs/node-a", "u-1");
  CHECK(to_string(trace) == "Repair repair/node-a");
  CHECK(plural_of(trace.kind) == "objects of hand-over");
  const auto request = build_removal(trace);
  REQUIRE(request);
  CHECK(request->method == k8s::Method::Delete);
  CHECK(request->target == trace.path);
  CHECK(Json::parse(request->body)["preconditions"]["uid"] == "u-1");
  CHECK(!build_removal(trace_of_object(found[0], {}, "u-1")));
  CHECK(!build_removal(trace_of_object(found[0], trace.path, {})));
  for (const auto* none : {"", "[]", "{}", R"({"data":{"incidents.json":"{"}})"})
    CHECK(remembered_objects(none).empty());
}
