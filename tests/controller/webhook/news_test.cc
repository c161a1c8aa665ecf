#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/webhook/bulletin.h"
#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

WebhookRules some_receiver() {
  return {.url = {.host = "hooks.example.com", .target = "/"}, .secret_file = "/etc/secret"};
}

Stage telling_stage() {
  auto stage = gpu_stage();
  stage.limits().webhook = some_receiver();
  stage.send_policy();
  return stage;
}

/// What is told, without the domain of its types: `type subject`, joined.
std::string outline_of(const std::vector<News>& news) {
  std::string joined;
  for (const auto& one : news) {
    CHECK(one.type.starts_with("io.device-health."));
    CHECK(nlohmann::json::parse(one.data).is_object());
    joined += fmt::format("{}{} {}", joined.empty() ? "" : ", ", one.type.substr(17), one.subject);
  }
  return joined;
}

std::string told_by(Stage& stage) { return outline_of(stage.controller().take_news()); }

std::vector<std::string> ids_of(const std::vector<News>& news) {
  std::vector<std::string> ids;
  for (const auto& one : news) ids.push_back(one.id);
  std::ranges::sort(ids);
  return ids;
}

const std::string kBadGpu = "gpu.example.com/node-a/gpu-0";

}  // namespace

TEST_CASE("An incident, its eviction and its end are told once each, and name the incident") {
  auto stage = telling_stage();
  stage.run_for(Seconds(59));
  CHECK(told_by(stage).empty());
  stage.run_for(Seconds(2));
  const auto opened = stage.controller().take_news();
  REQUIRE(outline_of(opened) == "incident.opened " + kBadGpu + ", pod.evicted Pod/default/train-1");
  const auto data = nlohmann::json::parse(opened[0].data);
  CHECK(nlohmann::json::parse(opened[1].data)["device"] == kBadGpu);
  CHECK(data["device"] == kBadGpu);
  CHECK(data["node"] == "node-a");
  CHECK(data["policy"] == "p");
  CHECK(data["mode"] == "enforce");
  CHECK(data["reason"] == "Xid 79");
  CHECK(opened[0].at == stage.now().wall - Seconds(1));
  stage.run_for(minutes(20), Seconds(10));
  CHECK(told_by(stage).empty());
  drop_pod(stage, "train-1", "train-gpu");
  stage.run_for(hours(30), minutes(5));
  const auto closed = stage.controller().take_news();
  REQUIRE(outline_of(closed) == "incident.closed " + kBadGpu);
  const auto end = nlohmann::json::parse(closed[0].data);
  CHECK(end["incident"] == data["incident"]);
  CHECK(end["node"] == "node-a");
  CHECK_FALSE(end["why"].get<std::string>().empty());
}

TEST_CASE("Nobody is told without a webhook, and who is told from now on hears what was within the hour") {
  auto stage = gpu_stage();
  stage.run_for(minutes(30), minutes(1));
  CHECK(told_by(stage).empty());
  CHECK(stage.controller().webhook() == nullptr);
  stage.limits().webhook = some_receiver();
  stage.send_policy();
  stage.settle();
  CHECK(stage.controller().webhook()->url.host == "hooks.example.com");
  CHECK(told_by(stage).starts_with("incident.opened " + kBadGpu));
  stage.limits().webhook.reset();
  stage.send_policy();
  stage.settle();
  stage.run_for(hours(2), minutes(1));
  stage.limits().webhook = some_receiver();
  stage.send_policy();
  stage.settle();
  CHECK(told_by(stage).find("incident.opened") == std::string::npos);
}

TEST_CASE("An observing policy's incidents are told as such") {
  auto stage = telling_stage();
  stage.policy().mode = Mode::Observe;
  stage.send_policy();
  stage.run_for(minutes(2), Seconds(10));
  const auto news = stage.controller().take_news();
  REQUIRE(outline_of(news) == "incident.opened " + kBadGpu);
  CHECK(nlohmann::json::parse(news[0].data)["mode"] == "observe");
}

TEST_CASE("A new process tells what was within the hour again, with the same ids, and nothing older") {
  auto stage = telling_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().recover.quarantine_above = 0.5;
  stage.send_policy();
  stage.run_for(minutes(10), Seconds(5));
  const auto before = stage.controller().take_news();
  CHECK(outline_of(before) ==
        "incident.opened " + kBadGpu + ", device.quarantined " + kBadGpu + ", pod.evicted Pod/default/train-1");
  stage.restart();
  stage.run_for(minutes(1));
  const auto after = stage.controller().take_news();
  CHECK(ids_of(after) == ids_of(before));
  stage.run_for(hours(1), minutes(1));
  CHECK(told_by(stage).empty());
  drop_pod(stage, "train-1", "train-gpu");
  stage.restart();
  stage.run_for(minutes(1));
  CHECK(told_by(stage).empty());
}

