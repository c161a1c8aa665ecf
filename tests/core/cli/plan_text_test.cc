// What `plan` prints of what was foreseen.
#include "cli/plan_text.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace dhc::test {

namespace {

Foreseen foreseen(const char* pod, Reason reason, Millis begins = {}, std::optional<Millis> ends = {}) {
  Foreseen one{.verdict = {}, .begins = begins, .ends = ends};
  one.verdict.subject = {.kind = "Pod", .ns = "ml", .name = pod, .uid = "u"};
  one.verdict.device = "node-a/example.com/gpu/gpu-0";
  one.verdict.policy = "p";
  one.verdict.reason = reason;
  one.verdict.message = "because";
  return one;
}

cli::PlanSide side(const char* source, std::vector<Foreseen> all) {
  return {.source = source,
          .policies = {{"p", "enforce"}},
          .foresight = {.foreseen = std::move(all), .nodes = 2, .pods = 3, .devices_unhealthy = 1}};
}

cli::PlanReport report() {
  return {.cluster = "context kind-a",
          .horizon = std::chrono::hours(1),
          .today = side("ConfigMap a/b", {foreseen("same", Reason::OptedOut),
                                          foreseen("train", Reason::WaitingForWindow, {}, Seconds(60)),
                                          foreseen("train", Reason::WouldEvict, Seconds(60))}),
          .wanted = side("new.yaml", {foreseen("same", Reason::OptedOut), foreseen("train", Reason::NoPolicy)}),
          .remarks = {}};
}

}  // namespace

TEST_CASE("plan shows what comes of each device under both configurations, marks the difference and adds up") {
  CHECK(cli::plan_text(report()) ==
        "context kind-a: 2 nodes, 3 pods with devices, 1 of the devices Unhealthy. Nothing was changed.\n"
        "TODAY  ConfigMap a/b: p (enforce)\n"
        "NEW    new.yaml: p (enforce)\n"
        "What each would do within 1h if nothing else happens:\n"
        "\n"
        "   SUBJECT       DEVICE                        TODAY             NEW\n"
        "   Pod ml/same   node-a/example.com/gpu/gpu-0  OptedOut          OptedOut\n"
        "~  Pod ml/train  node-a/example.com/gpu/gpu-0  WouldEvict in 1m  NoPolicy\n"
        "\n"
        "TOTAL         TODAY  NEW\n"
        "WouldEvict    1      0\n"
        "WouldTaint    0      0\n"
        "WouldUntaint  0      0\n"
        "WouldCredit   0      0\n"
        "NoPolicy      0      1\n"
        "\n"
        "Limits, caps and the brake may delay or forbid what WouldTaint, WouldCredit and WouldEvict say.\n");
}

TEST_CASE("plan's wide table has below each row what its reasons say, on both sides") {
  CHECK(cli::plan_text(report(), true)
            .contains("~  Pod ml/train  node-a/example.com/gpu/gpu-0  WouldEvict in 1m  NoPolicy\n"
                      "     TODAY WouldEvict: because\n"
                      "     NEW   NoPolicy: because\n"));
}

TEST_CASE("plan of one configuration alone has one column, and what has ended is shown where nothing followed") {
  auto alone = report();
  alone.today.reset();
  alone.wanted->foresight.foreseen = {foreseen("train", Reason::Recovered, Seconds(5), Seconds(95))};
  alone.remarks = {"today's configuration: ConfigMap a/b does not exist"};
  const auto text = cli::plan_text(alone);
  CHECK(text.contains("Note: today's configuration: ConfigMap a/b does not exist\n"));
  CHECK(text.contains("  Pod ml/train  node-a/example.com/gpu/gpu-0  Recovered in 5s, until 1m35s from now\n"));
  CHECK_FALSE(text.contains("TODAY"));
  CHECK_FALSE(text.contains("~"));
}

TEST_CASE("plan says in words that a cluster calls for nothing") {
  auto quiet = report();
  quiet.today->foresight.foreseen.clear();
  quiet.wanted->foresight.foreseen.clear();
  CHECK(cli::plan_text(quiet).contains("\nNothing: no device calls for it.\n"));
}

TEST_CASE("plan in JSON has every reason with its message and times, and says which subjects differ") {
  const auto json = nlohmann::json::parse(cli::plan_json(report()));
  CHECK(json["horizonSeconds"] == 3600);
  CHECK(json["today"]["totals"]["WouldEvict"] == 1);
  CHECK(json["new"]["policies"][0]["mode"] == "enforce");
  REQUIRE(json["subjects"].size() == 2);
  CHECK(json["subjects"][0]["differs"] == false);
  const auto& train = json["subjects"][1];
  CHECK(train["differs"] == true);
  REQUIRE(train["today"].size() == 2);
  CHECK(train["today"][0]["endsAfterSeconds"] == 60);
  CHECK(train["today"][1]["beginsAfterSeconds"] == 60);
  CHECK(train["today"][1]["endsAfterSeconds"].is_null());
  CHECK(train["new"][0]["message"] == "because");
}

TEST_CASE("plan in YAML says what it says in JSON") {
  const auto yaml = cli::plan_yaml(report());
  CHECK(yaml.contains("\nhorizonSeconds: 3600\n"));
  CHECK(yaml.contains("message: \"because\"\n"));
}

}  // namespace dhc::test
