#include "reconcilers/taint/answer.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "domain/contract/our_taint.h"
#include "reconcilers/taint/build.h"

namespace dhc::taint {

namespace {

ApplyRule apply_of(const std::string& device) {
  const auto key = DeviceKey::dra("gpu.example.com", "node-a", device);
  return {.name = rule_name(key),
          .api_version = "resource.k8s.io/v1",
          .uid = {},
          .resource_version = {},
          .driver = key.scope,
          .pool = key.place,
          .device_name = key.device,
          .effect = "NoSchedule",
          .policy = "gpus",
          .identity = {},
          .identity_attribute = {},
          .since = {},
          .incidents = 1,
          .device = to_string(key)};
}

/// What a server stores of what it was sent, as `alter` leaves it.
k8s::Response stored(const ApplyRule& action, const std::function<void(nlohmann::json&)>& alter = {}) {
  auto rule = nlohmann::json::parse(build_rule(action)->body);
  rule["metadata"]["uid"] = "u-1";
  rule["metadata"]["resourceVersion"] = "7";
  if (alter) alter(rule);
  return {.status = 201, .headers = {}, .body = rule.dump()};
}

}  // namespace

TEST_CASE("A rule that is stored as it was sent is done, and its UID known") {
  for (const auto* effect : {"None", "NoSchedule"}) {
    auto action = apply_of("gpu-0");
    action.effect = effect;
    const auto judged = judge_answer(action, stored(action));
    CHECK(judged.status.has_value());
    CHECK(judged.uid == "u-1");
  }
}

TEST_CASE("A rule that is stored otherwise is Altered, with what was changed and the remedy") {
  const auto action = apply_of("gpu-0");
  const std::vector<std::pair<std::function<void(nlohmann::json&)>, std::string>> cases = {
      {[](auto& rule) { rule["metadata"]["labels"]["app.kubernetes.io/managed-by"] = "kyverno"; }, "'kyverno'"},
      {[](auto& rule) { rule["metadata"].erase("labels"); }, "managed-by is gone"},
      {[](auto& rule) { rule["metadata"].erase("annotations"); }, "effect is gone"},
      {[](auto& rule) { rule["spec"]["deviceSelector"].erase("device"); }, "its selector"},
      {[](auto& rule) { rule["spec"]["deviceSelector"]["pool"] = "node-b"; }, "its selector"},
      {[](auto& rule) { rule["spec"]["taint"]["effect"] = "NoExecute"; }, "its effect is NoExecute"},
      {[](auto& rule) { rule["spec"]["taint"]["key"] = "other"; }, "its taint's key is other"},
      {[](auto& rule) {
         rule["spec"]["taint"]["effect"] = "None";
         rule["metadata"]["annotations"]["device-health.io/effect"] = "None";
       },
       "its effect is None"}};
  for (const auto& [alter, words] : cases) {
    CAPTURE(words);
    const auto judged = judge_answer(action, stored(action, alter));
    REQUIRE_FALSE(judged.status);
    CHECK(judged.status.error().kind == ErrorKind::Altered);
    CHECK(judged.status.error().message.contains(words));
    CHECK(judged.status.error().message.contains("except those of the controller's ServiceAccount"));
    CHECK(judged.uid == "u-1");
  }
}

TEST_CASE("An answer that cannot be read is none, and an error stays what it is") {
  const auto action = apply_of("gpu-0");
  for (const auto* body : {"", "{}", "[]", "{"}) {
    const auto judged = judge_answer(action, k8s::Response{.status = 200, .headers = {}, .body = body});
    REQUIRE_FALSE(judged.status);
    CHECK(judged.status.error().kind == ErrorKind::Unavailable);
  }
  CHECK(judge_answer(action, fail(ErrorKind::Forbidden, "no")).status.error().kind == ErrorKind::Forbidden);
}

}  // namespace dhc::taint
