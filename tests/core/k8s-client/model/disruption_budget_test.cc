#include "k8s-client/model/disruption_budget.h"

#include <array>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "k8s-client/model/decoder.h"

using namespace dhc::k8s;

namespace {

constexpr std::string_view kStatus =
    R"({"observedGeneration":1,"disruptionsAllowed":1,"currentHealthy":3,"desiredHealthy":2})";

DisruptionBudget budget(const std::string& spec, std::string_view status = kStatus) {
  const auto text = fmt::format(
      R"({{"kind":"PodDisruptionBudget","metadata":{{"namespace":"ml","name":"b","uid":"u","resourceVersion":"1",)"
      R"("generation":1}},"spec":{},"status":{}}})",
      spec, status);
  auto read = Decoder(Kind::PodDisruptionBudget).decode_object(text);
  REQUIRE(read.has_value());
  return std::get<DisruptionBudget>(*read);
}

Pod labelled(const std::string& value, bool ready = true) {
  Pod pod;
  pod.meta.ns = "ml";
  pod.meta.labels = {{"app", value}};
  pod.phase = PodPhase::Running;
  pod.conditions = {{.type = "Ready", .status = ready ? "True" : "False"}};
  return pod;
}

}  // namespace

TEST_CASE("A budget without a selector selects no pod, and an empty selector all pods of its namespace") {
  CHECK_FALSE(selects(budget("{}"), labelled("a")));
  CHECK_FALSE(selects(budget(R"({"selector":null})"), labelled("a")));
  CHECK(selects(budget(R"({"selector":{}})"), labelled("a")));
  auto other = labelled("a");
  other.meta.ns = "web";
  CHECK_FALSE(selects(budget(R"({"selector":{}})"), other));
}

TEST_CASE("A budget selects by labels and expressions, all of which must be met") {
  const auto by_label = budget(R"({"selector":{"matchLabels":{"app":"a"}}})");
  CHECK(selects(by_label, labelled("a")));
  CHECK_FALSE(selects(by_label, labelled("b")));
  struct Case {
    std::string_view expression;
    bool a = false;
    bool b = false;
    bool none = false;
  };
  const std::array<Case, 6> cases = {{
      {R"({"key":"app","operator":"In","values":["a"]})", true, false, false},
      {R"({"key":"app","operator":"NotIn","values":["a"]})", false, true, true},
      {R"({"key":"app","operator":"Exists"})", true, true, false},
      {R"({"key":"app","operator":"DoesNotExist"})", false, false, true},
      // Who selects cannot be told: it may.
      {R"({"key":"app","operator":"Like","values":["a"]})", true, true, true},
      {R"({"key":"app","operator":"In","values":["a"]},{"key":"app","operator":"NotIn","values":["a"]})", false, false,
       false},
  }};
  for (const auto& one : cases) {
    CAPTURE(one.expression);
    const auto by_expression = budget(fmt::format(R"({{"selector":{{"matchExpressions":[{}]}}}})", one.expression));
    CHECK(selects(by_expression, labelled("a")) == one.a);
    CHECK(selects(by_expression, labelled("b")) == one.b);
    auto bare = labelled("a");
    bare.meta.labels.clear();
    CHECK(selects(by_expression, bare) == one.none);
  }
}

TEST_CASE("A pod that is not Ready spends no disruption where its budget is healthy enough or lets it go anyway") {
  const std::string healthy = R"({"currentHealthy":2,"desiredHealthy":2})";
  const std::string ill = R"({"currentHealthy":1,"desiredHealthy":2})";
  const std::string nothing_desired = R"({"currentHealthy":1,"desiredHealthy":0})";
  const std::string always = R"({"selector":{},"unhealthyPodEvictionPolicy":"AlwaysAllow"})";
  const std::string if_healthy = R"({"selector":{},"unhealthyPodEvictionPolicy":"IfHealthyBudget"})";
  CHECK(spends(budget(if_healthy, healthy), labelled("a")));
  CHECK(spends(budget(always, ill), labelled("a")));
  CHECK_FALSE(spends(budget(if_healthy, healthy), labelled("a", false)));
  CHECK(spends(budget(if_healthy, ill), labelled("a", false)));
  CHECK(spends(budget(if_healthy, nothing_desired), labelled("a", false)));
  CHECK_FALSE(spends(budget(always, ill), labelled("a", false)));
}

TEST_CASE("No budget is asked about a pod that is Pending, has ended, or is being deleted") {
  auto pod = labelled("a");
  CHECK(asks_budgets(pod));
  for (const auto phase : {PodPhase::Pending, PodPhase::Succeeded, PodPhase::Failed}) {
    pod.phase = phase;
    CHECK_FALSE(asks_budgets(pod));
  }
  pod.phase = PodPhase::Running;
  pod.meta.deletion = dhc::WallTime(dhc::Seconds(1));
  CHECK_FALSE(asks_budgets(pod));
}

TEST_CASE("A budget with a number that is none, or without a namespace, is not read") {
  const std::string head = R"({"kind":"PodDisruptionBudget","metadata":{"name":"b","uid":"u","resourceVersion":"1")";
  Decoder decoder(Kind::PodDisruptionBudget);
  const auto bad = decoder.decode_object(head + R"(,"namespace":"ml"},"status":{"disruptionsAllowed":"3"}})");
  REQUIRE_FALSE(bad.has_value());
  CHECK(bad.error().why.find("status.disruptionsAllowed") != std::string::npos);
  CHECK_FALSE(decoder.decode_object(head + "}}").has_value());
}
