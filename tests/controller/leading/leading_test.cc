#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "domain/contract/names.h"
#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

using std::chrono::hours;
using std::chrono::minutes;

namespace {

Stage remembering_stage() {
  auto stage = gpu_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.send_policy();
  return stage;
}

/// The leader ends and another process that has watched all along takes over.
void fail_over(Stage& stage) {
  stage.deliver(Leading{.leads = false});
  stage.turn();
  stage.advance(Seconds(15));
  stage.deliver(Leading{.leads = true});
}

}  // namespace

TEST_CASE("Who does not lead decides nothing, says nothing and keeps its World") {
  auto stage = remembering_stage();
  stage.deliver(Leading{.leads = false});
  stage.run_for(minutes(10), Seconds(1));
  CHECK(stage.writes().empty());
  CHECK(stage.events().empty());
  CHECK(stage.conditions().empty());
  CHECK(stage.verdicts().empty());
  CHECK(stage.controller().synced());
  CHECK(stage.controller().stats().pods > 0);
}

TEST_CASE("A standby that begins to lead does what a leader from the start has done") {
  auto plain = remembering_stage();
  plain.run_for(hours(25), minutes(1));
  auto stage = remembering_stage();
  stage.deliver(Leading{.leads = false});
  stage.run_for(minutes(1), Seconds(1));
  stage.deliver(Leading{.leads = true});
  stage.run_for(hours(25), minutes(1));
  CHECK(deeds(stage) == deeds(plain));
}

TEST_CASE("A change of leader in any second changes neither what is done nor how often") {
  auto plain = remembering_stage();
  plain.run_for(hours(25), minutes(1));
  const auto expected = deeds(plain);
  for (const int at : {0, 30, 60, 61, 90, 600}) {
    auto stage = remembering_stage();
    stage.run_for(Seconds(at), Seconds(1));
    fail_over(stage);
    stage.run_for(hours(25), minutes(1));
    CAPTURE(at);
    CHECK(deeds(stage) == expected);
  }
}

TEST_CASE("The budget is empty when a term begins") {
  auto stage = gpu_stage();
  stage.limits().evictions_per_minute = 1;
  stage.send_policy();
  stage.deliver(Leading{.leads = false});
  stage.run_for(minutes(10), Seconds(10));
  stage.deliver(Leading{.leads = true});
  CHECK(stage.run_for(Seconds(59), Seconds(1)).empty());
  CHECK(stage.run_for(minutes(2), Seconds(1)) == std::vector<std::string>{"train-1"});
}

TEST_CASE("What another leader has written last is taken, also when it comes after the term has begun") {
  auto first = remembering_stage();
  first.run_for(Seconds(61));
  drop_pod(first, "train-1", "train-gpu");
  first.run_for(Seconds(10));
  const auto map = state_map(first.state_text());
  REQUIRE(map.data.begin()->second.find("gpu-0") != std::string::npos);

  for (const bool late : {false, true}) {
    Stage stage;
    stage.whole_policy().own_namespace = "dhc";
    stage.send_policy();
    stage.deliver(Leading{.leads = false});
    stage.turn();
    if (late) stage.deliver(Leading{.leads = true});
    stage.put(map);
    if (!late) stage.deliver(Leading{.leads = true});
    std::string written;
    for (int i = 0; i < 10; ++i) {
      for (const auto& action : stage.turn()) {
        if (const auto* state = std::get_if<incident_state::WriteState>(&action)) written = state->text;
        stage.answer(action);
      }
      stage.advance(Seconds(5));
    }
    CAPTURE(late);
    const bool kept = written.empty() || written.find("gpu-0") != std::string::npos;
    CHECK(kept);
  }
}

TEST_CASE("An answer to what an earlier term has sent changes nothing in the new one") {
  auto stage = remembering_stage();
  stage.settle();
  stage.advance(Seconds(61));
  const auto old = stage.turn();
  REQUIRE(
      std::ranges::any_of(old, [](const Action& a) { return std::holds_alternative<incident_state::WriteState>(a); }));
  fail_over(stage);
  for (const auto& action : old) stage.deliver(Outcome{.action = action, .status = {}});
  const auto actions = stage.turn();
  CHECK(std::ranges::any_of(actions,
                            [](const Action& a) { return std::holds_alternative<incident_state::WriteState>(a); }));
}

}  // namespace dhc::test
