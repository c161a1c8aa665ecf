#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "domain/policy/config.h"
#include "domain/policy/config_text.h"
#include "tests/support/core/fixtures.h"

using namespace dhc;

namespace {

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

ConfigResult parse_fixture(const std::string& path_from_fixtures) {
  const std::array files = {ConfigFile{path_from_fixtures, test::read_fixture(path_from_fixtures)}};
  return parse_config(files);
}

}  // namespace

TEST_CASE("every example is valid") {
  const auto names = names_in("manifests/examples");
  CHECK(names.size() >= 5);
  for (const std::string& name : names) {
    CAPTURE(name);
    const auto config = parse_fixture("../../manifests/examples/" + name);
    if (!config) FAIL_CHECK(format_mistake(config.error().front()));
    CHECK(config.has_value());
    CHECK((config && config->warnings.empty()));
  }
}

TEST_CASE("the example of all keys gives every key its default") {
  const auto config = parse_fixture("../../manifests/examples/all-keys.yaml");
  REQUIRE(config);
  auto limits = config->limits;
  CHECK(limits.pauses.size() == 1);
  limits.pauses.clear();
  REQUIRE(limits.webhook);
  CHECK(limits.webhook->per_minute == WebhookRules{}.per_minute);
  limits.webhook.reset();
  CHECK(limits == Limits{});
  const DevicePolicy& policy = config->policies.at(0);
  CHECK(policy.mode == Mode::Enforce);  // enforceOn means nothing without it
  CHECK(policy.enforce_on->percent == 10);
  CHECK(policy.after == DevicePolicy{}.after);
  CHECK(policy.match.health == Match{}.health);
  EvictRules expected;
  expected.after = Seconds(30);
  expected.notice = NoticeRules{};
  CHECK(policy.evict == expected);
  TaintRules taint;
  taint.node = true;  // nodeAtLeast is a mistake without it
  CHECK(policy.taint == taint);
  CHECK(policy.job_retry == JobRetryRules{});
  RecoverRules recover;
  recover.identity_attribute = "gpu.nvidia.com/uuid";
  CHECK(policy.recover == recover);
  HandOverRules hand_over;
  hand_over.incidents = 3;  // without a number, within and onQuarantine could be nothing else
  hand_over.condition = HandOverCondition{.type = "device-health.io/NodeNeedsRepair"};
  REQUIRE(policy.hand_over->resource);
  CHECK(policy.hand_over->resource->keeps == HandOverResource{}.keeps);
  CHECK(policy.hand_over->resource->per_device == HandOverResource{}.per_device);
  hand_over.resource = policy.hand_over->resource;  // a template has no default
  CHECK(policy.hand_over == hand_over);
}

TEST_CASE("every bad file is refused with a place and a remedy") {
  const auto names = names_in("tests/fixtures/config/bad");
  CHECK(names.size() >= 90);
  for (const std::string& name : names) {
    CAPTURE(name);
    const auto config = parse_fixture("config/bad/" + name);
    CHECK_FALSE(config.has_value());
    if (config) continue;
    for (const ConfigMistake& mistake : config.error()) {
      CAPTURE(format_mistake(mistake));
      CHECK(mistake.line >= 1);
      CHECK(mistake.column >= 1);
      CHECK_FALSE(mistake.message.empty());
      CHECK_FALSE(mistake.remedy.empty());
    }
    // Each bad file holds one fault, so that one is told and no other is made up.
    CHECK(config.error().size() == (name == "several.yaml" ? 5 : 1));
  }
}
