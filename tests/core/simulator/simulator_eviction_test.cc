// The pods/eviction subresource and its budgets. **Source:** kubernetes-tried section 7, recordings of 1.37.1.
#include <doctest/doctest.h>

#include "tests/core/simulator/shapes.h"
#include "tests/support/core/lab.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::Lab;
using namespace std::chrono_literals;

namespace {

/// A Deployment of two pods on one node.
struct TwoPods : Lab {
  TwoPods() {
    cluster.add_node({"node-a", {{kGpu, 4}}, {}, {}});
    cluster.create_deployment("default", "infer", 2, plugin_pod());
    run_for(5s);
  }
};

}  // namespace

TEST_CASE("an eviction answers 201 with a Status, writes DisruptionTarget, and the owner replaces the pod at once") {
  TwoPods lab;
  const auto pods = lab.live("infer-");
  REQUIRE(pods.size() == 2);
  const auto answer = lab.evict(pods[0], lab.uid(pods[0]));
  CHECK(answer.status == 201);
  CHECK(lab.body_of(answer) ==
        Json::parse(R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201})"));
  const auto pod = lab.pod(pods[0]);
  CHECK(is_deleting(pod));
  CHECK(condition_status(pod, "DisruptionTarget") == "True");
  lab.run_for(60ms);
  CHECK(lab.live("infer-").size() == 2);
  lab.run_for(5s);
  CHECK(lab.pod(pods[0]).is_null());
  CHECK(lab.cluster.evictions() == std::vector<std::string>{"default/" + pods[0]});
}

TEST_CASE("a pod that ignores SIGTERM stays for its grace period") {
  Lab lab;
  lab.cluster.add_node({"node-a", {{kGpu, 1}}, {}, {}});
  auto shape = plugin_pod();
  shape.on_sigterm = OnSigterm::Ignore;
  shape.grace_seconds = 20;
  lab.cluster.create_pod("default", "p", shape);
  lab.run_for(3s);
  lab.evict("p", lab.uid("p"));
  lab.run_for(19s);
  CHECK(lab.pod("p")["status"]["phase"] == "Running");
  lab.run_for(2s);
  CHECK(lab.pod("p").is_null());
}

TEST_CASE("a budget without room answers 429 with the recorded body and no Retry-After") {
  TwoPods lab;
  lab.cluster.add_budget({"default", "infer", {{"app", "infer"}}, 2, std::nullopt});
  lab.run_for(1s);
  const auto pods = lab.live("infer-");
  const auto answer = lab.evict(pods[0], "00000000-0000-0000-0000-000000000000");
  CHECK(answer.status == 429);
  CHECK(lab.body_of(answer)["details"]["causes"][0]["reason"] == "DisruptionBudget");
  CHECK(lab.body_of(answer)["details"]["causes"][0]["message"] ==
        "The disruption budget infer needs 2 healthy pods and has 2 currently");
  CHECK(lab.body_of(answer)["message"] == "Cannot evict pod as it would violate the pod's disruption budget.");
  for (const auto& header : answer.headers) CHECK(header.name != "retry-after");
}

TEST_CASE("a wrong UID on a Running pod answers 409 and spends the budget for two minutes") {
  TwoPods lab;
  lab.cluster.add_budget({"default", "infer", {{"app", "infer"}}, 1, std::nullopt});
  lab.run_for(1s);
  const auto pods = lab.live("infer-");
  REQUIRE(lab.object(Res::Budgets, "infer")["status"]["disruptionsAllowed"] == 1);
  const auto answer = lab.evict(pods[0], "00000000-0000-0000-0000-000000000000");
  CHECK(answer.status == 409);
  CHECK(answer.delay == 0ms);
  CHECK(
      lab.body_of(answer)["message"] ==
      "Operation cannot be fulfilled on Pod \"" + pods[0] +
          "\": the UID in the precondition (00000000-0000-0000-0000-000000000000) does not match the UID in record (" +
          lab.uid(pods[0]) + "). The object might have been deleted and then recreated");
  CHECK(lab.object(Res::Budgets, "infer")["status"]["disruptionsAllowed"] == 0);
  CHECK(lab.evict(pods[1], lab.uid(pods[1])).status == 429);
  lab.run_for(119s);
  CHECK(lab.evict(pods[1], lab.uid(pods[1])).status == 429);
  lab.run_for(2s);
  CHECK(lab.evict(pods[1], lab.uid(pods[1])).status == 201);
}

TEST_CASE("a wrong UID on a Pending pod answers 409 only after ten seconds") {
  Lab lab;
  lab.cluster.add_node({"node-a", {{kGpu, 1}}, {}, {}});
  auto shape = plugin_pod();
  shape.image_missing = true;
  lab.cluster.create_pod("default", "p", shape);
  lab.run_for(3s);
  const auto answer = lab.evict("p", "00000000-0000-0000-0000-000000000000");
  CHECK(answer.status == 409);
  CHECK(answer.delay == 10070ms);
}

TEST_CASE("a Pending pod is evicted past its budget, a finished pod is deleted, an absent pod is 404") {
  Lab lab;
  lab.cluster.add_node({"node-a", {{kGpu, 2}}, {}, {}});
  auto shape = plugin_pod();
  shape.labels = {{"app", "x"}};
  shape.image_missing = true;
  lab.cluster.create_pod("default", "pending", shape);
  shape.image_missing = false;
  shape.restart_policy = "Never";
  lab.cluster.create_pod("default", "done", shape);
  lab.cluster.add_budget({"default", "b", {{"app", "x"}}, 5, std::nullopt});
  lab.run_for(3s);
  CHECK(lab.evict("pending", lab.uid("pending")).status == 201);
  lab.cluster.crash_pod("default", "done", 1);
  CHECK(lab.evict("done", lab.uid("done")).status == 201);
  CHECK(lab.pod("done").is_null());
  const auto answer = lab.evict("nonexist", "");
  CHECK(answer.status == 404);
  CHECK(lab.body_of(answer)["message"] == "pods \"nonexist\" not found");
}

TEST_CASE("two budgets on one pod answer 500") {
  TwoPods lab;
  lab.cluster.add_budget({"default", "one", {{"app", "infer"}}, 0, std::nullopt});
  lab.cluster.add_budget({"default", "two", {{"app", "infer"}}, 0, std::nullopt});
  lab.run_for(1s);
  const auto pods = lab.live("infer-");
  CHECK(lab.evict(pods[0], lab.uid(pods[0])).status == 500);
}

TEST_CASE("a StatefulSet's pod comes back under the same name with another UID") {
  Lab lab;
  lab.cluster.add_node({"node-a", {{kGpu, 2}}, {}, {}});
  lab.cluster.create_stateful_set("default", "s", 1, plugin_pod());
  lab.run_for(3s);
  const auto first = lab.uid("s-0");
  REQUIRE(!first.empty());
  lab.evict("s-0", first);
  lab.run_for(5s);
  CHECK(lab.pod("s-0")["status"]["phase"] == "Running");
  CHECK(lab.uid("s-0") != first);
}
