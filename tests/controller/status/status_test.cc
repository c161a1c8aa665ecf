// The status ConfigMap: what it says, how often it is written, and what becomes of it when it cannot be.
#include <algorithm>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/contract/cluster_status.h"
#include "domain/contract/names.h"
#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

using std::chrono::minutes;

namespace {

Stage telling() {
  auto stage = gpu_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.whole_policy().status = true;
  stage.send_policy();
  return stage;
}

std::vector<status::WriteStatus> statuses_in(const std::vector<Action>& actions) {
  std::vector<status::WriteStatus> found;
  for (const auto& action : actions) {
    if (const auto* told = std::get_if<status::WriteStatus>(&action)) found.push_back(*told);
  }
  return found;
}

/// Steps through time; each answered status, with when it was sent.
struct Told {
  Now at;
  ClusterStatus status;
};
std::vector<Told> tell_for(Stage& stage, Millis time, const std::function<void(int)>& before = [](int) {}) {
  std::vector<Told> all;
  for (int second = 0; Seconds(second) < time; ++second) {
    before(second);
    for (const auto& action : stage.turn()) {
      stage.answer(action);
      stage.show(action);
      if (const auto* told = std::get_if<status::WriteStatus>(&action)) {
        auto status = parse_status(told->text);
        REQUIRE(status);
        all.push_back({.at = stage.now(), .status = *std::move(status)});
      }
    }
    stage.advance(Seconds(1));
  }
  return all;
}

}  // namespace

TEST_CASE("The status names the bad device, who holds it, its taint, and which gate holds the eviction until when") {
  auto stage = telling();
  const auto told = tell_for(stage, Seconds(75));
  REQUIRE_FALSE(told.empty());
  const auto& first = told.front().status;
  REQUIRE(first.devices.size() == 1);
  CHECK(first.devices[0].device == fmt::format("{}/node-a/gpu-0", kDriver));
  CHECK(first.devices[0].node == "node-a");
  CHECK(first.devices[0].health == "Unhealthy");
  CHECK(first.devices[0].said == "Xid 79");
  CHECK(first.devices[0].holders == std::vector<std::string>{"default/train-1"});
  CHECK(first.mode == "enforce");
  CHECK(first.devices_unhealthy == 1);
  const auto waits = std::ranges::find(first.verdicts, "WaitingForWindow", &StatusVerdict::reason);
  REQUIRE(waits != first.verdicts.end());
  CHECK(waits->gate == "window");
  CHECK(waits->node == "node-a");
  CHECK(waits->job == "train");
  CHECK(waits->next_at == told.front().at.wall + Seconds(60));
  const auto& last = told.back().status;
  REQUIRE(last.devices.size() == 1);
  CHECK(last.devices[0].opened_at);
  CHECK(last.devices[0].taint.starts_with("rule dhc-"));
  CHECK(last.devices[0].incidents == 1);
  CHECK(last.incidents_open == 1);
}

TEST_CASE("A status that nothing changes is written once, and again only after an hour") {
  auto stage = telling();
  stage.policy().evict.reset();
  stage.policy().recover.hold = std::chrono::hours(100);
  stage.send_policy();
  (void)tell_for(stage, minutes(30));
  const auto quiet = tell_for(stage, minutes(29));
  CHECK(quiet.empty());
  const auto repeated = tell_for(stage, minutes(5));
  CHECK(repeated.size() == 1);
}

TEST_CASE("What stands says no time that passes: two turns a minute apart with nothing new write nothing") {
  auto stage = telling();
  stage.policy().recover.hold = std::chrono::hours(100);
  SUBCASE("an annotation that is refused") {
    stage.policy().evict.reset();
    stage.whole_policy().brake_release = "2036-11-20T12:01:00Z";
  }
  SUBCASE("a pod that has opted out") {
    stage.pod_named("train-1").meta.annotations = {{"device-health.io/opt-out", "true"}};
    stage.upsert_pod("train-1");
  }
  SUBCASE("a pause") { stage.whole_policy().limits.paused = true; }
  SUBCASE("a policy that observes") { stage.policy().mode = Mode::Observe; }
  SUBCASE("an eviction that is due in two hours") { stage.policy().evict->after = std::chrono::hours(2); }
  stage.send_policy();
  // All that is written at most every 72 s has been, and the owner of each pod been read.
  (void)tell_for(stage, minutes(30));
  const auto verdicts = stage.verdicts();
  REQUIRE_FALSE(verdicts.empty());
  CHECK(tell_for(stage, minutes(1)).empty());
  CHECK(stage.verdicts() == verdicts);
}

