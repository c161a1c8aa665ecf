#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include <doctest/doctest.h>

#include "domain/contract/names.h"
#include "domain/contract/our_taint.h"
#include "reconcilers/taint/answer.h"
#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

using Alter = std::function<void(k8s::DeviceTaintRule&)>;

void manage_by(k8s::DeviceTaintRule& rule, const std::string& who) {
  rule.meta.labels = {{std::string(kManagedByLabel), who}};
}
void strip_annotations(k8s::DeviceTaintRule& rule) { rule.meta.annotations = {}; }

/// Admission as the API server runs it: every rule that is written is changed before it is stored, and the answer shows
/// what is stored.
class Webhook {
 public:
  Webhook(Stage& stage, Alter alter) : stage_(stage), alter_(std::move(alter)) {}

  /// Nothing is changed any more.
  void remove() {
    alter_ = [](k8s::DeviceTaintRule&) {};
  }

  void run_for(Millis time, Millis step = Seconds(1)) {
    for (Millis past{0}; past < time; past += step) {
      // What is taken back is taken back in the same second.
      for (int round = 0; round < 4; ++round) carry_out();
      stage_.advance(step);
      most_ = std::max(most_, standing());
    }
  }

  [[nodiscard]] std::ptrdiff_t standing() const { return stage_.count(k8s::Kind::DeviceTaintRule); }
  /// The most rules that stood at the end of a second.
  [[nodiscard]] std::ptrdiff_t most() const { return most_; }

 private:
  void carry_out() {
    for (const auto& action : stage_.turn()) {
      stage_.show(action);
      const auto* apply = std::get_if<taint::ApplyRule>(&action);
      if (apply == nullptr) {
        stage_.answer(action);
        continue;
      }
      auto stored = *stage_.rule_called(apply->name);
      alter_(stored);
      stage_.put(stored);
      auto judged = taint::judge_stored(*apply, stored);
      stage_.deliver(Outcome{.action = action, .status = std::move(judged.status), .stored_uid = judged.uid});
    }
  }

  Stage& stage_;
  Alter alter_;
  std::ptrdiff_t most_ = 0;
};

/// So many held devices of one node, and a policy that taints; caps count.
Stage held_devices(int count) {
  Stage stage;
  stage.hold_caps();
  stage.limits().brake_at_least = 0;
  stage.policy().taint = TaintRules{};
  stage.policy().evict.reset();
  stage.policy().recover.healthy_for = minutes(5);
  stage.send_policy();
  std::vector<std::string> devices;
  for (int i = 0; i < count; ++i) devices.push_back("gpu-" + std::to_string(i));
  stage.node("node-a", 0);
  stage.slice("node-a", devices);
  for (int i = 0; i < count; ++i) {
    const auto n = std::to_string(i);
    stage.claim("c" + n, {"gpu-" + n}, "p" + n);
    stage.pod({.name = "p" + n, .owner = "ReplicaSet/w" + n, .claim = "c" + n});
  }
  stage.run_for(minutes(12), Seconds(30));
  return stage;
}

std::ptrdiff_t deeds_of(const Stage& stage, std::string_view word) {
  return std::ranges::count_if(stage.writes(), [&](const std::string& write) { return write.starts_with(word); });
}

bool says(const Stage& stage, Reason reason, std::string_view words) {
  return std::ranges::any_of(stage.verdicts(), [&](const Verdict& verdict) {
    return verdict.reason == reason && verdict.message.contains(words);
  });
}

std::string name_of(const std::string& device) {
  return rule_name(DeviceKey::dra(std::string(kDriver), "node-a", device));
}

/// One device may be out of service; its standing rule somebody has edited, as `alter` says.
Stage edited_rule(const Alter& alter) {
  auto stage = held_devices(2);
  stage.limits().cap_node = {.percent = 0, .at_least = 1};
  stage.send_policy();
  stage.report("p0", Health::Unhealthy, "Xid 79");
  stage.run_for(minutes(3), Seconds(5));
  auto* rule = stage.rule_called(name_of("gpu-0"));
  REQUIRE(rule != nullptr);
  auto edited = *rule;
  alter(edited);
  stage.put(edited);
  stage.run_for(minutes(1), Seconds(5));
  return stage;
}

