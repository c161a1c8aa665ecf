#include "domain/history/card_penalty.h"

#include <chrono>
#include <vector>

#include <doctest/doctest.h>

namespace dhc::card_penalty_test {

namespace {

using std::chrono::hours;
using std::chrono::minutes;

const WallTime kNoon = std::chrono::sys_days(std::chrono::year(2026) / 11 / 20) + hours(12);
constexpr Millis kTick{1};

/// Nothing decays in the times of these tests.
RecoverRules slow_rules() {
  RecoverRules rules;
  rules.healthy_for = minutes(10);
  rules.half_life = hours(1'000'000);
  return rules;
}

DeviceHistory broke_at(const std::vector<Millis>& times) {
  DeviceHistory past;
  for (const auto time : times) {
    past.incidents.push_back({.at = kNoon + time, .reason = {}});
    past.penalty += 1;
    past.penalty_at = kNoon + time;
    ++past.count;
  }
  return past;
}

double sum_of(const DeviceHistory& own, const std::vector<DeviceHistory>& others, WallTime at = kNoon + hours(100)) {
  std::vector<const DeviceHistory*> pasts;
  for (const auto& other : others) pasts.push_back(&other);
  return card_penalty(own, pasts, slow_rules(), at);
}

}  // namespace

TEST_CASE("What breaks in turn adds up, and what breaks together counts once") {
  const auto own = broke_at({hours(0)});
  CHECK(sum_of(own, {}) == penalty_of(own, slow_rules(), kNoon + hours(100)));
  CHECK(sum_of(own, {broke_at({hours(1)}), broke_at({hours(2)})}) == doctest::Approx(3).epsilon(0.001));
  CHECK(sum_of(own, {broke_at({minutes(1)}), broke_at({minutes(2)})}) == doctest::Approx(1).epsilon(0.001));
  // Two of the others together, apart from this one.
  CHECK(sum_of(own, {broke_at({hours(1)}), broke_at({hours(1) + minutes(3)})}) == doctest::Approx(2).epsilon(0.001));
}

TEST_CASE("A fault lasts for healthyFor from its beginning, and not a millisecond longer") {
  const auto own = broke_at({hours(0)});
  CHECK(sum_of(own, {broke_at({minutes(10) - kTick})}) == doctest::Approx(1).epsilon(0.001));
  CHECK(sum_of(own, {broke_at({minutes(10)})}) == doctest::Approx(2).epsilon(0.001));
  // Each within healthyFor of the one before: as a device that goes bad again and again.
  CHECK(sum_of(own, {broke_at({minutes(6)}), broke_at({minutes(12)})}) == doctest::Approx(2).epsilon(0.001));
}

TEST_CASE("What has been vouched for adds nothing, and hides nothing that came after it") {
  const auto own = broke_at({hours(9)});
  auto paid = broke_at({hours(0), hours(1)});
  paid.penalty = 0;
  CHECK(sum_of(own, {paid}) == doctest::Approx(1).epsilon(0.001));
  paid.incidents.push_back({.at = kNoon + hours(5), .reason = {}});
  paid.penalty = 1;
  paid.penalty_at = kNoon + hours(5);
  CHECK(sum_of(own, {paid}) == doctest::Approx(2).epsilon(0.001));
  CHECK(sum_of(own, {paid, broke_at({hours(1)})}) == doctest::Approx(3).epsilon(0.001));
}

TEST_CASE("What an incident did not add is not counted, and what is older than the remembered incidents is") {
  const auto own = broke_at({hours(9)});
  auto maintained = broke_at({hours(1)});
  maintained.incidents.push_back({.at = kNoon + hours(2), .reason = {}, .without_penalty = true});
  CHECK(sum_of(own, {maintained}) == doctest::Approx(2).epsilon(0.001));
  auto long_ago = broke_at({hours(1)});
  long_ago.penalty = 3;
  CHECK(sum_of(own, {long_ago}) == doctest::Approx(4).epsilon(0.001));
}

TEST_CASE("One history that several devices have is not added up") {
  const auto shared = broke_at({hours(0), hours(1), hours(2)});
  CHECK(sum_of(shared, {shared, broke_at({hours(0), hours(1)})}) == doctest::Approx(3).epsilon(0.001));
}

TEST_CASE("What rounding leaves of a stored penalty quarantines nobody") {
  const auto own = broke_at({hours(0)});
  std::vector<DeviceHistory> others;
  for (int i = 1; i <= 6; ++i) others.push_back(broke_at({minutes(1)}));
  for (auto& other : others) other.penalty = 1.005;
  CHECK(sum_of(own, others, kNoon + hours(1)) <= 1);
}

TEST_CASE("The first device of a card that goes bad shows its fault, and the others have not broken it again") {
  const auto first = broke_at({hours(5)});
  const std::vector<const DeviceHistory*> others = {&first};
  for (const auto time : {Millis(0), Millis(minutes(10)) - kTick}) {
    CHECK(is_fault_of_another(broke_at({hours(5) + time}), others, slow_rules(), kNoon + hours(5) + time));
  }
  CHECK(!is_fault_of_another(broke_at({hours(5) + minutes(10)}), others, slow_rules(), kNoon + hours(5) + minutes(10)));
  CHECK(!is_fault_of_another(broke_at({hours(5)}), {}, slow_rules(), kNoon + hours(5)));
}

TEST_CASE("What replicas remember in common, and ten incidents no longer explain, counts once") {
  // Two penalties from before ten incidents that added none.
  auto shared = broke_at({hours(0), hours(1)});
  shared.incidents.clear();
  for (int count = 0; count < 10; ++count)
    shared.incidents.push_back({.at = kNoon + hours(10 + count), .reason = {}, .without_penalty = true});
  CHECK(sum_of(shared, {shared, shared, shared}) == doctest::Approx(2).epsilon(0.001));
  // One that has never broken itself has it from the others.
  CHECK(sum_of({}, {shared, shared}) == doctest::Approx(2).epsilon(0.001));
  CHECK(sum_of(broke_at({hours(30)}), {shared}) == doctest::Approx(3).epsilon(0.001));
  const std::vector<const DeviceHistory*> others = {&shared, &shared};
  CHECK(highest_card_penalty(shared, others, slow_rules(), kNoon + hours(100)) == doctest::Approx(2).epsilon(0.001));
}

}  // namespace dhc::card_penalty_test
