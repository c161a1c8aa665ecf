// What the simulated cluster does with device taints, rules and node taints. **Source:** kubernetes-tried sections 4, 5
// and 10, seen on a real 1.37.1.
#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/core/simulator/shapes.h"
#include "tests/support/core/lab.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::Lab;
using namespace std::chrono_literals;
using k8s::Method;

namespace {

constexpr auto kRules = "/apis/resource.k8s.io/v1/devicetaintrules";
constexpr auto kOurRule = "/apis/resource.k8s.io/v1/devicetaintrules/dhc-1";
constexpr auto kNode = "/api/v1/nodes/node-a";
constexpr auto kOurs = "device-health.io/unhealthy";

Json rule(std::string_view device, std::string_view effect) {
  return {{"metadata", {{"labels", {{"app.kubernetes.io/managed-by", "device-health-controller"}}}}},
          {"spec",
           {{"deviceSelector", {{"driver", kDriver}, {"pool", "node-a"}, {"device", device}}},
            {"taint", {{"key", kOurs}, {"value", "unhealthy"}, {"effect", effect}}}}}};
}

/// A node with four DRA devices and four plugin devices, and a pod on gpu-0.
struct TaintLab : Lab {
  TaintLab() {
    cluster.add_node({"node-a", {{kGpu, 4}}, {{kDriver, 4}}, {}});
    run_for(2s);
    cluster.create_pod("default", "p", dra_pod());
    run_for(5s);
    REQUIRE(dra_device("p") == "gpu-0");
  }
  [[nodiscard]] Json stored(const std::string& name = "dhc-1") const { return cluster_object(Res::TaintRules, name); }
  [[nodiscard]] Json condition() const {
    const auto object = stored();
    const auto all = list(object, {"status", "conditions"});
    return all.empty() ? Json() : all[0];
  }
  [[nodiscard]] Json node() const { return cluster_object(Res::Nodes, "node-a"); }
  [[nodiscard]] std::string rv_of(const Json& object) const { return text(object, {"metadata", "resourceVersion"}); }
  /// `wanted` with the identity of what is stored.
  [[nodiscard]] Json pinned(Json wanted) const {
    wanted["metadata"]["uid"] = uid_of(stored());
    wanted["metadata"]["resourceVersion"] = rv_of(stored());
    return wanted;
  }
  [[nodiscard]] std::string cause_of(const Answer& answer) const {
    return text(body_of(answer)["details"]["causes"][0], {"reason"});
  }
  [[nodiscard]] std::vector<std::string> taint_keys() const {
    std::vector<std::string> keys;
    const auto object = node();
    for (const auto& taint : list(object, {"spec", "taints"})) keys.push_back(text(taint, {"key"}));
    return keys;
  }
  [[nodiscard]] std::string uuid_of(const std::string& device) const {
    for (const auto& [name, slice] : cluster.store().all(Res::Slices)) {
      for (const auto& one : list(*slice, {"spec", "devices"})) {
        if (text(one, {"name"}) == device) return text(one, {"attributes", "uuid", "string"});
      }
    }
    return {};
  }
};

}  // namespace

TEST_CASE("a rule is made by an apply without a UID, and the same apply again makes no new version") {
  TaintLab lab;
  CHECK(lab.apply(kOurRule, rule("gpu-0", "NoSchedule")).status == 201);
  lab.run_for(1s);
  const auto rv = lab.cluster.store().rv();
  CHECK(lab.apply(kOurRule, rule("gpu-0", "NoSchedule")).status == 200);
  CHECK(lab.apply(kOurRule, lab.pinned(rule("gpu-0", "NoSchedule"))).status == 200);
  CHECK(lab.cluster.store().rv() == rv);
  CHECK(lab.stored()["metadata"]["generation"] == 1);
}

TEST_CASE("an apply with UID and version: stale is 409, another UID 422, of a deleted rule 409 and nothing is made") {
  TaintLab lab;
  REQUIRE(lab.apply(kOurRule, rule("gpu-0", "None")).status == 201);
  const auto early = lab.pinned(rule("gpu-0", "NoSchedule"));
  lab.run_for(1s);
  // The condition was written in between: that alone makes the version stale.
  const auto stale = lab.apply(kOurRule, early);
  CHECK(stale.status == 409);
  CHECK(lab.cause_of(stale).empty());
  auto other = lab.pinned(rule("gpu-0", "NoSchedule"));
  other["metadata"]["uid"] = "other";
  const auto wrong = lab.apply(kOurRule, other);
  CHECK(wrong.status == 422);
  CHECK(lab.body_of(wrong)["details"]["causes"][0]["field"] == "metadata.uid");
  const auto late = lab.pinned(rule("gpu-0", "NoSchedule"));
  CHECK(lab.apply(kOurRule, late).status == 200);
  CHECK(lab.cluster.kubectl_delete(Res::TaintRules, "", "dhc-1").status == 200);
  const auto gone = lab.apply(kOurRule, late);
  CHECK(gone.status == 409);
  CHECK(lab.cause_of(gone).empty());
  CHECK(text(lab.body_of(gone), {"message"}).find("uid mismatch") != std::string::npos);
  CHECK(lab.stored().is_null());
  CHECK(lab.apply(kOurRule, rule("gpu-0", "NoSchedule")).status == 201);
}

