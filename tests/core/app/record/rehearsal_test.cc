#include "app/record/rehearsal.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <doctest/doctest.h>

#include "cli/replay_text.h"
#include "tests/support/core/job_world.h"
#include "tests/support/core/taint_world.h"

using namespace dhc;
using namespace dhc::test;
using record::Fate;

namespace {

record::RehearsalReport rehearsed(std::string_view text, const Policy& policy) {
  record::Rehearsal rehearsal(policy);
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto fed = rehearsal.feed(text.substr(0, end));
    REQUIRE_MESSAGE(fed, fed.error().message);
    text.remove_prefix(end + 1);
  }
  return rehearsal.finish();
}

const Fate& fate_of(const record::RehearsalReport& report, Fate::Of of, std::string_view name) {
  const auto found = std::ranges::find_if(
      report.fates, [&](const Fate& fate) { return fate.of == of && fate.subject.name.starts_with(name); });
  REQUIRE(found != report.fates.end());
  return *found;
}

/// As far as a rehearsal with the recorded configuration tells it.
void check_same(const record::RehearsalReport& report) {
  for (const auto& fate : report.fates) {
    CAPTURE(fate.subject.name);
    REQUIRE(fate.then.has_value() == fate.now.has_value());
    if (fate.then) CHECK(std::chrono::abs(*fate.now - *fate.then) <= record::kSameTime);
  }
  CHECK(report.then.evictions == report.now.evictions);
  CHECK(report.then.taints == report.now.taints);
  CHECK(report.then.credits == report.now.credits);
}

/// A StatefulSet's pod on a DRA device that breaks, ten minutes after the start; a quarter of an hour later it is over.
struct Story : TaintWorld {
  Story() {
    device = start_one();
    run_for(std::chrono::minutes(10));
    set_health(device, "Unhealthy");
    run_for(std::chrono::minutes(15));
  }
  std::string device;
};

}  // namespace

TEST_CASE("A rehearsal with the recorded configuration does what was done, taint and eviction") {
  Story story;
  const auto report = rehearsed(story.recording(), story.whole_policy());
  CHECK(report.runs == 1);
  CHECK(report.left_out == 0);
  CHECK(report.then.evictions == 1);
  CHECK(report.then.taints == 1);
  CHECK(report.then.held_bad > 0);
  CHECK(report.now.held_bad == doctest::Approx(report.then.held_bad).epsilon(0.3));
  check_same(report);
}

TEST_CASE("A rehearsal with the recorded configuration gives a Job its retries back as it was done") {
  sim::JobShape shape;
  shape.parallelism = 2;
  shape.completions = 2;
  JobWorld world(shape);
  world.run_for(std::chrono::minutes(2));
  REQUIRE_FALSE(world.break_device().empty());
  world.run_for(std::chrono::minutes(5));
  const auto report = rehearsed(world.recording(), world.whole_policy());
  CHECK(report.then.evictions == 1);
  CHECK(report.then.credits == 1);
  check_same(report);
}

TEST_CASE("What waits for less is evicted earlier, and holds its devices bad for less") {
  Story story;
  auto policy = story.whole_policy();
  policy.policies.front().after = Seconds(5);
  const auto report = rehearsed(story.recording(), policy);
  const auto& fate = fate_of(report, Fate::Of::Eviction, "s-0");
  REQUIRE(fate.then);
  REQUIRE(fate.now);
  CHECK(*fate.now < *fate.then - Seconds(30));
  CHECK(report.now.held_bad < report.then.held_bad);
  const auto text = cli::rehearsal_text(report, {});
  CHECK(text.find(" earlier\n") != std::string::npos);
}

TEST_CASE("A pod that only the recorded configuration has evicted goes on, and says what holds it") {
  Story story;
  auto policy = story.whole_policy();
  policy.policies.front().evict.reset();
  const auto report = rehearsed(story.recording(), policy);
  CHECK(report.then.evictions == 1);
  CHECK(report.now.evictions == 0);
  const auto& fate = fate_of(report, Fate::Of::Eviction, "s-0");
  CHECK(fate.then);
  CHECK_FALSE(fate.now);
  // From its fault to the end of the recording.
  CHECK(report.now.held_bad == doctest::Approx(0.25).epsilon(0.05));
  CHECK(report.then.work_ended > 0.15);
  CHECK(report.now.work_ended == 0);
  const auto text = cli::rehearsal_text(report, {"a remark"});
  CHECK(text.find("evicted then, not now") != std::string::npos);
  CHECK(text.find("note: a remark\n") != std::string::npos);
  CHECK(cli::rehearsal_json(report, {}).find(R"("difference":"onlyThen")") != std::string::npos);
}

TEST_CASE("A difference that is too little to be shown has no sign") {
  record::RehearsalReport report;
  report.then.held_bad = 0.04;
  report.now.held_bad = 0.02;
  report.then.work_ended = 1.02;
  report.now.work_ended = 1.04;
  report.now.evictions = 1;
  const auto text = cli::rehearsal_text(report, {});
  CHECK(text.find("-0.0") == std::string::npos);
  CHECK(text.find("+0.0") == std::string::npos);
  CHECK(text.find("+1\n") != std::string::npos);
}

TEST_CASE("A month of observing rehearses what enforcing would have done") {
  TaintWorld world;
  world.whole_policy().mode_cap = Mode::Observe;
  world.send_policy();
  const auto device = world.start_one();
  world.run_for(std::chrono::minutes(10));
  world.set_health(device, "Unhealthy");
  world.run_for(std::chrono::minutes(15));
  const auto report = rehearsed(world.recording(), world.whole_policy());
  CHECK(report.then.evictions == 0);
  CHECK(report.then.taints == 0);
  CHECK(report.now.evictions == 1);
  CHECK(report.now.taints == 1);
  CHECK(report.now.held_bad < report.then.held_bad);
  CHECK(fate_of(report, Fate::Of::Eviction, "s-0").then_why == "WouldEvict");
}

TEST_CASE("A recording in which nothing breaks rehearses to nothing") {
  TaintWorld world;
  (void)world.start_one();
  world.run_for(std::chrono::minutes(10));
  const auto report = rehearsed(world.recording(), world.whole_policy());
  CHECK(report.fates.empty());
  CHECK(cli::rehearsal_text(report, {}).find("No difference: 0 pods, devices and Jobs fare the same.") !=
        std::string::npos);
}

TEST_CASE("Runs that overlap are not played twice") {
  Story story;
  auto text = story.recording();
  auto again = text;
  again.replace(again.find("\"run\":\"test\""), 12, "\"run\":\"rest\"");
  const auto report = rehearsed(text + again, story.whole_policy());
  CHECK(report.runs == 2);
  CHECK(report.left_out == 1);
  CHECK(report.then.evictions == 1);
}