TEST_CASE("A new process tells an incident that is over from its beginning, and the one before the last as well") {
  auto stage = telling_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().evict.reset();
  stage.policy().recover.quarantine_above = 0.5;
  stage.send_policy();
  stage.run_for(minutes(2), Seconds(5));
  auto node = stage.node_named("node-a");
  node.meta.annotations = {{std::string(kAcknowledgeAnnotation), format_rfc3339(stage.now().wall)}};
  stage.put(node);
  stage.report("train-1", Health::Healthy);
  stage.run_for(minutes(15), Seconds(5));
  auto before = stage.controller().take_news();
  const std::string first =
      "incident.opened " + kBadGpu + ", device.quarantined " + kBadGpu + ", incident.closed " + kBadGpu;
  REQUIRE(outline_of(before) == first);
  stage.restart();
  stage.run_for(minutes(1));
  auto after = stage.controller().take_news();
  CHECK(outline_of(after) == first);
  CHECK(ids_of(after) == ids_of(before));
  CHECK(after[2].data == before[2].data);
  stage.report("train-1", Health::Unhealthy);
  stage.run_for(minutes(3), Seconds(5));
  REQUIRE(told_by(stage) == "incident.opened " + kBadGpu + ", device.quarantined " + kBadGpu);
  stage.restart();
  stage.run_for(minutes(1));
  after = stage.controller().take_news();
  CHECK(outline_of(after) == first + ", incident.opened " + kBadGpu + ", device.quarantined " + kBadGpu);
  CHECK(after[0].data == before[0].data);
  stage.run_for(hours(1), minutes(1));
  CHECK(told_by(stage).empty());
  stage.restart();
  stage.run_for(minutes(1));
  CHECK(told_by(stage).empty());
}

TEST_CASE("A new process tells of evictions whose pods are gone, and keeps nothing where nobody is told") {
  auto stage = telling_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.send_policy();
  stage.run_for(minutes(2), Seconds(1));
  const auto before = stage.controller().take_news();
  REQUIRE(outline_of(before) == "incident.opened " + kBadGpu + ", pod.evicted Pod/default/train-1");
  drop_pod(stage, "train-1", "train-gpu");
  stage.run_for(Seconds(10));
  stage.restart();
  stage.run_for(minutes(1));
  const auto after = stage.controller().take_news();
  CHECK(ids_of(after) == ids_of(before));
  REQUIRE(after.size() == 2);
  CHECK(after[1].data == before[1].data);
  stage.limits().webhook.reset();
  stage.send_policy();
  stage.run_for(hours(25), minutes(5));  // its end is written down
  CHECK(stage.state_text().find("pod.evicted") == std::string::npos);
}

TEST_CASE("An incident is told once it is written down, or could not be for half a minute") {
  auto stage = telling_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().evict.reset();
  stage.send_policy();
  stage.run_for(Seconds(59));
  stage.advance(Seconds(1));
  (void)stage.turn();
  CHECK(told_by(stage).empty());
  const auto opened_at = stage.now();
  stage.advance(Bulletin::kUnsavedPatience - Millis(1));
  (void)stage.turn();
  CHECK(told_by(stage).empty());
  CHECK(stage.wake_at() <= opened_at.mono + Bulletin::kUnsavedPatience);
  stage.advance(Millis(1));
  (void)stage.turn();
  CHECK(told_by(stage) == "incident.opened " + kBadGpu);
}

TEST_CASE("A pod that is gone before the next plan was evicted all the same") {
  auto stage = telling_stage();
  stage.show_evictions(false);
  stage.run_for(Seconds(58));
  std::vector<Action> evictions;
  for (int i = 0; i < 120 && evictions.empty(); ++i) {
    stage.advance(Seconds(1));
    for (auto& action : stage.turn()) {
      if (std::holds_alternative<eviction::EvictPod>(action)) {
        evictions.push_back(std::move(action));
      } else {
        stage.show(action);
        stage.answer(action);
      }
    }
  }
  REQUIRE(evictions.size() == 1);
  CHECK(told_by(stage) == "incident.opened " + kBadGpu);
  stage.answer(evictions.front());
  drop_pod(stage, "train-1", "train-gpu");
  (void)stage.turn();
  CHECK(told_by(stage) == "pod.evicted Pod/default/train-1");
  stage.run_for(minutes(5), Seconds(10));
  CHECK(told_by(stage).empty());
}

TEST_CASE("An eviction that is refused is not told") {
  auto stage = telling_stage();
  stage.answer_evictions([](const eviction::EvictPod&) { return fail(ErrorKind::Blocked, "a budget"); });
  stage.run_for(minutes(30), Seconds(30));
  CHECK(told_by(stage) == "incident.opened " + kBadGpu);
}