TEST_CASE("A status that changes with every second is written every 10 s at most, and 60 times an hour") {
  auto stage = telling();
  stage.policy().evict.reset();
  stage.send_policy();
  const auto told = tell_for(stage, std::chrono::hours(2), [&](int second) {
    stage.report("train-1", k8s::Health::Unhealthy, fmt::format("Xid {}", second));
  });
  for (std::size_t i = 1; i < told.size(); ++i) CHECK(told[i].at.mono - told[i - 1].at.mono >= Seconds(10));
  for (std::size_t i = 0; i + 60 < told.size(); ++i) {
    CHECK(told[i + 60].at.mono - told[i].at.mono >= std::chrono::hours(1));
  }
  // And no rarer than that: the last word is at most a minute and a quarter old.
  REQUIRE(told.size() > 100);
  for (std::size_t i = 1; i < told.size(); ++i) CHECK(told[i].at.mono - told[i - 1].at.mono <= Seconds(78));
}

TEST_CASE("A status that is refused is a verdict of its own, backs off, and is written as it then is") {
  auto stage = telling();
  auto refused = statuses_in(stage.turn());
  REQUIRE(refused.size() == 1);
  stage.answer(Action(refused[0]), fail(ErrorKind::Forbidden, "configmaps \"device-health-status\" is forbidden"));
  const auto later = stage.turn();
  CHECK(statuses_in(later).empty());
  const auto* said = stage.verdict(std::string(kStatusName), Reason::StatusNotWritten);
  REQUIRE(said != nullptr);
  CHECK(said->message.find("is forbidden") != std::string::npos);
  REQUIRE(said->next_at);
  const auto again_at = *said->next_at;
  const auto told = tell_for(stage, minutes(3));
  REQUIRE_FALSE(told.empty());
  CHECK(told.front().at.wall >= again_at);
  CHECK(stage.verdict(std::string(kStatusName), Reason::StatusNotWritten) == nullptr);
}

TEST_CASE("Who begins to lead tells the status once, whatever it told in an earlier term, and a standby tells none") {
  auto stage = telling();
  (void)tell_for(stage, minutes(3));
  stage.deliver(Leading{.leads = false});
  CHECK(tell_for(stage, minutes(2)).empty());
  stage.deliver(Leading{.leads = true});
  const auto again = tell_for(stage, Seconds(5));
  CHECK(again.size() == 1);
}

TEST_CASE(
    "In observe mode the status is told as well, but without a namespace of our own or with --status=false, none is") {
  auto observing = telling();
  observing.whole_policy().mode_cap = Mode::Observe;
  observing.send_policy();
  const auto told = tell_for(observing, Seconds(5));
  REQUIRE(told.size() == 1);
  CHECK(told[0].status.mode == "observe");
  auto homeless = telling();
  homeless.whole_policy().own_namespace.clear();
  homeless.send_policy();
  CHECK(tell_for(homeless, Seconds(90)).empty());
  auto silent = telling();
  silent.whole_policy().status = false;
  silent.send_policy();
  CHECK(tell_for(silent, Seconds(90)).empty());
}

TEST_CASE("An annotation pauses evictions and taints up to its end, says until when, and lets them go by itself") {
  auto stage = telling();
  stage.whole_policy().pause_until = format_rfc3339(stage.now().wall + minutes(10));
  stage.whole_policy().pause_reason = "network change";
  stage.send_policy();
  CHECK(stage.run_for(minutes(10) - Seconds(1)).empty());
  CHECK(stage.rule() == nullptr);
  const auto* held = stage.verdict("train-1", Reason::Paused);
  REQUIRE(held != nullptr);
  CHECK(held->message == "paused until 2026-11-20T12:10:00Z: network change");
  CHECK(held->next_at == parse_rfc3339("2026-11-20T12:10:00Z"));
  CHECK(stage.run_for(minutes(2)) == std::vector<std::string>{"train-1"});
  CHECK(stage.rule() != nullptr);
}

}  // namespace dhc::test
