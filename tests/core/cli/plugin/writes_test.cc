#include "cli/plugin/writes.h"

#include <doctest/doctest.h>

#include "tests/core/cli/plugin/sample_sight.h"

namespace dhc::test {

TEST_CASE(
    "an operator's annotations are a merge patch of the very object that was read, under a manager of their own") {
  const cli::Target target{.path = "/api/v1/nodes/node-a", .uid = "u-1", .what = "node node-a"};
  const auto request =
      cli::build_annotations(target, {{"device-health.io/a", "x \"y\""}, {"device-health.io/b", std::nullopt}}, false);
  CHECK(request.method == k8s::Method::Patch);
  CHECK(request.target == "/api/v1/nodes/node-a?fieldManager=kubectl-device-health");
  CHECK(request.body ==
        R"({"metadata":{"uid":"u-1","annotations":{"device-health.io/a":"x \"y\"","device-health.io/b":null}}})");
  CHECK(cli::build_annotations(target, {}, true).target.ends_with("&dryRun=All"));
}

TEST_CASE("a pause of a part is an annotation with the part's name and a value that the controller reads") {
  const cli::PauseScope scope{.nodes = {"node-b", "node-a", "node-b"}, .node_selector = "pool=a,!spot,zone!=c,x"};
  const auto until = parse_rfc3339("2026-11-20T12:00:00Z").value();
  const auto value = cli::pause_value(scope, until, "new \"switches\"", "alice");
  REQUIRE(value);
  CHECK(
      *value ==
      R"({"nodes":["node-a","node-b"],"nodeSelector":{"matchExpressions":[{"key":"pool","operator":"In","values":["a"]},)"
      R"({"key":"spot","operator":"DoesNotExist"},{"key":"zone","operator":"NotIn","values":["c"]},)"
      R"({"key":"x","operator":"Exists"}]},"until":"2026-11-20T12:00:00Z","reason":"new \"switches\"","by":"alice"})");
  const auto name = cli::pause_annotation(scope);
  CHECK(name.starts_with("device-health.io/pause.node-a.node-b-"));
  CHECK(cli::pause_annotation({.nodes = {"node-a", "node-b"}, .node_selector = scope.node_selector}) == name);
  CHECK(cli::pause_annotation({.namespaces = {"node-a", "node-b"}}) != name);
  const auto longest = cli::pause_annotation({.nodes = {std::string(250, 'n')}, .resources = {"a.io/b_C"}});
  CHECK(longest.size() - std::string_view("device-health.io/").size() <= 63);
  CHECK(cli::is_over(*value, until));
  CHECK_FALSE(cli::is_over(*value, until - Millis(1)));
  CHECK_FALSE(cli::is_over("what?", until));
}

TEST_CASE("a pause that the controller would refuse is not written") {
  const auto until = parse_rfc3339("2026-11-20T12:00:00Z").value();
  const auto problem = [&](const cli::PauseScope& scope) {
    const auto value = cli::pause_value(scope, until, "r", {});
    return value ? std::string() : value.error().message;
  };
  CHECK(problem({.nodes = {"Node_A"}}).contains("'Node_A' can match no node"));
  CHECK(problem({.drivers = {"nvidia.com/gpu"}}).contains("pause.drivers: 'nvidia.com/gpu' can match nothing"));
  for (const char* selector : {"a in (b)", "", ",a=b", "a=b,", "=b", "a = b"}) {
    CAPTURE(selector);
    CHECK(problem({.nodes = {"n"}, .node_selector = selector}).empty() == std::string_view(selector).empty());
  }
  CHECK(cli::read_who_am_i(R"({"status":{"userInfo":{"username":"alice"}}})") == "alice");
  CHECK(cli::read_who_am_i("[]").empty());
}

TEST_CASE("the pauses on an object are its annotations of that name") {
  CHECK(cli::pauses_on("{").empty());
  CHECK(cli::pauses_on(
            R"({"metadata":{"annotations":{"device-health.io/pause-until":"x","device-health.io/pause.a":"y"}}})") ==
        std::vector<std::pair<std::string, std::string>>{{"device-health.io/pause.a", "y"}});
}