TEST_CASE("A node that is handed over and taken back is told, with its condition, also when it is removed") {
  auto stage = telling_stage();
  stage.policy().evict.reset();
  stage.policy().recover.quarantine_above = 0.5;
  stage.policy().hand_over = HandOverRules{.condition = HandOverCondition{.type = "example.com/Bad"}};
  stage.whole_policy().own_namespace = "dhc";
  stage.send_policy();
  stage.run_for(minutes(5), Seconds(10));
  const auto news = stage.controller().take_news();
  REQUIRE(outline_of(news) ==
          "incident.opened " + kBadGpu + ", device.quarantined " + kBadGpu + ", node.handed-over Node/node-a");
  const auto data = nlohmann::json::parse(news[2].data);
  CHECK(data["condition"]["type"] == "example.com/Bad");
  CHECK(data["condition"]["status"] == "True");
  CHECK(data["message"] == kBadGpu + ": quarantined (policy p)");
  auto node = stage.node_named("node-a");
  node.meta.annotations = {{std::string(kAcknowledgeAnnotation), format_rfc3339(stage.now().wall)}};
  SUBCASE("by an operator's word") {
    stage.put(node);
    stage.run_for(Seconds(30));
    CHECK(told_by(stage) == "node.taken-back Node/node-a");
  }
  SUBCASE("with its policy") {
    stage.policy().hand_over.reset();
    stage.send_policy();
    stage.run_for(Seconds(30));
    CHECK(told_by(stage) == "node.taken-back Node/node-a");
  }
  SUBCASE("with the node") {
    stage.remove(k8s::Kind::Node, "node-a");
    stage.run_for(Seconds(30));
    CHECK(told_by(stage) == "node.taken-back Node/node-a");
  }
  stage.run_for(minutes(30), minutes(1));
  CHECK(told_by(stage).find("node.taken-back") == std::string::npos);
  stage.restart();
  stage.run_for(Seconds(30));
  CHECK(told_by(stage).find("node.taken-back Node/node-a") != std::string::npos);
}

TEST_CASE(
    "A node that is handed over by an object is told when it is made and when it is taken back, with its incident") {
  auto stage = telling_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().evict.reset();
  stage.policy().recover.quarantine_above = 0.5;
  stage.policy().hand_over = HandOverRules{
      .resource = HandOverResource{.api_version = "a.example.com/v1",
                                   .kind = "Repair",
                                   .ns = "repair",
                                   .name = "{node}",
                                   .text = R"({"apiVersion":"a.example.com/v1","kind":"Repair","metadata":{}})"}};
  stage.send_policy();
  stage.run_for(minutes(5), Seconds(10));
  const auto news = stage.controller().take_news();
  REQUIRE(outline_of(news) ==
          "incident.opened " + kBadGpu + ", device.quarantined " + kBadGpu + ", node.handed-over Node/node-a");
  const auto data = nlohmann::json::parse(news[2].data);
  CHECK(data["object"] ==
        nlohmann::json{
            {"apiVersion", "a.example.com/v1"}, {"kind", "Repair"}, {"namespace", "repair"}, {"name", "node-a"}});
  CHECK(data["incident"] == nlohmann::json::parse(news[0].data)["incident"]);
  CHECK(data["policy"] == "p");
  stage.restart();
  stage.run_for(minutes(1), Seconds(10));
  const auto again = stage.controller().take_news();
  CHECK(ids_of(again) == ids_of(news));
  auto node = stage.node_named("node-a");
  node.meta.annotations = {{std::string(kAcknowledgeAnnotation), format_rfc3339(stage.now().wall)}};
  stage.put(node);
  stage.run_for(Seconds(30));
  CHECK(told_by(stage) == "node.taken-back Node/node-a");
  stage.run_for(minutes(30), minutes(1));
  CHECK(told_by(stage).find("node.taken-back") == std::string::npos);
  stage.restart();
  stage.run_for(Seconds(30));
  CHECK(told_by(stage).find("node.handed-over Node/node-a, node.taken-back Node/node-a") != std::string::npos);
}

TEST_CASE("Who does not lead tells nobody, and who leads again tells it with the same ids") {
  auto stage = telling_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().evict.reset();
  stage.send_policy();
  stage.run_for(minutes(2), Seconds(5));
  const auto before = stage.controller().take_news();
  stage.deliver(Leading{.leads = false});
  stage.settle();
  CHECK(stage.controller().webhook() == nullptr);
  CHECK(told_by(stage).empty());
  stage.deliver(Leading{.leads = true});
  stage.run_for(minutes(1));
  CHECK(stage.controller().webhook() != nullptr);
  CHECK(ids_of(stage.controller().take_news()) == ids_of(before));
}

TEST_CASE("What is wrong with the webhook is a verdict until it is over") {
  auto stage = telling_stage();
  stage.settle();
  CHECK(stage.verdict("configuration", Reason::WebhookFails) == nullptr);
  stage.deliver(WebhookSeen{"spec.webhook.secretFile: no such file"});
  stage.settle();
  const auto since = stage.now().wall;
  stage.advance(Seconds(5));
  stage.deliver(WebhookSeen{"it answered 503"});
  stage.settle();
  const auto* verdict = stage.verdict("configuration", Reason::WebhookFails);
  REQUIRE(verdict != nullptr);
  CHECK(verdict->message == "it answered 503");
  CHECK(verdict->since == since);
  stage.deliver(WebhookSeen{});
  stage.settle();
  CHECK(stage.verdict("configuration", Reason::WebhookFails) == nullptr);
}

}  // namespace dhc::test
