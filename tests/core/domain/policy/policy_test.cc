#include "domain/policy/policy.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace dhc {

namespace {

/// What a glob means, written down as it is said.
bool fits_by_definition(std::string_view glob, std::string_view text) {
  if (glob.empty()) return text.empty();
  if (glob.front() == '*') {
    return fits_by_definition(glob.substr(1), text) || (!text.empty() && fits_by_definition(glob, text.substr(1)));
  }
  if (text.empty() || (glob.front() != '?' && glob.front() != text.front())) return false;
  return fits_by_definition(glob.substr(1), text.substr(1));
}

/// Every text of at most so many of these letters.
std::vector<std::string> all_texts(std::string_view letters, std::size_t longest) {
  std::vector<std::string> all = {""};
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].size() == longest) continue;
    for (const char letter : letters) all.push_back(all[i] + letter);
  }
  return all;
}

LabelSelector selector(LabelSelector::Operator op, std::vector<std::string> values = {}) {
  return {.requirements = {{.key = "pool", .op = op, .values = std::move(values)}}};
}

}  // namespace

TEST_CASE("A glob without wildcards fits its own text and nothing else") {
  CHECK(glob_matches("nvidia.com/gpu", "nvidia.com/gpu"));
  for (const auto* other :
       {"", "nvidia.com/gp", "nvidia.com/gpu2", "anvidia.com/gpu", "nvidia.com/GPU", "nvidia_com/gpu"}) {
    CAPTURE(other);
    CHECK(!glob_matches("nvidia.com/gpu", other));
  }
  CHECK(glob_matches("", ""));
  CHECK(!glob_matches("", "a"));
  CHECK(!glob_matches("[ab]", "a"));
  CHECK(glob_matches("[ab]", "[ab]"));
}

TEST_CASE("A star takes any run of characters, a question mark just one") {
  CHECK(glob_matches("*", ""));
  CHECK(glob_matches("*.com/*", "nvidia.com/mig-1g.5gb"));
  CHECK(glob_matches("nvidia.com/gpu*", "nvidia.com/gpu"));
  CHECK(!glob_matches("*.com/gpu", "nvidia.com/gpu.shared"));
  CHECK(glob_matches("gpu-?", "gpu-1"));
  CHECK(!glob_matches("gpu-?", "gpu-"));
  CHECK(!glob_matches("gpu-?", "gpu-10"));
  CHECK(!glob_matches("?", ""));
}

TEST_CASE("Every short glob fits exactly the texts that it fits by definition") {
  int fitting = 0;
  for (const auto& glob : all_texts("ab*?", 4)) {
    for (const auto& text : all_texts("ab", 4)) {
      const bool expected = fits_by_definition(glob, text);
      fitting += expected ? 1 : 0;
      if (glob_matches(glob, text) != expected) FAIL_CHECK("glob '" << glob << "', text '" << text << "'");
    }
  }
  CHECK(fitting > 1'000);
}

TEST_CASE("A wildcard in the text is a character like any other") {
  CHECK(glob_matches("*", "*a"));
  CHECK(glob_matches("*b", "*ab"));
  CHECK(glob_matches("a?b", "a*b"));
  CHECK(!glob_matches("axb", "a*b"));
  CHECK(!glob_matches("axb", "a?b"));
  CHECK(glob_matches("a*b", "a*b"));
}

TEST_CASE("A glob of many stars ends soon on a long text that it nearly fits") {
  std::string glob;
  for (int i = 0; i < 40; ++i) glob += "*a";
  const std::string text(5'000, 'a');
  CHECK(glob_matches(glob, text));
  CHECK(!glob_matches(glob + "b", text));
}

TEST_CASE("A driver's taint without a named effect counts where it keeps pods away, and nowhere else") {
  DeviceTaintMatch match{.key = "example.com/*", .effect = {}};
  const auto fits = [&](const std::string& effect) {
    return match.fits({.key = "example.com/bad", .value = "", .effect = effect});
  };
  CHECK(fits("NoSchedule"));
  CHECK(fits("NoExecute"));
  for (const auto* effect : {"None", "PreferNoSchedule", "", "noschedule"}) {
    CAPTURE(effect);
    CHECK(!fits(effect));
  }
  match.effect = "None";
  CHECK(fits("None"));
  CHECK(!fits("NoSchedule"));
  match.effect = "*";
  for (const auto* effect : {"None", "PreferNoSchedule", "", "NoExecute"}) CHECK(fits(effect));
}

TEST_CASE("A driver's taint counts by key and value, each a glob, and any value will do unless one is named") {
  DeviceTaintMatch match{.key = "example.com/x*", .effect = {}};
  CHECK(match.fits({.key = "example.com/xid", .value = "", .effect = "NoSchedule"}));
  CHECK(match.fits({.key = "example.com/xid", .value = "79", .effect = "NoSchedule"}));
  CHECK(!match.fits({.key = "example.com/ecc", .value = "79", .effect = "NoSchedule"}));
  match.value = "7?";
  CHECK(match.fits({.key = "example.com/xid", .value = "79", .effect = "NoSchedule"}));
  CHECK(!match.fits({.key = "example.com/xid", .value = "", .effect = "NoSchedule"}));
  CHECK(!match.fits({.key = "example.com/xid", .value = "48", .effect = "NoSchedule"}));
}

TEST_CASE("Each operator of a label selector says what it says, also of a label that is not there") {
  using enum LabelSelector::Operator;
  const k8s::StringMap labels = {{"pool", "gold"}};
  const k8s::StringMap none;
  CHECK(selector(In, {"silver", "gold"}).matches(labels));
  CHECK(!selector(In, {"silver"}).matches(labels));
  CHECK(!selector(In, {"gold", ""}).matches(none));
  CHECK(!selector(NotIn, {"silver", "gold"}).matches(labels));
  CHECK(selector(NotIn, {"silver"}).matches(labels));
  CHECK(selector(NotIn, {"gold", ""}).matches(none));
  CHECK(selector(Exists).matches(labels));
  CHECK(!selector(Exists).matches(none));
  CHECK(!selector(DoesNotExist).matches(labels));
  CHECK(selector(DoesNotExist).matches(none));
  CHECK(LabelSelector{}.matches(none));
}

TEST_CASE("A label selector names the first of its requirements that is not met") {
  const LabelSelector both{.requirements = {{.key = "pool", .op = LabelSelector::Operator::Exists, .values = {}},
                                            {.key = "team", .op = LabelSelector::Operator::Exists, .values = {}}}};
  REQUIRE(both.first_unmet({}) != nullptr);
  CHECK(both.first_unmet({})->key == "pool");
  REQUIRE(both.first_unmet({{"pool", "gold"}}) != nullptr);
  CHECK(both.first_unmet({{"pool", "gold"}})->key == "team");
  CHECK(both.first_unmet({{"pool", "gold"}, {"team", "ml"}}) == nullptr);
}

TEST_CASE("A policy does what its own mode and the controller's both allow") {
  Policy policy;
  DevicePolicy rules;
  for (const auto own : {Mode::Off, Mode::Observe, Mode::Enforce}) {
    for (const auto cap : {Mode::Off, Mode::Observe, Mode::Enforce}) {
      rules.mode = own;
      policy.mode_cap = cap;
      CHECK(effective_mode(&rules, policy) == (own < cap ? own : cap));
      CHECK(effective_mode(nullptr, policy) == cap);
    }
  }
}

}  // namespace dhc
