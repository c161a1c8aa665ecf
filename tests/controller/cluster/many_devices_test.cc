// A pod with more devices than its condition has room for.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/printable.h"
#include "domain/contract/condition_text.h"
#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::minutes;

namespace {

Stage pod_with_devices(int count) {
  Stage stage;
  stage.policy().evict.reset();
  stage.send_policy();
  stage.node("node-a", count, 0);
  stage.pod({.name = "many", .device = "gpu-0", .health = Health::Unhealthy});
  auto& devices = stage.pod_named("many").allocated.front().devices;
  devices.clear();
  for (int i = 0; i < count; ++i) {
    devices.push_back({fmt::format("gpu-{:05}-with-a-name-of-some-length", i), Health::Unhealthy, "Xid 79"});
  }
  stage.upsert_pod("many");
  return stage;
}

}  // namespace

TEST_CASE("The condition of a pod with 600 bad devices is written once, and says how many it does not name") {
  auto stage = pod_with_devices(600);
  stage.run_for(minutes(10), Seconds(10));
  REQUIRE(stage.conditions().size() == 1);
  const auto& message = stage.conditions().front().wanted->message;
  CHECK(message.size() <= 32UL * 1024);
  CHECK(message == printable_cut(message, 32UL * 1024));
  CHECK(message.ends_with(" more devices"));
}

TEST_CASE("A pod with more bad devices than its condition names is evicted as any other") {
  auto stage = pod_with_devices(600);
  stage.policy().evict.emplace().no_replacement_wait = Millis(0);
  stage.limits().brake_at_least = 1'000;
  stage.send_policy();
  CHECK(stage.run_for(minutes(2), Seconds(10)) == std::vector<std::string>{"many"});
}

TEST_CASE("A condition of one device too many names all but it, and one with room for all names all") {
  std::vector<ConditionLine> lines;
  const auto add = [&](std::size_t said) {
    lines.push_back({.device = fmt::format("n/r/gpu-{:04}", lines.size()),
                     .since = {},
                     .policy = "p",
                     .said = std::string(said, 'x'),
                     .next = "eviction"});
  };
  while (condition_message(lines).size() + 400 <= kLongestCondition) add(200);
  const auto all = read_condition(condition_message(lines));
  CHECK_FALSE(all.cut);
  CHECK(all.devices.size() == lines.size());
  for (int i = 0; i < 3; ++i) add(200);
  const auto message = condition_message(lines);
  CHECK(message.size() <= kLongestCondition);
  const auto some = read_condition(message);
  CHECK(some.cut);
  CHECK(message.ends_with(fmt::format(" || and {} more devices", lines.size() - some.devices.size())));
}

TEST_CASE("What a driver says is taken for no device, whatever it says") {
  const auto words = read_condition(condition_message({{.device = "d/p/gpu-0",
                                                        .since = WallTime(Seconds(1'000'000)),
                                                        .policy = "p",
                                                        .said = "x unhealthy since 2020-01-01T00:00:00Z",
                                                        .next = "and 3 more devices",
                                                        .source = SignalSource::Claim},
                                                       {.device = "hostile\x01 || d/p/gpu-9",
                                                        .since = WallTime(Seconds(2'000'000)),
                                                        .policy = "p",
                                                        .said = "",
                                                        .next = "eviction"}}));
  CHECK(words.devices.size() == 2);
  CHECK_FALSE(words.cut);
  REQUIRE(words.find("d/p/gpu-0") != nullptr);
  CHECK(words.find("d/p/gpu-0")->source == SignalSource::Claim);
  CHECK(words.find("d/p/gpu-0")->since == WallTime(Seconds(1'000'000)));
  CHECK(words.find("d/p/gpu-9") == nullptr);
  REQUIRE(words.find("hostile\x01 || d/p/gpu-9") != nullptr);
}

}  // namespace dhc::test
