// Times that come from outside, as far as an API server lets them through: no sum with one may leave its clock's range
// (the sanitizers see it), and none may hold another pod's eviction.
#include <algorithm>
#include <array>
#include <limits>

#include <doctest/doctest.h>

#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;
using Names = std::vector<std::string>;

namespace {

constexpr std::array kTimes = {"0000-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"};
constexpr std::array kSeconds = {std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}, std::int64_t{0},
                                 std::numeric_limits<std::int64_t>::max()};

/// A pod with these times wherever a pod, its claim, its Job, its node or its driver's slice has one.
void put_strange(Stage& stage, WallTime time, std::int64_t seconds, bool is_leaving) {
  stage.node("node-b", 0);
  auto node = stage.node_named("node-b");
  node.meta.creation = time;
  for (const auto name : {kAcknowledgeAnnotation, kBrakeReleaseAnnotation, kCapReleaseAnnotation})
    node.meta.annotations.emplace_back(name, format_rfc3339(time));
  node.meta.annotations.sort();
  stage.put(node);
  stage.slice("node-b", {"gpu-0"}, {"gpu-0"});
  stage.claim("strange", {"gpu-0"}, "strange").results.front().pool = "node-b";
  stage.upsert_claim("strange");
  auto& pod = stage.pod(
      {.name = "strange", .node = "node-b", .owner = "Job/old", .health = Health::Unhealthy, .claim = "strange"});
  pod.meta.creation = time;
  pod.grace_period_seconds = seconds;
  pod.last_start = time;
  if (is_leaving) {
    pod.meta.deletion = time;
    pod.meta.deletion_grace_seconds = seconds;
  }
  pod.conditions = {{.type = std::string(kConditionType),
                     .status = "True",
                     .reason = "DeviceUnhealthy",
                     .message = "gpu.example.com/node-b/gpu-0 unhealthy since " + format_rfc3339(time) + " (policy p)",
                     .last_transition = time}};
  pod.has_kept_condition = true;
  stage.upsert_pod("strange");
  auto& job = stage.job_named("old");
  job.meta.creation = time;
  job.conditions = {
      {.type = "Failed", .status = "True", .reason = "BackoffLimitExceeded", .message = {}, .last_transition = time}};
  stage.upsert_job("old");
}

}  // namespace

TEST_CASE("No time that comes from outside leaves its clock's range, or holds another pod's eviction") {
  for (const auto* text : kTimes) {
    for (const auto seconds : kSeconds) {
      for (const bool is_leaving : {false, true}) {
        CAPTURE(text);
        CAPTURE(seconds);
        CAPTURE(is_leaving);
        Stage stage;
        stage.limits().brake_at_least = 100;
        stage.policy().evict->untainted = true;
        stage.policy().match.device_taints = {{.key = "*", .effect = "*"}};
        stage.send_policy();
        stage.node("node-a", 2, 1);
        put_strange(stage, *parse_rfc3339(text), seconds, is_leaving);
        stage.pod({.name = "web-1", .device = "gpu-0", .health = Health::Unhealthy});
        auto gone = stage.run_for(minutes(5));
        stage.restart();
        for (auto& name : stage.run_for(hours(2), minutes(1))) gone.push_back(std::move(name));
        CHECK(std::ranges::find(gone, "web-1") != gone.end());
        CHECK((is_leaving && std::ranges::find(gone, "strange") != gone.end()) == false);
      }
    }
  }
}

}  // namespace dhc::test