TEST_CASE(
    "after an operator's kubectl patch another value is FieldManagerConflict for ever, the same value is accepted") {
  TaintLab lab;
  REQUIRE(lab.apply(kOurRule, rule("gpu-0", "NoSchedule")).status == 201);
  REQUIRE(
      lab.cluster.kubectl_patch(Res::TaintRules, "", "dhc-1", {{"spec", {{"taint", {{"effect", "None"}}}}}}).status ==
      200);
  for (int i = 0; i < 3; ++i) {
    const auto refused = lab.apply(kOurRule, lab.pinned(rule("gpu-0", "NoSchedule")));
    CHECK(refused.status == 409);
    CHECK(lab.cause_of(refused) == "FieldManagerConflict");
    lab.run_for(60s);
  }
  CHECK(lab.apply(kOurRule, lab.pinned(rule("gpu-0", "None"))).status == 200);
  CHECK(lab.apply(kOurRule, lab.pinned(rule("gpu-0", "NoSchedule"))).status == 409);
}

TEST_CASE("what an operator does is not among the recorded writes and meets no scripted fault") {
  TaintLab lab;
  lab.cluster.faults().add({.count = -1, .status = 503});
  lab.cluster.settings().token = "secret";
  const Json foreign = {
      {"metadata", {{"name", "foreign"}}},
      {"spec", {{"deviceSelector", {{"driver", kDriver}}}, {"taint", {{"key", "k"}, {"effect", "None"}}}}}};
  CHECK(lab.cluster.kubectl_create(Res::TaintRules, foreign).status == 201);
  CHECK(lab.cluster.kubectl_patch(Res::Nodes, "", "node-a", {{"metadata", {{"labels", {{"a", "b"}}}}}}).status == 200);
  CHECK(lab.cluster.kubectl_delete(Res::TaintRules, "", "foreign").status == 200);
  CHECK(lab.cluster.writes().empty());
}

TEST_CASE("EvictionInProgress comes within half a second of each change, for effect None with the counts in words") {
  TaintLab lab;
  REQUIRE(lab.apply(kOurRule, rule("gpu-0", "None")).status == 201);
  CHECK(lab.condition().is_null());
  lab.run_for(500ms);
  CHECK(lab.condition()["type"] == "EvictionInProgress");
  CHECK(lab.condition()["status"] == "False");
  CHECK(lab.condition()["reason"] == "NoEffect");
  CHECK(lab.condition()["observedGeneration"] == 1);
  CHECK(
      lab.condition()["message"] ==
      "1 published device selected. 1 allocated device selected. 1 pod would be evicted in 1 namespace if the effect "
      "was NoExecute. This information will not be updated again. Recreate the DeviceTaintRule to trigger an update.");
  const auto added = text(lab.stored(), {"spec", "taint", "timeAdded"});
  CHECK_FALSE(added.empty());
  lab.run_for(10s);
  REQUIRE(lab.apply(kOurRule, rule("gpu-0", "NoSchedule")).status == 200);
  CHECK(lab.condition()["observedGeneration"] == 1);
  lab.run_for(500ms);
  CHECK(lab.condition()["reason"] == "OtherEffect");
  CHECK(lab.condition()["observedGeneration"] == 2);
  CHECK(text(lab.stored(), {"spec", "taint", "timeAdded"}) != added);
  const auto rv = lab.cluster.store().rv();
  lab.run_for(10min);
  CHECK(lab.cluster.store().rv() == rv);
}

TEST_CASE("the counts of a rule that selects nobody's device") {
  TaintLab lab;
  REQUIRE(lab.apply(kOurRule, rule("gpu-3", "None")).status == 201);
  lab.run_for(500ms);
  CHECK(text(lab.condition(), {"message"})
            .starts_with("1 published device selected. 0 allocated devices selected. 0 pods would be evicted in 0 "
                         "namespaces if"));
}

