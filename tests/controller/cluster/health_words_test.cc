// Words for a device's health that are none of the three that Kubernetes has today (KEP-4680 announces one more).
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "k8s-client/model/decoder.h"
#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::minutes;
using Names = std::vector<std::string>;

namespace {

constexpr std::string_view kForEver = "PermanentlyUnhealthy";

void report_word(Stage& stage, const std::string& pod, std::string_view word, const std::string& message = {}) {
  stage.report(pod, Health::Unknown, message);
  stage.pod_named(pod).allocated.front().devices.front().other_word = word;
  stage.upsert_pod(pod);
}

Stage plugin_pod(std::vector<Health> health, std::vector<std::string> words) {
  Stage stage;
  stage.policy().match.health = std::move(health);
  stage.policy().match.health_words = std::move(words);
  stage.policy().evict->after = Seconds(0);
  stage.send_policy();
  stage.node("node-a", 2, 1);
  stage.node("node-b", 2);
  stage.pod({.name = "train-1", .device = "gpu-0"});
  stage.settle();
  return stage;
}

k8s::ReportedDevice decoded(std::string_view word) {
  const auto body = fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p","namespace":"a","uid":"u","resourceVersion":"7"}},)"
      R"("spec":{{"containers":[{{"name":"c","resources":{{"limits":{{"example.com/gpu":"1"}}}}}}]}},)"
      R"("status":{{"phase":"Running","containerStatuses":[{{"name":"c","allocatedResourcesStatus":[{{"name":)"
      R"("example.com/gpu","resources":[{{"resourceID":"gpu-0","health":"{}"}}]}}]}}]}}}})",
      word);
  const auto object = k8s::Decoder(k8s::Kind::Pod).decode_object(body);
  REQUIRE(object);
  return std::get<k8s::Pod>(*object).allocated.front().devices.front();
}

}  // namespace

TEST_CASE("A word that is none of the three is kept beside Unknown, cut and printable") {
  CHECK(decoded("Healthy") == k8s::ReportedDevice{"gpu-0", Health::Healthy, "", "", {"c"}});
  CHECK(decoded("Unknown").other_word.empty());
  CHECK(decoded("").other_word.empty());
  const auto word = decoded(kForEver);
  CHECK(word.health == Health::Unknown);
  CHECK(word.other_word == kForEver);
  CHECK(decoded(std::string(900, 'x')).other_word.size() == k8s::kLongestHealthWord);
}

TEST_CASE("A word that no policy names is treated as Unknown, and said") {
  auto stage = plugin_pod({Health::Unhealthy}, {});
  report_word(stage, "train-1", kForEver);
  CHECK(stage.run_for(minutes(5), Seconds(5)).empty());
  const auto* verdict = stage.verdict("example.com/gpu", Reason::HealthWordUnknown);
  REQUIRE(verdict != nullptr);
  CHECK(verdict->subject.kind == "Resource");
  CHECK(verdict->message.contains("PermanentlyUnhealthy (1 device), which is neither Healthy"));
  CHECK(stage.controller().stats().other_words == 1);
  SUBCASE("until the kubelet says one of the three") { stage.report("train-1", Health::Healthy); }
  SUBCASE("until a policy names it") {
    stage.policy().match.health_words = {std::string(kForEver)};
    stage.policy().after = minutes(30);
    stage.send_policy();
  }
  SUBCASE("until the pod has gone") { stage.remove_pod("train-1"); }
  stage.turn();
  CHECK(stage.verdict("example.com/gpu", Reason::HealthWordUnknown) == nullptr);
}

TEST_CASE("A policy that acts on Unknown acts on a word that nobody knows") {
  auto stage = plugin_pod({Health::Unhealthy, Health::Unknown}, {});
  report_word(stage, "train-1", "Degraded");
  CHECK(stage.run_for(Seconds(59)).empty());
  CHECK(stage.run_for(Seconds(1)) == Names{"train-1"});
}

TEST_CASE("A word that a policy names opens the incident after its window, with the word as the reason") {
  auto stage = plugin_pod({Health::Unhealthy}, {std::string(kForEver)});
  SUBCASE("from Healthy") {
    report_word(stage, "train-1", kForEver, "XID 79");
    CHECK(stage.run_for(Seconds(59)).empty());
  }
  SUBCASE("what was Unhealthy before goes on") {
    stage.report("train-1", Health::Unhealthy, "XID 79");
    stage.run_for(Seconds(40));
    report_word(stage, "train-1", kForEver, "XID 79");
    CHECK(stage.run_for(Seconds(19)).empty());
  }
  SUBCASE("Unknown in between does not end it") {
    report_word(stage, "train-1", kForEver, "XID 79");
    stage.run_for(Seconds(30));
    stage.report("train-1", Health::Unknown);
    stage.run_for(Seconds(10));
    CHECK(stage.reasons("train-1") == "WaitingWhileUnknown");
    report_word(stage, "train-1", kForEver, "XID 79");
    CHECK(stage.run_for(Seconds(19)).empty());
  }
  CHECK(stage.run_for(Seconds(1)) == Names{"train-1"});
  REQUIRE(!stage.conditions().empty());
  CHECK(stage.conditions().back().wanted->message.contains("): PermanentlyUnhealthy: XID 79; next: "));
}

TEST_CASE("A policy that names a word alone does not act on Unhealthy or on another word") {
  auto stage = plugin_pod({}, {std::string(kForEver)});
  stage.report("train-1", Health::Unhealthy);
  CHECK(stage.run_for(minutes(2)).empty());
  report_word(stage, "train-1", "Degraded");
  CHECK(stage.run_for(minutes(2)).empty());
  CHECK(stage.conditions().empty());
}

TEST_CASE("The words of a hostile kubelet fill neither verdicts nor metrics") {
  Stage stage;
  stage.send_policy();
  stage.node("node-a", 400);
  for (int i = 0; i < 300; ++i) {
    const auto name = "pod-" + std::to_string(i);
    stage.pod({.name = name, .device = "gpu-" + std::to_string(i)});
    report_word(stage, name, "Word" + std::to_string(1000 + i));
  }
  stage.turn();
  const auto* verdict = stage.verdict("example.com/gpu", Reason::HealthWordUnknown);
  REQUIRE(verdict != nullptr);
  CHECK(verdict->message.contains("Word1000 (1 device), "));
  CHECK(verdict->message.contains(" and 295 more words, "));
  CHECK(verdict->message.size() < 600);
  CHECK(std::ranges::count(stage.verdicts(), Reason::HealthWordUnknown, &Verdict::reason) == 1);
}

TEST_CASE("After a restart of ours the word counts from what our condition remembers") {
  auto stage = plugin_pod({}, {std::string(kForEver)});
  stage.policy().evict->after = minutes(10);
  stage.send_policy();
  report_word(stage, "train-1", kForEver);
  stage.run_for(minutes(5));
  REQUIRE(!stage.conditions().empty());
  stage.restart();
  CHECK(stage.run_for(minutes(5) + Seconds(59)).empty());
  CHECK(stage.run_for(Seconds(1)) == Names{"train-1"});
}

}  // namespace dhc::test
