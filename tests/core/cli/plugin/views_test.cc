#include "cli/plugin/views.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/core/cli/plugin/sample_sight.h"

namespace dhc::test {

using cli::Sight;

TEST_CASE("devices shows a row for each holder: what comes next, and when") {
  CHECK(
      cli::table_of(cli::devices_lines(sample_sight(), {}, false)) ==
      "NODE    DEVICE  DRIVER/RESOURCE  HEALTH      SINCE  HOLDER       POLICY  NEXT STEP                     WHEN\n"
      "node-a  gpu-0   gpu.nvidia.com   Unhealthy   4m12s  ml/train-0   gpus    evict (WaitingForEvictAfter)  in 18s\n"
      "node-b  GPU-3   example.com/gpu  Unhealthy   1h4m   web/infer-1  -       none (NoPolicy)               -\n"
      "node-c  gpu-5   gpu.nvidia.com   Unreported  11h4m  -            gpus    -                             -\n");
}

TEST_CASE("a namespace shows what its pods hold, and nothing else") {
  const auto lines = cli::devices_lines(sample_sight(), "web", false);
  REQUIRE(lines.size() == 2);
  CHECK(lines[1][5] == "web/infer-1");
  CHECK(cli::devices_lines(sample_sight(), "we", false).size() == 1);
}

TEST_CASE("wide adds the absolute time, the taint, the gate and the driver's words") {
  const auto lines = cli::devices_lines(sample_sight(), "ml", true);
  REQUIRE(lines.size() == 2);
  CHECK(std::vector(lines[1].begin() + 9, lines[1].end()) ==
        std::vector<std::string>{"2026-11-20T12:04:30Z", "rule dhc-node-a-gpu-0-1f0c86d29ab35e47", "window",
                                 "GPU is lost"});
}

TEST_CASE("incidents shows what is open or in quarantine, and when time alone ends it") {
  CHECK(cli::table_of(cli::incidents_lines(sample_sight(), {}, false)) ==
        "NODE    DEVICE  STATE        OPENED  INCIDENTS  HOLDERS     TAINT                                   ENDS      "
        "SAID\n"
        "node-a  gpu-0   Open         3m12s   2          ml/train-0  rule dhc-node-a-gpu-0-1f0c86d29ab35e47  in 1d23h  "
        "GPU is "
        "lost\n"
        "node-c  gpu-5   Quarantined  -       3          -           rule dhc-node-c-gpu-5-77aa11bbd004c2e8  -         "
        "-\n");
}

TEST_CASE("lemons come worst first: quarantined, then by the penalty as it has decayed") {
  auto sight = sample_sight();
  CHECK(cli::table_of(cli::lemons_lines(sight, false)) ==
        "NODE    DEVICE  INCIDENTS  PENALTY  LIMIT  STATE                 LAST\n"
        "node-c  gpu-5   3          2.72     2      quarantined           11h4m\n"
        "node-a  gpu-0   2          1.98     2      the next quarantines  4m12s\n");
  sight.now += std::chrono::hours(720);
  CHECK(cli::penalty_now(sight, sight.status.devices[0]) == doctest::Approx(0.99).epsilon(0.001));
  CHECK(cli::lemons_lines(sight, false)[2][5] == "open");
}

TEST_CASE("of a device that is healthy again only the history is shown") {
  auto sight = sample_sight();
  sight.status.devices[0].health = "Healthy";
  sight.status.devices[0].opened_at.reset();
  CHECK(cli::devices_lines(sight, {}, false).size() == 3);
  CHECK(cli::lemons_lines(sight, false).size() == 3);
}

TEST_CASE("JSON has absolute times, the verdict with its gate, and who says so") {
  const auto json = cli::devices_json(sample_sight(), {});
  CHECK(json["controller"]["leader"] == "controller-a_0123456789abcdef");
  CHECK(json["controller"]["writtenAt"] == "2026-11-20T12:04:10Z");
  REQUIRE(json["devices"].size() == 3);
  CHECK(json["devices"][0]["holder"] == "ml/train-0");
  CHECK(json["devices"][0]["since"] == "2026-11-20T12:00:00Z");
  CHECK(json["devices"][0]["next"]["gate"] == "window");
  CHECK(json["devices"][0]["next"]["nextStep"] == "evict (WaitingForEvictAfter)");
  CHECK(json["devices"][0]["next"]["nextStepAt"] == "2026-11-20T12:04:30Z");
  CHECK(json["devices"][2]["holder"].is_null());
  CHECK(cli::incidents_json(sample_sight(), {})["incidents"].size() == 2);
  CHECK(cli::lemons_json(sample_sight())["lemons"][0]["state"] == "quarantined");
}

TEST_CASE("of an eviction under way, and of reasons of a newer controller, the step is said as far as it is known") {
  StatusVerdict verdict{.kind = "Pod", .reason = "Evicting"};
  CHECK(cli::next_step(verdict) == "its end (Evicting)");
  verdict.reason = "OptedOut";
  CHECK(cli::next_step(verdict) == "none (OptedOut)");
  verdict.reason = "WouldEvict";
  CHECK(cli::next_step(verdict) == "none: observed (WouldEvict)");
  verdict.reason = "SomethingNew";
  CHECK(cli::next_step(verdict) == "? (SomethingNew)");
}

TEST_CASE("the gate's verdict is the next step, whatever else is said of the pod") {
  auto sight = sample_sight();
  auto beside = sight.status.verdicts[0];
  beside.reason = "NoReplacementDevice";
  beside.gate.clear();
  sight.status.verdicts.insert(sight.status.verdicts.begin(), beside);
  const auto rows = cli::device_rows(sight, "ml");
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].verdict->reason == "WaitingForEvictAfter");
}

