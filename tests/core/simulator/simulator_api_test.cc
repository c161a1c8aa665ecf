// What the simulated API server answers. **Source:** kubernetes-facts sections 0, 7 and 9, kubernetes-tried sections 1,
// 3, 4, 6 and 10, recordings of 1.37.1.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/core/lab.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::Lab;
using namespace std::chrono_literals;
using k8s::Method;

namespace {

constexpr auto kRule = "/apis/resource.k8s.io/v1/devicetaintrules/r";
constexpr auto kEvents = "/apis/events.k8s.io/v1/namespaces/default/events";

Json rule(std::string_view effect) {
  return {{"spec",
           {{"deviceSelector", {{"driver", "d"}, {"pool", "p"}, {"device", "x"}}},
            {"taint", {{"key", "device-health.io/unhealthy"}, {"effect", effect}}}}}};
}

Json event() {
  return {{"metadata", {{"name", "e"}}},
          {"eventTime", "2026-11-20T18:00:00.000000Z"},
          {"reportingController", "device-health.io/controller"},
          {"reportingInstance", "x"},
          {"action", "Evict"},
          {"reason", "Evicted"},
          {"type", "Normal"},
          {"regarding", {{"kind", "Pod"}, {"namespace", "default"}, {"name", "p"}}}};
}

std::vector<Json> lines(const std::string& bytes) {
  std::vector<Json> out;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto end = bytes.find('\n', at);
    REQUIRE(end != std::string::npos);
    out.push_back(Json::parse(bytes.substr(at, end - at)));
    at = end + 1;
  }
  return out;
}

/// One bare pod without devices.
struct OnePod : Lab {
  OnePod() {
    cluster.add_node({"node-a", {}, {}, {}});
    cluster.create_pod("default", "p", {});
    run_for(3s);
  }
};

std::vector<Json> poll(Lab& lab, Answer& answer) {
  REQUIRE(answer.watch);
  return lines(answer.watch->poll(lab.cluster.store(), lab.now).bytes);
}

}  // namespace