TEST_CASE("a name that would leave its path is refused") {
  CHECK(cli::node_path("node-a") == "/api/v1/nodes/node-a");
  CHECK_FALSE(cli::node_path("../x"));
  CHECK_FALSE(cli::node_path(""));
  CHECK_FALSE(cli::config_map_path("a/b", "c"));
  CHECK_FALSE(cli::rule_path("resource.k8s.io/v1", "x/y"));
  CHECK_FALSE(cli::uid_of("{}"));
}

TEST_CASE("an operator vouches up to the earlier of the two clocks, and never for the last second") {
  const auto ours = parse_rfc3339("2026-11-20T12:00:00Z").value();
  CHECK(cli::vouched_until(std::nullopt, ours) == ours - Seconds(1));
  // A server that is ahead of us says nothing about the controller's clock.
  CHECK(cli::vouched_until("Fri, 20 Nov 2026 12:10:00 GMT", ours) == ours - Seconds(1));
  const auto behind = cli::vouched_until("Fri, 20 Nov 2026 11:50:00 GMT", ours);
  CHECK(behind <= parse_rfc3339("2026-11-20T11:50:00Z").value());
  CHECK(behind >= parse_rfc3339("2026-11-20T11:49:58Z").value());
}

TEST_CASE("a device is acknowledged on its rule, without one its node has to be, and what that covers is said") {
  auto sight = sample_sight();
  CHECK(cli::rule_to_acknowledge(sight, "gpu-0") == "dhc-node-a-gpu-0-1f0c86d29ab35e47");
  CHECK(cli::rule_to_acknowledge(sight, "gpu-5") == "dhc-node-c-gpu-5-77aa11bbd004c2e8");
  CHECK(cli::rule_to_acknowledge(sight, "gpu-9").error().message == "no device that is bad is named gpu-9");
  CHECK(cli::rule_to_acknowledge(sight, "GPU-3").error().message ==
        "node-b/example.com/gpu/GPU-3 has no incident that is open");
  sight.status.devices[0].taint = "node";
  CHECK(cli::rule_to_acknowledge(sight, "gpu-0").error().message ==
        "gpu.nvidia.com/node-a/gpu-0 has no DeviceTaintRule of ours that could be annotated; acknowledge all incidents "
        "of its node: kubectl device-health ack node node-a");
  CHECK(cli::acknowledged_by_node(sight, "node-a", clock_at("12:04:11")) ==
        std::vector<std::string>{"gpu.nvidia.com/node-a/gpu-0 (opened 2026-11-20T12:01:00Z)"});
  CHECK(cli::acknowledged_by_node(sight, "node-a", clock_at("12:00:59")).empty());
}

TEST_CASE("a suspected workload is acknowledged where the controller reads it, and what it is suspected of is said") {
  CHECK(cli::workload_path("deployment", "ml", "train") == "/apis/apps/v1/namespaces/ml/deployments/train");
  CHECK(cli::workload_path("statefulset", "ml", "train") == "/apis/apps/v1/namespaces/ml/statefulsets/train");
  CHECK(cli::workload_path("replicaset", "ml", "train") == "/apis/apps/v1/namespaces/ml/replicasets/train");
  CHECK(cli::workload_path("job", "ml", "train") == "/apis/batch/v1/namespaces/ml/jobs/train");
  CHECK(cli::workload_path("pod", "ml", "train-0") == "/api/v1/namespaces/ml/pods/train-0");
  CHECK_FALSE(cli::workload_path("jobset", "ml", "train").has_value());
  CHECK_FALSE(cli::workload_path("pod", "", "train-0").has_value());
  CHECK_FALSE(cli::workload_path("pod", "ml", "../x").has_value());
  CHECK_FALSE(cli::is_workload_kind("Deployment"));
  auto sight = sample_sight();
  CHECK(cli::suspicion_of(sight, "deployment", "ml", "train").empty());
  sight.status.verdicts.push_back(
      {.kind = "Deployment", .ns = "ml", .name = "train", .reason = "WorkloadSuspected", .message = "it breaks them"});
  CHECK(cli::suspicion_of(sight, "deployment", "ml", "train") == "it breaks them");
  CHECK(cli::suspicion_of(sight, "statefulset", "ml", "train").empty());
  CHECK(cli::suspicion_of(sight, "deployment", "web", "train").empty());
}

}  // namespace dhc::test