/// Whether another device may be taken out of service beside it.
bool has_room(Stage& stage) {
  stage.report("p1", Health::Unhealthy, "Xid 79");
  stage.run_for(minutes(3), Seconds(5));
  return stage.rule_called(name_of("gpu-1")) != nullptr;
}

/// Another incident is open under the same rule, which is to remember it: the next turn writes on what stands.
Stage remembering_anew() {
  auto stage = gpu_stage();
  stage.policy().evict.reset();
  stage.policy().after = Seconds(1);
  stage.policy().recover.healthy_for = minutes(30);
  stage.send_policy();
  stage.run_for(minutes(11), Seconds(10));
  stage.report("train-1", Health::Healthy);
  stage.run_for(minutes(1));
  REQUIRE(stage.rule() != nullptr);
  auto rule = *stage.rule();
  rule.meta.annotations.erase_if([](const auto& entry) { return entry.first == kIncidentsAnnotation; });
  stage.put(rule);
  stage.report("train-1", Health::Unhealthy, "Xid 79");
  return stage;
}

}  // namespace

TEST_CASE("A rule that an admission webhook changes is taken back at once, and one is tried an hour") {
  const std::vector<std::pair<const char*, Alter>> webhooks = {
      {"a label", [](auto& rule) { manage_by(rule, "platform"); }},
      {"annotations", strip_annotations},
      {"another device", [](auto& rule) { rule.device = "gpu-7"; }},
      {"the whole pool", [](auto& rule) { rule.device.reset(); }},
      {"an effect", [](auto& rule) { rule.taint.effect = "NoExecute"; }},
      {"a value", [](auto& rule) { rule.taint.value = "Sick"; }},
  };
  for (const auto& [name, alter] : webhooks) {
    CAPTURE(name);
    auto stage = held_devices(8);
    for (int i = 0; i < 6; ++i) stage.report("p" + std::to_string(i), Health::Unhealthy, "Xid 79");
    Webhook webhook(stage, alter);
    webhook.run_for(minutes(30), Seconds(5));
    CHECK(webhook.most() == 0);
    // As many as caps.node lets go before the first is answered.
    CHECK(deeds_of(stage, "apply") == 2);
    CHECK(deeds_of(stage, "delete") == 2);
    CHECK(says(stage, Reason::ChangedByOther, "an admission webhook or policy changes DeviceTaintRules that we make"));
    CHECK(stage.verdict("node-a", Reason::Acknowledged) == nullptr);
    webhook.run_for(hours(2), Seconds(30));
    CHECK(deeds_of(stage, "apply") == 4);
    CHECK(deeds_of(stage, "delete") == 4);
    CHECK(webhook.most() == 0);
    webhook.remove();
    webhook.run_for(hours(1), Seconds(30));
    CHECK(webhook.standing() == 2);  // as caps.node allows
    CHECK_FALSE(says(stage, Reason::ChangedByOther, "webhook"));
    CHECK(stage.verdict("node-a", Reason::CapReached) != nullptr);
  }
}