TEST_CASE("a reader is warned when nobody leads, when another leads than wrote, of a pause and of what is left out") {
  auto sight = sample_sight();
  CHECK(cli::notes_of(sight).empty());
  sight.lease_ends = clock_at("12:04:11");
  CHECK(
      cli::notes_of(sight) ==
      std::vector<std::string>{"warning: the controller controller-a_0123456789abcdef has not renewed its Lease since "
                               "2026-11-20T12:04:11Z: this is what held at 2026-11-20T12:04:10Z"});
  sight = sample_sight();
  sight.leader = "controller-ab_1";
  CHECK(cli::notes_of(sight).at(0) ==
        "warning: this is what held at 2026-11-20T12:04:10Z, by controller-a; controller-ab_1 leads now and has not "
        "written yet");
  sight.leader = "";
  CHECK(cli::notes_of(sight).at(0) == "warning: no controller leads: this is what held at 2026-11-20T12:04:10Z");
  sight = sample_sight();
  sight.leader.reset();
  sight.status.pause = StatusPause{.why = "paused until 2026-11-20T14:00:00Z: network change", .until = {}};
  sight.status.pauses = {{.why = "paused until 2026-11-20T15:00:00Z for node a: r", .until = {}}};
  sight.status.mode = "observe";
  sight.status.cut = {.histories = true, .message_limit = 120, .devices = 7, .verdicts = 9};
  CHECK(cli::notes_of(sight).size() == 7);
  CHECK(cli::notes_of(sight).at(1) == "PAUSED: paused until 2026-11-20T14:00:00Z: network change");
  CHECK(cli::notes_of(sight).at(2) == "PAUSED: paused until 2026-11-20T15:00:00Z for node a: r");
  CHECK(cli::notes_of(sight).at(4).starts_with("note: 7 devices and 9 verdicts do not fit into ConfigMap "));
}

TEST_CASE("the status is read with who wrote it, and the Lease says until when its holder leads") {
  const auto sight = cli::parse_sight("sys",
                                      R"({"metadata":{"annotations":{"device-health.io/written-by":"me",)"
                                      R"("device-health.io/written-at":"2026-11-20T12:00:00Z"}},)"
                                      R"("data":{"status.json":"{\"format\":1,\"mode\":\"enforce\"}"}})",
                                      clock_at("12:00:05"));
  REQUIRE(sight);
  CHECK(sight->written_by == "me");
  CHECK(sight->written_at == clock_at("12:00:00"));
  CHECK(sight->status.mode == "enforce");
  CHECK_FALSE(cli::parse_sight("sys", "{}", clock_at("12:00:05")));
  auto led = *sight;
  k8s::Lease lease;
  lease.holder = "me_1";
  lease.duration_seconds = 15;
  lease.renew_time = "2026-11-20T12:00:01.000000Z";
  cli::note_lease(led, &lease);
  CHECK(led.lease_ends == clock_at("12:00:16"));
  cli::note_lease(led, nullptr);
  CHECK(led.leader == "");
}

TEST_CASE("ages are written as kubectl writes them") {
  CHECK(cli::age_text(Millis(-5)) == "0s");
  CHECK(cli::age_text(Millis(59'999)) == "59s");
  CHECK(cli::age_text(Seconds(60)) == "1m");
  CHECK(cli::age_text(Seconds(3599)) == "59m59s");
  CHECK(cli::age_text(Seconds(3600 * 24 - 1)) == "23h59m");
  CHECK(cli::age_text(std::chrono::hours(49)) == "2d1h");
  CHECK(cli::age_text(std::chrono::hours(24 * 31)) == "31d");
  CHECK(cli::due_text(clock_at("12:00:00"), clock_at("12:00:00")) == "due");
  CHECK(cli::due_text(clock_at("12:00:00"), clock_at("11:59:59") + Millis(999)) == "in 1s");
}

TEST_CASE("YAML quotes every string, and nests lists and objects as they are") {
  const nlohmann::ordered_json json = {{"a", "true"},
                                       {"b", {{"c", 1}, {"d", nlohmann::json::array()}}},
                                       {"e", {{{"f", nullptr}, {"g", {"x", "y"}}}, {{"f", false}}}}};
  CHECK(cli::yaml_text(json) ==
        "a: \"true\"\nb:\n  c: 1\n  d: []\ne:\n- f: null\n  g:\n  - \"x\"\n  - \"y\"\n- f: false\n");
}

}  // namespace dhc::test
