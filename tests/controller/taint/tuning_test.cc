#include <chrono>
#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include "domain/tuning/life.h"
#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

using std::chrono::hours;
using std::chrono::minutes;

namespace {

constexpr Millis kStep = Seconds(30);

/// From when to when the controller's rule stood, of a device that is bad for five hours and again for half an hour,
/// and that a pod holds whenever no rule keeps it off.
std::vector<tuning::Span> ruled(const tuning::Choice& choice, const std::vector<tuning::Fault>& faults, Millis length) {
  auto stage = gpu_stage();
  stage.policy().after = choice.after;
  stage.policy().recover = choice.recover;
  stage.send_policy();
  const auto begin = stage.now().wall;
  std::vector<tuning::Span> spans;
  std::optional<std::string> holder = "train-1";
  bool was_bad = true;
  for (int pods = 2; stage.now().wall < begin + length;) {
    stage.run_for(kStep, kStep);
    const auto now = stage.now().wall;
    const bool is_bad = std::ranges::any_of(faults, [&](const tuning::Fault& fault) {
      return now >= begin + fault.from.time_since_epoch() && now < begin + fault.to.time_since_epoch();
    });
    const auto health = is_bad ? k8s::Health::Unhealthy : k8s::Health::Healthy;
    if (stage.rule() != nullptr && holder) {
      drop_pod(stage, *holder, holder == "train-1" ? "train-gpu" : *holder + "-gpu");
      holder.reset();
      spans.push_back({now, begin + length});
    } else if (stage.rule() == nullptr && !holder) {
      spans.back().to = now;
      holder = "train-" + std::to_string(pods++);
      stage.claim(*holder + "-gpu", {"gpu-0"}, *holder);
      stage.pod({.name = *holder, .owner = "Job/" + *holder, .health = health, .claim = *holder + "-gpu"});
    } else if (holder && is_bad != was_bad) {
      stage.report(*holder, health);
    }
    was_bad = is_bad;
  }
  for (auto& span : spans) {
    span.from -= begin.time_since_epoch();
    span.to -= begin.time_since_epoch();
  }
  return spans;
}

}  // namespace

TEST_CASE("The controller holds a device when tune says that it would") {
  tuning::Choice choice{.after = minutes(1), .recover = {}};
  choice.recover.hold = hours(1);
  choice.recover.quarantine_above = 1.5;
  tuning::FaultTrace trace{.unit = "cards", .devices = 1, .device_days = 1};
  trace.to = WallTime(hours(24));
  trace.broken = {
      {.name = "gpu-0",
       .in_service = {{trace.from, trace.to}},
       .faults = {{WallTime(), WallTime(hours(5))}, {WallTime(hours(8)), WallTime(hours(8) + minutes(30))}}}};
  const auto told = tuning::life_of(trace.broken.front(), trace, choice, tuning::Witness::Nobody).held;
  const auto seen = ruled(choice, trace.broken.front().faults, hours(24));
  // An hour, two and four on the first fault, which is one break; the second makes a lemon of it.
  REQUIRE(told.size() == 4);
  CHECK(told.back().to == trace.to);
  REQUIRE(seen.size() == told.size());
  for (std::size_t i = 0; i < told.size(); ++i) {
    CAPTURE(i);
    // The pod goes a few steps after the rule is there, and the next one comes as late.
    CHECK(std::chrono::abs(seen[i].from - told[i].from) < minutes(3));
    CHECK(std::chrono::abs(seen[i].to - told[i].to) < minutes(3));
  }
}

}  // namespace dhc::test