TEST_CASE("a delete may name UID and version, and one that is not the stored one is 409") {
  TaintLab lab;
  REQUIRE(lab.apply(kOurRule, rule("gpu-0", "NoSchedule")).status == 201);
  const auto before = lab.pinned({});
  lab.run_for(1s);
  const auto remove = [&](const Json& preconditions) {
    return lab.ask(Method::Delete, kOurRule, Json{{"preconditions", preconditions}}.dump()).status;
  };
  CHECK(remove({{"uid", "other"}}) == 409);
  CHECK(remove({{"uid", uid_of(lab.stored())}, {"resourceVersion", text(before, {"metadata", "resourceVersion"})}}) ==
        409);
  CHECK_FALSE(lab.stored().is_null());
  CHECK(remove({{"uid", uid_of(lab.stored())}, {"resourceVersion", lab.rv_of(lab.stored())}}) == 200);
  CHECK(lab.ask(Method::Delete, kOurRule).status == 404);
}

TEST_CASE("the scheduler gives no device that a rule or its driver taints NoSchedule, and gives it again without") {
  TaintLab lab;
  REQUIRE(lab.apply(kOurRule, rule("gpu-1", "NoSchedule")).status == 201);
  REQUIRE(lab.apply("/apis/resource.k8s.io/v1/devicetaintrules/none", rule("gpu-3", "None")).status == 201);
  lab.cluster.taint_device("node-a", "gpu-2", {"gpu.example.com/xid", "79", "NoSchedule"});
  lab.run_for(1s);
  lab.cluster.create_pod("default", "q", dra_pod());
  lab.cluster.create_pod("default", "r", dra_pod());
  lab.run_for(5s);
  CHECK(lab.dra_device("q") == "gpu-3");
  CHECK(lab.dra_device("r").empty());
  lab.cluster.untaint_device("node-a", "gpu-2");
  lab.run_for(5s);
  CHECK(lab.dra_device("r") == "gpu-2");
  lab.cluster.create_pod("default", "s", dra_pod());
  lab.run_for(5s);
  CHECK(lab.dra_device("s").empty());
  CHECK(lab.ask(Method::Delete, kOurRule).status == 200);
  lab.run_for(5s);
  CHECK(lab.dra_device("s") == "gpu-1");
}

TEST_CASE("a rule with an empty selector taints every device") {
  TaintLab lab;
  Json all = rule("x", "NoSchedule");
  all["spec"]["deviceSelector"] = Json::object();
  REQUIRE(lab.apply(kOurRule, all).status == 201);
  lab.cluster.create_pod("default", "q", dra_pod());
  lab.run_for(5s);
  CHECK(lab.dra_device("q").empty());
}

TEST_CASE("a server without the kind answers 404, its watches are cut, nobody heeds the rules, and it may come back") {
  TaintLab lab;
  REQUIRE(lab.apply(kOurRule, rule("gpu-1", "NoSchedule")).status == 201);
  auto watch = lab.ask(Method::Get, fmt::format("{}?watch=1&resourceVersion=0", kRules));
  REQUIRE(watch.watch);
  CHECK_FALSE(watch.watch->poll(lab.cluster.store(), lab.now).ended);
  lab.cluster.serve(Res::TaintRules, false);
  const auto end = watch.watch->poll(lab.cluster.store(), lab.now);
  CHECK(end.ended);
  CHECK(end.cut);
  CHECK(lab.ask(Method::Get, kRules).status == 404);
  CHECK(lab.apply(kOurRule, rule("gpu-1", "NoSchedule")).status == 404);
  CHECK(lab.ask(Method::Get, "/apis/resource.k8s.io/v1/resourceslices").status == 200);
  lab.cluster.create_pod("default", "q", dra_pod());
  lab.run_for(5s);
  CHECK(lab.dra_device("q") == "gpu-1");
  lab.cluster.serve(Res::TaintRules, true);
  CHECK(lab.body_of(lab.ask(Method::Get, kRules))["items"].size() == 1);
}

TEST_CASE("a kind that is served in an older version alone is read and written there") {
  TaintLab lab;
  lab.cluster.settings().versions[Res::TaintRules] = "v1beta2";
  CHECK(lab.ask(Method::Get, kRules).status == 404);
  const std::string beta = "/apis/resource.k8s.io/v1beta2/devicetaintrules";
  CHECK(lab.apply(beta + "/dhc-1", rule("gpu-1", "NoSchedule")).status == 201);
  const auto listed = lab.body_of(lab.ask(Method::Get, beta));
  CHECK(listed["apiVersion"] == "resource.k8s.io/v1beta2");
  CHECK(listed["items"][0]["apiVersion"] == "resource.k8s.io/v1beta2");
  Json wrong = rule("gpu-1", "NoSchedule");
  wrong["apiVersion"] = "resource.k8s.io/v1";
  wrong["kind"] = "DeviceTaintRule";
  CHECK(lab.ask(Method::Patch, beta + "/dhc-1?fieldManager=x", wrong.dump(), "application/apply-patch+yaml").status ==
        400);
}