TEST_CASE("WatchList gives every object, then the bookmark that ends them, then changes") {
  OnePod lab;
  auto answer = lab.ask(Method::Get,
                        "/api/v1/pods?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&"
                        "resourceVersionMatch=NotOlderThan");
  auto events = poll(lab, answer);
  REQUIRE(events.size() == 2);
  CHECK(events[0]["type"] == "ADDED");
  CHECK(events[1]["type"] == "BOOKMARK");
  CHECK(events[1]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true");
  lab.cluster.crash_pod("default", "p", 1);
  events = poll(lab, answer);
  REQUIRE(events.size() == 1);
  CHECK(events[0]["type"] == "MODIFIED");
  lab.ask(Method::Delete, "/api/v1/namespaces/default/pods/p", R"({"gracePeriodSeconds":0})");
  events = poll(lab, answer);
  REQUIRE(!events.empty());
  CHECK(events.back()["type"] == "DELETED");
}

TEST_CASE("a server without WatchList answers 422") {
  Lab lab;
  lab.cluster.settings().watch_list = false;
  const auto answer =
      lab.ask(Method::Get, "/api/v1/pods?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
  CHECK(answer.status == 422);
  CHECK(lab.body_of(answer)["reason"] == "Invalid");
}

TEST_CASE("a watch from before a compaction answers 200 with one ERROR event of code 410, an open one goes on") {
  OnePod lab;
  auto open =
      lab.ask(Method::Get, "/api/v1/pods?watch=true&resourceVersion=" + std::to_string(lab.cluster.store().rv()));
  CHECK(poll(lab, open).empty());
  lab.cluster.create_pod("default", "q", {});
  lab.cluster.compact();
  auto late = lab.ask(Method::Get, "/api/v1/pods?watch=true&resourceVersion=1");
  CHECK(late.status == 200);
  const auto output = late.watch->poll(lab.cluster.store(), lab.now);
  CHECK(output.ended);
  const auto events = lines(output.bytes);
  REQUIRE(events.size() == 1);
  CHECK(events[0]["type"] == "ERROR");
  CHECK(events[0]["object"]["code"] == 410);
  CHECK(events[0]["object"]["reason"] == "Expired");
  CHECK(!poll(lab, open).empty());
}

TEST_CASE("a watch sends bookmarks each minute and ends after timeoutSeconds") {
  OnePod lab;
  auto answer = lab.ask(Method::Get,
                        fmt::format("/api/v1/pods?watch=1&allowWatchBookmarks=1&timeoutSeconds=90&resourceVersion={}",
                                    lab.cluster.store().rv()));
  CHECK(poll(lab, answer).empty());
  lab.run_for(60s);
  const auto events = poll(lab, answer);
  REQUIRE(events.size() == 1);
  CHECK(events[0]["type"] == "BOOKMARK");
  CHECK(!answer.watch->poll(lab.cluster.store(), lab.now).ended);
  lab.run_for(30s);
  CHECK(answer.watch->poll(lab.cluster.store(), lab.now).ended);
}

TEST_CASE("an object that leaves a watch's selection is reported as deleted") {
  OnePod lab;
  auto answer = lab.ask(Method::Get, "/api/v1/pods?watch=1&fieldSelector=status.phase%3DRunning&resourceVersion=0");
  CHECK(poll(lab, answer).size() == 1);
  lab.cluster.store().edit(Res::Pods, {"default", "p"}, [](Json& pod) { pod["status"]["phase"] = "Failed"; });
  const auto events = poll(lab, answer);
  REQUIRE(events.size() == 1);
  CHECK(events[0]["type"] == "DELETED");
}

TEST_CASE("pages of a list are one snapshot, and a token from before a compaction is 410") {
  Lab lab;
  for (const auto* name : {"a", "b", "c"}) lab.cluster.set_config_map("default", name, {});
  const std::string path = "/api/v1/namespaces/default/configmaps?limit=2";
  const auto first = lab.body_of(lab.ask(Method::Get, path));
  REQUIRE(first["items"].size() == 2);
  const auto token = first["metadata"]["continue"].get<std::string>();
  lab.ask(Method::Delete, "/api/v1/namespaces/default/configmaps/c");
  const auto second = lab.body_of(lab.ask(Method::Get, path + "&continue=" + k8s::percent_encode(token)));
  REQUIRE(second["items"].size() == 1);
  CHECK(second["items"][0]["metadata"]["name"] == "c");
  CHECK(second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]);
  lab.cluster.compact();
  CHECK(lab.ask(Method::Get, path + "&continue=" + k8s::percent_encode(token)).status == 410);
  CHECK(lab.ask(Method::Get, path + "&continue=nonsense").status == 400);
}

TEST_CASE("PartialObjectMetadata and Tables are given to those who accept them") {
  OnePod lab;
  const auto partial =
      lab.body_of(lab.ask(Method::Get, "/api/v1/pods", "", "",
                          "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"));
  CHECK(partial["kind"] == "PartialObjectMetadataList");
  CHECK(!partial["items"][0].contains("spec"));
  const auto accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
  const auto table = lab.body_of(lab.ask(Method::Get, "/api/v1/namespaces/default/pods", "", "", accept));
  CHECK(table["kind"] == "Table");
  CHECK(table["rows"].size() == 1);
  CHECK(table["rows"][0]["cells"].size() == table["columnDefinitions"].size());
  auto watch = lab.ask(Method::Get, "/api/v1/namespaces/default/pods?watch=1&resourceVersion=0", "", "", accept);
  CHECK(poll(lab, watch)[0]["object"]["kind"] == "Table");
}

TEST_CASE("a condition by server-side apply: the same again writes nothing, none removes it, a wrong UID is 422") {
  OnePod lab;
  const std::string path = "/api/v1/namespaces/default/pods/p/status";
  const Json condition = {{"type", "device-health.io/DeviceUnhealthy"}, {"status", "True"}, {"reason", "R"}};
  Json wanted = {{"metadata", {{"uid", lab.uid("p")}}}, {"status", {{"conditions", Json::array({condition})}}}};
  CHECK(lab.apply(path, wanted).status == 200);
  const auto rv = lab.cluster.store().rv();
  CHECK(lab.apply(path, wanted).status == 200);
  CHECK(lab.cluster.store().rv() == rv);
  CHECK(condition_status(lab.pod("p"), "Ready") == "True");
  CHECK(lab.pod("p")["metadata"]["managedFields"][0]["operation"] == "Apply");
  wanted["metadata"]["uid"] = "other";
  const auto refused = lab.apply(path, wanted);
  CHECK(refused.status == 422);
  CHECK(lab.body_of(refused)["details"]["causes"][0]["field"] == "metadata.uid");
  CHECK(lab.apply(path, {{"status", {{"conditions", Json::array()}}}}).status == 200);
  CHECK(condition_status(lab.pod("p"), "device-health.io/DeviceUnhealthy").empty());
  CHECK(condition_status(lab.pod("p"), "Ready") == "True");
  CHECK(lab.apply("/api/v1/namespaces/default/pods/none/status", {{"status", Json::object()}}).status == 404);
}

TEST_CASE(
    "a rule by server-side apply: effects change, an operator's patch makes a conflict, a deleted rule with its UID is "
    "409") {
  Lab lab;
  CHECK(lab.apply(kRule, rule("None")).status == 201);
  lab.run_for(1s);
  CHECK(lab.cluster_object(Res::TaintRules, "r")["status"]["conditions"][0]["reason"] == "NoEffect");
  CHECK(lab.apply(kRule, rule("NoSchedule")).status == 200);
  lab.run_for(1s);
  const auto stored = lab.cluster_object(Res::TaintRules, "r");
  CHECK(stored["metadata"]["generation"] == 2);
  CHECK(stored["status"]["conditions"][0]["reason"] == "OtherEffect");
  CHECK(lab.merge(kRule, {{"spec", {{"taint", {{"effect", "None"}}}}}}).status == 200);
  const auto conflict = lab.apply(kRule, rule("NoSchedule"));
  CHECK(conflict.status == 409);
  CHECK(lab.body_of(conflict)["details"]["causes"][0]["reason"] == "FieldManagerConflict");
  CHECK(lab.body_of(conflict)["details"]["causes"][0]["field"] == ".spec.taint.effect");
  CHECK(lab.apply(kRule, rule("None")).status == 200);
  CHECK(lab.apply("/apis/resource.k8s.io/v1/devicetaintrules/other", rule("Nope")).status == 422);
  auto with_uid = rule("None");
  with_uid["metadata"]["uid"] = uid_of(stored);
  lab.ask(Method::Delete, kRule, R"({"preconditions":{"uid":"wrong"}})");
  CHECK(!lab.cluster_object(Res::TaintRules, "r").is_null());
  CHECK(lab.ask(Method::Delete, kRule).status == 200);
  CHECK(lab.apply(kRule, with_uid).status == 409);
  CHECK(lab.apply(kRule, rule("None")).status == 201);
}

TEST_CASE("a stale version in a patch is 409, a wrong UID 422, a failed JSON patch test 422") {
  OnePod lab;
  const std::string node = "/api/v1/nodes/node-a";
  CHECK(lab.merge(node, {{"metadata", {{"resourceVersion", "1"}}}}).status == 409);
  CHECK(lab.merge(node, {{"metadata", {{"uid", "x"}}}}).status == 422);
  const auto patch = [&](const char* body) {
    return lab.ask(Method::Patch, node, body, "application/json-patch+json").status;
  };
  CHECK(patch(R"([{"op":"test","path":"/metadata/resourceVersion","value":"1"}])") == 422);
  CHECK(patch(R"([{"op":"replace","path":"/metadata/resourceVersion","value":"1"}])") == 409);
  CHECK(patch(R"([{"op":"add","path":"/spec/unschedulable","value":true}])") == 200);
}

TEST_CASE("an Event needs six digits (400), at most 1,024 characters (422) and a new name (409)") {
  Lab lab;
  const auto create = [&](const Json& body) { return lab.ask(Method::Post, kEvents, body.dump()).status; };
  CHECK(create(event()) == 201);
  CHECK(create(event()) == 409);
  auto bad = event();
  bad["metadata"]["name"] = "f";
  bad["eventTime"] = "2026-11-20T18:00:00Z";
  CHECK(create(bad) == 400);
  bad["eventTime"] = "2026-11-20T18:00:00.000000Z";
  bad["note"] = std::string(1025, 'x');
  CHECK(create(bad) == 422);
  bad["note"] = std::string(1024, 'x');
  CHECK(create(bad) == 201);
  const auto core = lab.body_of(lab.ask(Method::Get, "/api/v1/events?fieldSelector=involvedObject.name%3Dp"));
  CHECK(core["items"].size() == 2);
  CHECK(core["items"][0]["involvedObject"]["name"] == "p");
}

TEST_CASE("a Lease's times have six digits or are absent (an apply is answered 500), its numbers fit (422)") {
  Lab lab;
  const auto apply = [&](const Json& spec) {
    const Json lease = {
        {"apiVersion", "coordination.k8s.io/v1"}, {"kind", "Lease"}, {"metadata", {{"name", "l"}}}, {"spec", spec}};
    return lab.ask(Method::Patch, "/apis/coordination.k8s.io/v1/namespaces/default/leases/l?fieldManager=us&force=true",
                   lease.dump(), "application/apply-patch+yaml");
  };
  CHECK(apply({{"holderIdentity", "x\n"}, {"leaseTransitions", 2147483647}}).status == 201);
  for (const auto* name : {"acquireTime", "renewTime"}) {
    CHECK(apply({{name, "2026-11-20T12:00:00.000000Z"}}).status == 200);
    CHECK(apply({{name, ""}}).status == 500);
    CHECK(apply({{name, "2026-11-20T12:00:00Z"}}).status == 500);
  }
  const auto refused = apply({{"leaseTransitions", 2147483648}});
  CHECK(refused.status == 422);
  CHECK(refused.body.find("Invalid value: -2147483648: must be greater than or equal to 0") != std::string::npos);
  CHECK(apply({{"leaseTransitions", -1}}).status == 422);
  CHECK(apply({{"leaseDurationSeconds", 0}}).status == 422);
}

TEST_CASE("a denied verb is 403 with the server's sentence, a wrong token 401, an unserved kind 404") {
  Lab lab;
  lab.cluster.settings().user = "system:anonymous";
  lab.cluster.settings().denials = {{"list", "pods"}};
  const auto answer = lab.ask(Method::Get, "/api/v1/pods");
  CHECK(answer.status == 403);
  CHECK(lab.body_of(answer)["message"] ==
        "pods is forbidden: User \"system:anonymous\" cannot list resource \"pods\" in API group \"\" at the cluster "
        "scope");
  const Json review = {{"spec", {{"resourceAttributes", {{"verb", "list"}, {"resource", "pods"}}}}}};
  const auto reviewed = lab.ask(Method::Post, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review.dump());
  CHECK(reviewed.status == 201);
  CHECK(lab.body_of(reviewed)["status"]["allowed"] == false);
  lab.cluster.settings().unserved = {Res::TaintRules};
  CHECK(lab.ask(Method::Get, "/apis/resource.k8s.io/v1/devicetaintrules").status == 404);
  lab.cluster.settings().token = "secret";
  CHECK(lab.ask(Method::Get, "/api/v1/nodes").status == 401);
}

TEST_CASE("discovery names every group and resource that is served") {
  Lab lab;
  CHECK(lab.body_of(lab.ask(Method::Get, "/version"))["gitVersion"] == "v1.37.1");
  CHECK(lab.body_of(lab.ask(Method::Get, "/api"))["versions"] == Json::array({"v1"}));
  for (const auto& group : lab.body_of(lab.ask(Method::Get, "/apis"))["groups"]) {
    const auto version = group["preferredVersion"]["groupVersion"].get<std::string>();
    CHECK(lab.body_of(lab.ask(Method::Get, "/apis/" + version))["resources"].size() > 0);
  }
  CHECK(lab.ask(Method::Get, "/apis/nosuch.io/v1").status == 404);
}

TEST_CASE("scripted faults hit as many requests as they say") {
  Lab lab;
  lab.cluster.faults().add({.method = Method::Get, .path_contains = "/nodes", .count = 2, .status = 503});
  CHECK(lab.ask(Method::Get, "/api/v1/pods").status == 200);
  CHECK(lab.ask(Method::Get, "/api/v1/nodes").status == 503);
  CHECK(lab.ask(Method::Get, "/api/v1/nodes").status == 503);
  CHECK(lab.ask(Method::Get, "/api/v1/nodes").status == 200);
  lab.cluster.faults().add({.path_contains = "watch=", .cut_after = 10});
  auto watch = lab.ask(Method::Get, "/api/v1/namespaces?watch=1&resourceVersion=0");
  const auto output = watch.watch->poll(lab.cluster.store(), lab.now);
  CHECK(output.bytes.size() == 10);
  CHECK(output.cut);
}
