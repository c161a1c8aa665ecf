#include "app/describe.h"

#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

namespace dhc::test {

namespace {

template <std::size_t... I>
std::vector<Action> one_of_each(std::index_sequence<I...> /*all*/) {
  return {Action(std::in_place_index<I>)...};
}

}  // namespace

TEST_CASE("Every action says what it is, by a name of its own") {
  std::set<std::string_view> names;
  for (const auto& action : one_of_each(std::make_index_sequence<std::variant_size_v<Action>>())) {
    const auto facts = facts_of(action);
    CHECK_FALSE(facts.name.empty());
    CHECK_MESSAGE(names.insert(facts.name).second, facts.name);
    CHECK_FALSE(words_of(action).empty());
    const bool has_key_of_its_own = facts.queue == Queue::Evictions || facts.name == "ApplyCondition" ||
                                    facts.queue == Queue::Events || facts.queue == Queue::Reads;
    CHECK_MESSAGE(write_key(action).has_value() == !has_key_of_its_own, facts.name);
  }
}

TEST_CASE("An action in words names the verb and the object, whatever became of it") {
  CHECK(
      words_of(eviction::EvictPod{
          .ns = "ml", .name = "web-1", .uid = {}, .grace_period_seconds = {}, .key = {}, .device = {}, .policy = {}}) ==
      "eviction of ml/web-1");
  taint::ApplyRule rule;
  rule.name = "dhc-1";
  rule.effect = "NoSchedule";
  rule.device = "node-a/gpu-0";
  CHECK(words_of(rule) == "DeviceTaintRule dhc-1 (NoSchedule) for node-a/gpu-0");
  job_retry::PatchJob patch;
  patch.ns = "ml";
  patch.name = "train";
  patch.limit_before = 6;
  patch.limit = 7;
  CHECK(words_of(patch) == "patch of Job ml/train (backoffLimit 6 to 7)");
  notice::EmitEvent event;
  event.regarding = {.kind = "Node", .ns = {}, .name = "node-a", .uid = {}};
  event.reason = "BrakeEngaged";
  CHECK(words_of(event) == "Event BrakeEngaged on Node node-a");
}

TEST_CASE("Only a rule that was not there, and a taint that is added, make a taint") {
  taint::ApplyRule rule;
  CHECK(facts_of(rule).makes_taint);
  rule.uid = "1";
  CHECK_FALSE(facts_of(rule).makes_taint);
  taint::PatchNodeTaint patch;
  CHECK(facts_of(patch).makes_taint);
  patch.add = false;
  CHECK_FALSE(facts_of(patch).makes_taint);
  CHECK_FALSE(facts_of(taint::DeleteRule{}).makes_taint);
}

}  // namespace dhc::test