TEST_CASE("A rule that came out otherwise and cannot be taken back counts against the caps, and is nobody's word") {
  auto stage = held_devices(20);
  std::set<std::string> applied;
  for (int second = 0; second < 1200; ++second) {
    if (second % 60 == 0) stage.report("p" + std::to_string(second / 60), Health::Unhealthy, "Xid 79");
    for (const auto& action : stage.turn()) {
      const auto* apply = std::get_if<taint::ApplyRule>(&action);
      if (std::holds_alternative<taint::DeleteRule>(action)) {
        stage.answer(action, fail(ErrorKind::Forbidden, "no"));
        continue;
      }
      stage.show(action);
      stage.answer(action);  // as by a leader that ended before it could judge the answer
      if (apply == nullptr) continue;
      applied.insert(apply->name);
      auto stored = *stage.rule_called(apply->name);
      manage_by(stored, "platform");
      stage.put(stored);
    }
    stage.advance(Seconds(1));
  }
  CHECK(applied.size() == 2);
  CHECK(stage.verdict("node-a", Reason::CapReached) != nullptr);
  CHECK(stage.verdict("node-a", Reason::Acknowledged) == nullptr);
  for (int i = 0; i < 20; ++i) stage.report("p" + std::to_string(i), Health::Healthy);
  stage.run_for(hours(2), Seconds(30));
  CHECK(std::ranges::count_if(stage.verdicts(), [](const Verdict& verdict) {
          return verdict.reason == Reason::ChangedByOther && verdict.message.contains("is not as we make it");
        }) == 2);
}

TEST_CASE("A rule of ours that somebody has edited counts against the caps and is said as long as it stands") {
  const std::vector<std::pair<Alter, const char*>> edits = {
      {[](auto& rule) { manage_by(rule, "argocd"); }, "its label app.kubernetes.io/managed-by is 'argocd'"},
      {[](auto& rule) { rule.meta.labels = {}; }, "its label app.kubernetes.io/managed-by is gone"},
      {strip_annotations, "its annotation device-health.io/effect is gone"},
  };
  for (const auto& [alter, words] : edits) {
    CAPTURE(words);
    auto stage = edited_rule(alter);
    CHECK(says(stage, Reason::ChangedByOther, words));
    CHECK(stage.verdict("node-a", Reason::Acknowledged) != nullptr);
    CHECK_FALSE(has_room(stage));
    stage.report("p0", Health::Healthy);
    stage.run_for(hours(48), minutes(5));
    CHECK(stage.rule_called(name_of("gpu-0")) != nullptr);
    CHECK(deeds_of(stage, "delete") == 0);
    CHECK(says(stage, Reason::ChangedByOther, words));
    CHECK_FALSE(has_room(stage));
    // Also for a process that knows nothing of it.
    stage.remove(k8s::Kind::ConfigMap, "device-health-incidents");
    stage.restart();
    stage.run_for(minutes(5), Seconds(10));
    CHECK(says(stage, Reason::ChangedByOther, words));
    CHECK_FALSE(has_room(stage));
    stage.remove(k8s::Kind::DeviceTaintRule, name_of("gpu-0"));
    CHECK(has_room(stage));
    CHECK_FALSE(says(stage, Reason::ChangedByOther, words));
  }
}

TEST_CASE("A rule whose effect an operator takes away counts no more") {
  auto stage = edited_rule([](auto& rule) { rule.taint.effect = "None"; });
  CHECK(says(stage, Reason::ChangedByOther, "its effect is None"));
  CHECK(has_room(stage));
}

TEST_CASE("A webhook that changes what we write on a standing rule has not acknowledged its incident") {
  auto stage = remembering_anew();
  Webhook webhook(stage, strip_annotations);
  webhook.run_for(minutes(5));
  CHECK(deeds(stage).ends_with("apply NoSchedule gpu-0, delete gpu-0"));
  CHECK(stage.verdict("node-a", Reason::Acknowledged) == nullptr);
  webhook.remove();
  webhook.run_for(hours(1) + minutes(1), Seconds(5));
  REQUIRE(stage.rule() != nullptr);
  CHECK(stage.verdict("node-a", Reason::Tainted) != nullptr);
}