TEST_CASE("an apply has to say its version and kind") {
  TaintLab lab;
  CHECK(lab.ask(Method::Patch, fmt::format("{}?fieldManager=x", kOurRule), rule("gpu-1", "None").dump(),
                "application/apply-patch+yaml")
            .status == 400);
}

TEST_CASE("a rule's value and labels must be what labels may be") {
  TaintLab lab;
  auto bad = rule("gpu-0", "NoSchedule");
  bad["spec"]["taint"]["value"] = "two words";
  CHECK(lab.apply(kOurRule, bad).status == 422);
  bad["spec"]["taint"]["value"] = std::string(64, 'x');
  CHECK(lab.apply(kOurRule, bad).status == 422);
  bad["spec"]["taint"]["value"] = std::string(63, 'x');
  CHECK(lab.apply(kOurRule, bad).status == 201);
  bad["metadata"]["labels"]["device"] = "gpu.example.com/node-a/gpu-0";
  const auto refused = lab.apply(kOurRule, bad);
  CHECK(refused.status == 422);
  CHECK(lab.body_of(refused)["details"]["causes"][0]["field"] == "metadata.labels");
}

TEST_CASE("a node's taint by JSON patch: with the version replaced a stale one is 409, others' taints stay") {
  TaintLab lab;
  const auto add = [&](const std::string& version) {
    return lab.patch(kNode, fmt::format(R"([{{"op":"replace","path":"/metadata/resourceVersion","value":"{}"}},
        {{"op":"add","path":"/spec/taints/-","value":{{"key":"{}","value":"v","effect":"NoSchedule"}}}}])",
                                        version, kOurs));
  };
  // Nothing to add to: an empty list is not stored.
  CHECK(add(lab.rv_of(lab.node())).status == 422);
  REQUIRE(lab.cluster
              .kubectl_patch(Res::Nodes, "", "node-a",
                             {{"spec", {{"taints", Json::array({{{"key", "theirs"}, {"effect", "NoSchedule"}}})}}}})
              .status == 200);
  const auto old = lab.rv_of(lab.node());
  lab.cluster.cordon("node-a", true);
  const auto stale = add(old);
  CHECK(stale.status == 409);
  CHECK(add(lab.rv_of(lab.node())).status == 200);
  CHECK(lab.taint_keys() == std::vector<std::string>{"theirs", "node.kubernetes.io/unschedulable", kOurs});
  CHECK(add(lab.rv_of(lab.node())).status == 422);
  const auto remove =
      lab.patch(kNode, fmt::format(R"([{{"op":"replace","path":"/metadata/resourceVersion","value":"{}"}},
        {{"op":"remove","path":"/spec/taints/2"}}])",
                                   lab.rv_of(lab.node())));
  CHECK(remove.status == 200);
  CHECK(lab.taint_keys() == std::vector<std::string>{"theirs", "node.kubernetes.io/unschedulable"});
  lab.cluster.cordon("node-a", false);
  CHECK(lab.taint_keys() == std::vector<std::string>{"theirs"});
  CHECK(lab.patch(kNode, R"([{"op":"remove","path":"/spec/taints/0"}])").status == 200);
  CHECK_FALSE(lab.node()["spec"].contains("taints"));
}

TEST_CASE("a node that was not ready keeps our taint when it is ready again") {
  TaintLab lab;
  REQUIRE(lab.cluster
              .kubectl_patch(Res::Nodes, "", "node-a",
                             {{"spec", {{"taints", Json::array({{{"key", kOurs}, {"effect", "NoSchedule"}}})}}}})
              .status == 200);
  lab.cluster.set_node_ready("node-a", false);
  CHECK(lab.taint_keys() == std::vector<std::string>{kOurs, "node.kubernetes.io/unreachable"});
  lab.cluster.set_node_ready("node-a", true);
  CHECK(lab.taint_keys() == std::vector<std::string>{kOurs});
}

TEST_CASE("a NoSchedule node taint keeps off every new pod without toleration, DaemonSets' too, and evicts nobody") {
  TaintLab lab;
  lab.cluster.create_pod("default", "before", plugin_pod());
  lab.run_for(5s);
  REQUIRE(lab.cluster
              .kubectl_patch(Res::Nodes, "", "node-a",
                             {{"spec", {{"taints", Json::array({{{"key", kOurs}, {"effect", "NoSchedule"}}})}}}})
              .status == 200);
  lab.cluster.create_pod("default", "after", plugin_pod());
  lab.cluster.create_pod("default", "plain", {});
  lab.cluster.create_daemon_set("default", "agent", {});
  lab.run_for(10s);
  CHECK(lab.pod("before")["status"]["phase"] == "Running");
  CHECK(lab.pod("after")["status"]["phase"] == "Pending");
  CHECK(lab.pod("plain")["status"]["phase"] == "Pending");
  CHECK(lab.live("agent-").empty());
  REQUIRE(lab.cluster.kubectl_patch(Res::Nodes, "", "node-a", {{"spec", {{"taints", nullptr}}}}).status == 200);
  lab.run_for(10s);
  CHECK(lab.pod("after")["status"]["phase"] == "Running");
  CHECK(lab.live("agent-").size() == 1);
  lab.cluster.cordon("node-a", true);
  lab.cluster.create_daemon_set("default", "other", {});
  lab.run_for(10s);
  CHECK(lab.live("other-").size() == 1);
}

TEST_CASE("the state ConfigMap is made and changed by apply, the same again writes nothing, above 1 MiB it is 422") {
  TaintLab lab;
  const std::string path = "/api/v1/namespaces/device-health-system/configmaps/device-health-state";
  CHECK(lab.apply(path, {{"data", {{"devices", "[]"}}}}).status == 201);
  const auto rv = lab.cluster.store().rv();
  CHECK(lab.apply(path, {{"data", {{"devices", "[]"}}}}).status == 200);
  CHECK(lab.cluster.store().rv() == rv);
  CHECK(lab.apply(path, {{"data", {{"devices", "[1]"}}}}).status == 200);
  CHECK(lab.cluster.store().rv() == rv + 1);
  CHECK(lab.apply(path, {{"data", {{"devices", std::string(1024UL * 1024 + 1, 'x')}}}}).status == 422);
  const auto found = lab.body_of(
      lab.ask(Method::Get,
              "/api/v1/namespaces/device-health-system/configmaps?fieldSelector=metadata.name%3Ddevice-health-state"));
  CHECK(found["items"].size() == 1);
  CHECK(lab.cluster
            .kubectl_patch(Res::ConfigMaps, "device-health-system", "device-health-state",
                           {{"data", {{"devices", "mine"}}}})
            .status == 200);
  CHECK(lab.apply(path, {{"data", {{"devices", "[2]"}}}}).status == 409);
  CHECK(lab.apply(path, {{"data", {{"devices", "[2]"}}}}, "tester", true).status == 200);
}

TEST_CASE("a driver that comes back publishes under new names what it published before") {
  TaintLab lab;
  const auto uuid = lab.uuid_of("gpu-0");
  CHECK_FALSE(uuid.empty());
  CHECK(uuid != lab.uuid_of("gpu-1"));
  const auto name = lab.cluster.store().all(Res::Slices).begin()->first.name;
  lab.cluster.kill_driver("node-a", kDriver);
  lab.run_for(40s);
  CHECK(lab.cluster.store().all(Res::Slices).empty());
  lab.cluster.start_driver("node-a", kDriver);
  lab.run_for(5s);
  REQUIRE(lab.cluster.store().all(Res::Slices).size() == 1);
  CHECK(lab.cluster.store().all(Res::Slices).begin()->first.name != name);
  CHECK(lab.uuid_of("gpu-0") == uuid);
}

TEST_CASE("a new card in the old place has another uuid, no taint, and is healthy") {
  TaintLab lab;
  const auto uuid = lab.uuid_of("gpu-0");
  lab.cluster.set_device_health("node-a", "gpu-0", "Unhealthy", "Xid 79");
  lab.cluster.taint_device("node-a", "gpu-0", {"gpu.example.com/xid", "79", "NoSchedule"});
  lab.run_for(2s);
  REQUIRE(lab.health("p") == "Unhealthy");
  lab.cluster.replace_device("node-a", "gpu-0");
  lab.run_for(2s);
  CHECK(lab.health("p") == "Healthy");
  CHECK(lab.health_message("p").empty());
  CHECK_FALSE(lab.uuid_of("gpu-0").empty());
  CHECK(lab.uuid_of("gpu-0") != uuid);
  CHECK(lab.cluster.store().all(Res::Slices).begin()->second->dump().find("xid") == std::string::npos);
}