TEST_CASE("A lost answer to what a webhook changes on a standing rule is no operator's word either") {
  for (const auto lost : {ErrorKind::TimedOut, ErrorKind::Unavailable}) {
    CAPTURE(to_string(lost));
    auto stage = remembering_anew();
    bool answered = false;
    for (int second = 0; second < 600; ++second) {
      for (const auto& action : stage.turn()) {
        const auto* apply = std::get_if<taint::ApplyRule>(&action);
        if (apply == nullptr || answered) {
          stage.show(action);
          stage.answer(action);
          continue;
        }
        answered = true;
        stage.answer(action, fail(lost, "the connection ended"));
        stage.show(action);
        auto stored = *stage.rule();
        strip_annotations(stored);
        stage.put(stored);
      }
      stage.advance(Seconds(1));
    }
    REQUIRE(answered);
    CHECK(stage.verdict("node-a", Reason::Acknowledged) == nullptr);
    CHECK(says(stage, Reason::ChangedByOther, "its annotation device-health.io/effect is gone"));
    CHECK(deeds_of(stage, "delete") == 0);
  }
}

TEST_CASE("What is changed long after a lost answer is an operator's word") {
  auto stage = remembering_anew();
  bool answered = false;
  for (int second = 0; second < 600; ++second) {
    for (const auto& action : stage.turn()) {
      const bool is_first = std::holds_alternative<taint::ApplyRule>(action) && !std::exchange(answered, true);
      if (!is_first) stage.show(action);
      stage.answer(action, is_first ? Status(fail(ErrorKind::TimedOut, "no answer")) : Status());
    }
    stage.advance(Seconds(1));
  }
  REQUIRE(answered);
  auto edited = *stage.rule();
  strip_annotations(edited);
  stage.put(edited);
  stage.run_for(minutes(1), Seconds(5));
  CHECK(stage.verdict("node-a", Reason::Acknowledged) != nullptr);
}

TEST_CASE("A change is our lost write's up to two minutes after it, and from then on somebody's word") {
  for (const auto late : {Millis(0), Millis(1)}) {
    CAPTURE(late.count());
    auto stage = remembering_anew();
    std::optional<MonoTime> lost_at;
    for (int second = 0; second < 600 && !lost_at; ++second) {
      for (const auto& action : stage.turn()) {
        stage.show(action);
        if (!std::holds_alternative<taint::ApplyRule>(action)) {
          stage.answer(action);
          continue;
        }
        stage.answer(action, fail(ErrorKind::TimedOut, "no answer"));
        stage.turn();
        lost_at = stage.now().mono;
      }
      if (!lost_at) stage.advance(Seconds(1));
    }
    REQUIRE(lost_at);
    stage.run_for(Seconds(119));
    stage.advance(Seconds(1) - Millis(1) + late);
    REQUIRE(stage.now().mono - *lost_at == minutes(2) - Millis(1) + late);
    auto edited = *stage.rule();
    strip_annotations(edited);
    stage.put(edited);
    stage.run_for(minutes(1), Seconds(5));
    CHECK((stage.verdict("node-a", Reason::Acknowledged) != nullptr) == (late == Millis(1)));
  }
}

TEST_CASE("A trial that comes to nothing costs the other devices a minute, not an hour") {
  for (const auto kind : {ErrorKind::Cancelled, ErrorKind::TimedOut, ErrorKind::Unavailable}) {
    CAPTURE(to_string(kind));
    auto stage = held_devices(8);
    stage.report("p0", Health::Unhealthy, "Xid 79");
    Webhook webhook(stage, strip_annotations);
    webhook.run_for(minutes(2));
    REQUIRE(deeds_of(stage, "apply") == 1);
    bool tried = false;
    for (int second = 0; second < 3600 && !tried; ++second) {
      for (const auto& action : stage.turn()) {
        const bool is_trial = std::holds_alternative<taint::ApplyRule>(action) && !tried;
        if (!is_trial) stage.show(action);
        stage.answer(action, is_trial ? Status(fail(kind, "it did not come through")) : Status());
        tried = tried || is_trial;
      }
      stage.advance(Seconds(1));
    }
    REQUIRE(tried);
    // The webhook is gone.
    stage.run_for(minutes(3), Seconds(5));
    CHECK(stage.rule_called(name_of("gpu-0")) != nullptr);
    CHECK_FALSE(says(stage, Reason::ChangedByOther, "webhook"));
  }
}

}  // namespace dhc::test
