#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "domain/contract/notice_text.h"
#include "reconcilers/eviction/signal.h"
#include "tests/controller/job_retry/job_stage.h"
#include "tests/support/core/stage.h"

using namespace dhc;
using k8s::Health;
using std::chrono::minutes;

namespace {

/// Two pods of ReplicaSet web; the device of web-1 is bad from 12:00 on, its incident opens at 12:01, and policy p
/// gives a notice of 5 min that can be extended by 10 min.
struct ToldStage : test::Stage {
  ToldStage() {
    node("node-a", 4, 3);
    pod({.name = "web-1", .device = "gpu-0", .health = Health::Unhealthy});
    pod({.name = "web-2", .device = "gpu-1"});
    policy().evict->notice = NoticeRules{.deadline = minutes(5), .extend_up_to = minutes(10)};
    limits().evictions_per_minute = 600;
    send_policy();
  }

  void annotate(std::string_view key, const std::string& value) {
    auto& annotations = pod_named("web-1").meta.annotations;
    annotations.erase_if([&](const auto& entry) { return entry.first == key; });
    if (!value.empty()) annotations.emplace_back(key, value);
    annotations.sort();
    upsert_pod("web-1");
  }
  void answer(const std::string& value) { annotate(kNoticeResponseAnnotation, value); }

  [[nodiscard]] std::optional<Notice> notice(const std::string& name = "web-1") {
    const auto text = k8s::find(pod_named(name).meta.annotations, kNoticeAnnotation);
    return text ? read_notice(*text) : std::nullopt;
  }

  /// The pods that were evicted until the time of day, such as `12:06:00`.
  std::vector<std::string> run_until(const std::string& time) {
    const auto until = *parse_rfc3339("2026-11-20T" + time + "Z");
    return run_for(std::chrono::duration_cast<Millis>(until - now().wall));
  }
};

std::string time_of(const std::optional<WallTime>& time) { return time ? format_rfc3339(*time).substr(11, 8) : "none"; }

const std::vector<std::string> kNobody;
const std::vector<std::string> kWeb1 = {"web-1"};

}  // namespace

TEST_CASE("A pod is told in the same write as its condition, and silence gets it evicted at the deadline, not before") {
  ToldStage stage;
  CHECK(stage.run_until("12:00:59") == kNobody);
  CHECK_FALSE(stage.notice());
  CHECK(stage.run_until("12:01:01") == kNobody);
  const auto written = std::ranges::count_if(stage.writes(), [](const auto& w) { return w == "condition web-1"; });
  CHECK(written == 1);
  REQUIRE(stage.notice());
  CHECK(stage.notice()->evict);
  CHECK(stage.notice()->number == 1);
  CHECK(stage.notice()->device == "node-a/example.com/gpu/gpu-0");
  CHECK(stage.notice()->reason == "DeviceUnhealthy");
  CHECK(time_of(stage.notice()->at) == "12:01:00");
  CHECK(time_of(stage.notice()->deadline) == "12:06:00");
  CHECK(stage.conditions().back().wanted->message.ends_with(
      "next: eviction, due at 2026-11-20T12:06:00Z, noticed at 2026-11-20T12:01:00Z"));
  CHECK_FALSE(stage.notice("web-2"));
  CHECK(stage.run_until("12:05:59") == kNobody);
  CHECK(stage.reasons("web-1") == "WaitingForCheckpoint");
  CHECK(time_of(stage.verdict("web-1", Reason::WaitingForCheckpoint)->next_at) == "12:06:00");
  stage.advance(Millis(999));
  stage.turn();
  CHECK(stage.verdict("web-1", Reason::WaitingForCheckpoint) != nullptr);
  stage.advance(Millis(1));
  const auto gone = stage.settle();
  CHECK(gone == kWeb1);
  CHECK(stage.verdict("web-1", Reason::DeadlinePassed) != nullptr);
  CHECK(stage.has_event("web-1", "DeadlinePassed"));
}

TEST_CASE("Without evict.notice nothing is told and nothing waits") {
  ToldStage stage;
  stage.policy().evict->notice.reset();
  stage.send_policy();
  CHECK(stage.run_until("12:01:10") == kWeb1);
  CHECK_FALSE(stage.notice());
}

TEST_CASE("Until the pod shows the notice its verdict is Noticed, and the deadline counts from when it was sent") {
  ToldStage stage;
  CHECK(stage.run_until("12:00:59") == kNobody);
  stage.advance(Seconds(1));
  const auto actions = stage.turn();
  CHECK(std::ranges::any_of(actions,
                            [](const auto& action) { return std::holds_alternative<notice::ApplyCondition>(action); }));
  for (int i = 0; i < 299; ++i) {
    stage.advance(Seconds(1));
    CHECK(test::evicted(stage.turn()).empty());
  }
  CHECK(stage.verdict("web-1", Reason::Noticed) != nullptr);
  stage.advance(Seconds(1));
  stage.turn();
  CHECK(stage.verdict("web-1", Reason::Noticed) == nullptr);
  CHECK(stage.verdict("web-1", Reason::DeadlinePassed) != nullptr);
}

TEST_CASE("An answer of done gets the pod evicted at once, but not before evict.after") {
  ToldStage stage;
  SUBCASE("at once") {
    CHECK(stage.run_until("12:02:00") == kNobody);
    stage.answer("done");
    CHECK(stage.run_until("12:02:03") == kWeb1);
    CHECK(stage.has_event("web-1", "AnsweredDone"));
  }
  SUBCASE("evict.after is the policy's, and no answer moves it") {
    stage.policy().evict->after = minutes(3);
    stage.send_policy();
    CHECK(stage.run_until("12:02:00") == kNobody);
    stage.answer("done");
    CHECK(stage.run_until("12:03:59") == kNobody);
    CHECK(stage.run_until("12:04:03") == kWeb1);
  }
  SUBCASE("dated since the notice") {
    CHECK(stage.run_until("12:02:00") == kNobody);
    stage.answer("done: 2026-11-20T12:01:00Z");
    CHECK(stage.run_until("12:02:03") == kWeb1);
  }
}

TEST_CASE("What is no answer to this notice leaves the deadline where it is, and is said") {
  ToldStage stage;
  std::string said;
  SUBCASE("nonsense") {
    stage.run_until("12:02:00");
    stage.answer("whenever\nyou like");
    said = "\"whenever you like\" is no answer; write done, done: TIME or extend-until: TIME";
  }
  SUBCASE("done of an earlier incident") {
    stage.run_until("12:02:00");
    stage.answer("done: 2026-11-20T12:00:59Z");
    said = "it is older than the notice of 2026-11-20T12:01:00Z";
  }
  SUBCASE("done of next year") {
    stage.run_until("12:02:00");
    stage.answer("done: 2027-11-20T12:00:59Z");
    said = "2027-11-20T12:00:59Z is ahead of the controller's clock";
  }
  CHECK(stage.run_until("12:05:59") == kNobody);
  const auto* refused = stage.verdict("web-1", Reason::AnnotationRefused);
  REQUIRE(refused != nullptr);
  CHECK_MESSAGE(refused->message.find(said) != std::string::npos, refused->message);
  CHECK(stage.run_until("12:06:05") == kWeb1);
}

TEST_CASE("An answer that is dated ahead of the clock counts once its time has come") {
  ToldStage stage;
  stage.run_until("12:02:00");
  stage.answer("done: 2026-11-20T12:03:00Z");
  CHECK(stage.run_until("12:02:59") == kNobody);
  CHECK(stage.run_until("12:03:03") == kWeb1);
}

TEST_CASE("A pod may ask for more time within evict.notice.extendUpTo, and its notice says what it gets") {
  ToldStage stage;
  stage.run_until("12:02:00");
  SUBCASE("within") {
    stage.answer("extend-until: 2026-11-20T12:10:00Z");
    CHECK(stage.run_until("12:02:05") == kNobody);
    CHECK(time_of(stage.notice()->deadline) == "12:10:00");
    CHECK(time_of(stage.notice()->at) == "12:01:00");
    CHECK(stage.run_until("12:09:59") == kNobody);
    CHECK(stage.run_until("12:10:05") == kWeb1);
  }
  SUBCASE("beyond") {
    stage.answer("extend-until: 2026-11-20T13:00:00Z");
    CHECK(stage.run_until("12:02:05") == kNobody);
    CHECK(time_of(stage.notice()->deadline) == "12:16:00");
    CHECK(stage.notice()->message == "2026-11-20T13:00:00Z is more than evict.notice.extendUpTo of policy p allows");
    CHECK(stage.verdict("web-1", Reason::WaitingForCheckpoint)->message.find("beyond evict.notice.extendUpTo") !=
          std::string::npos);
    CHECK(stage.run_until("12:15:59") == kNobody);
    CHECK(stage.run_until("12:16:05") == kWeb1);
  }
  SUBCASE("less than it has") {
    stage.answer("extend-until: 2026-11-20T12:03:00Z");
    CHECK(stage.run_until("12:05:59") == kNobody);
    CHECK(time_of(stage.notice()->deadline) == "12:06:00");
    CHECK(stage.run_until("12:06:05") == kWeb1);
  }
  SUBCASE("asked again and again: never more than once over") {
    for (int i = 0; i < 20; ++i) {
      stage.answer("extend-until: " + format_rfc3339(stage.now().wall + minutes(9)));
      if (!stage.run_for(minutes(1), Seconds(10)).empty()) break;
    }
    CHECK(time_of(stage.now().wall) < "12:18:00");
    CHECK(time_of(stage.now().wall) > "12:15:59");
  }
}

TEST_CASE("An eviction says what it was decided on, so that an answer in the moment before it holds the pod back") {
  ToldStage stage;
  std::vector<eviction::EvictPod> sent;
  stage.answer_evictions([&](const eviction::EvictPod& action) {
    sent.push_back(action);
    return Status{};
  });
  CHECK(stage.run_until("12:06:05") == kWeb1);
  REQUIRE(sent.size() == 1);
  auto fresh = stage.pod_named("web-1");
  fresh.meta.deletion.reset();
  CHECK(eviction::judge_pod(sent.front(), fresh));
  fresh.meta.annotations.emplace_back(kNoticeResponseAnnotation, "extend-until: 2026-11-20T12:10:00Z");
  const auto judged = eviction::judge_pod(sent.front(), fresh);
  REQUIRE_FALSE(judged);
  CHECK(judged.error().kind == ErrorKind::Outdated);
}

TEST_CASE("A pod with two bad devices hears of both, and with each which container holds it") {
  ToldStage stage;
  auto& pod = stage.pod_named("web-1");
  pod.allocated.front().devices.front().containers = {"main"};
  auto second = pod.allocated.front().devices.front();
  second.resource_id = "gpu-9";
  second.containers = {"side"};
  second.health = Health::Healthy;
  pod.allocated.front().devices.push_back(second);
  stage.upsert_pod("web-1");
  stage.run_until("12:02:00");
  REQUIRE(stage.notice());
  CHECK(stage.notice()->also.empty());
  stage.pod_named("web-1").allocated.front().devices.back().health = Health::Unhealthy;
  stage.upsert_pod("web-1");
  stage.run_until("12:03:30");
  CHECK(stage.notice()->device == "node-a/example.com/gpu/gpu-0");
  CHECK(stage.notice()->container == "main");
  CHECK(stage.notice()->also ==
        std::vector<NoticedDevice>{{.device = "node-a/example.com/gpu/gpu-9", .container = "side"}});
  CHECK(stage.notice()->number == 1);
  const auto writes = stage.writes().size();
  stage.run_until("12:05:00");
  CHECK(stage.writes().size() == writes);
  stage.pod_named("web-1").allocated.front().devices.front().health = Health::Healthy;
  stage.upsert_pod("web-1");
  stage.run_until("12:05:50");
  CHECK(stage.notice()->device == "node-a/example.com/gpu/gpu-9");
  CHECK(stage.notice()->container == "side");
  CHECK(stage.notice()->also.empty());
}

TEST_CASE("A container that holds the device and is restarted after the notice gets its pod evicted at once") {
  ToldStage stage;
  auto& device = stage.pod_named("web-1").allocated.front().devices.front();
  device.containers = {"main"};
  device.restarts = 7;
  stage.upsert_pod("web-1");
  CHECK(stage.run_until("12:02:00") == kNobody);
  CHECK(stage.notice()->container == "main");
  CHECK(stage.notice()->restarts == 7);
  stage.pod_named("web-1").allocated.front().devices.front().restarts = 8;
  stage.upsert_pod("web-1");
  SUBCASE("seen by this process") {}
  SUBCASE("seen by the next one") { stage.restart(); }
  CHECK(stage.run_until("12:02:05") == kWeb1);
}

TEST_CASE("A restart of the controller begins no deadline anew, whatever a tenant writes over the notice") {
  ToldStage stage;
  CHECK(stage.run_until("12:03:00") == kNobody);
  SUBCASE("as it was") { stage.restart(); }
  SUBCASE("the notice says an hour later") {
    stage.annotate(kNoticeAnnotation, R"({"v":1,"action":"evict","at":"2026-11-20T13:00:00Z"})");
    stage.restart();
  }
  SUBCASE("the notice says yesterday") {
    stage.annotate(kNoticeAnnotation,
                   R"({"v":1,"action":"evict","at":"2026-11-19T13:00:00Z","deadline":"1970-01-01T00:00:00Z"})");
    stage.restart();
  }
  SUBCASE("the notice is gone") {
    stage.annotate(kNoticeAnnotation, "");
    stage.restart();
  }
  SUBCASE("the notice is nested as deep as it can be") {
    stage.annotate(kNoticeAnnotation, std::string(200'000, '['));
    stage.restart();
  }
  CHECK(stage.run_until("12:05:59") == kNobody);
  CHECK(stage.run_until("12:06:05") == kWeb1);
}

TEST_CASE("A condition whose time of notice lies ahead or before the incident is read as what it can be") {
  ToldStage stage;
  CHECK(stage.run_until("12:02:00") == kNobody);
  const auto noticed_at = [&](std::string_view time) {
    stage.pod_named("web-1").conditions.change_if(
        [](const auto& one) { return one.type == kConditionType; },
        [&](k8s::Condition& one) { one.message.replace(one.message.find("noticed at ") + 11, 20, time); });
  };
  std::string wanted;
  SUBCASE("yesterday: the incident's opening") {
    noticed_at("2026-11-19T12:00:00Z");
    wanted = "12:06:00";
  }
  SUBCASE("next year: now, and written so") {
    noticed_at("2027-11-19T12:00:00Z");
    wanted = "12:07:00";
  }
  stage.upsert_pod("web-1");
  stage.restart();
  const auto end = *parse_rfc3339("2026-11-20T" + wanted + "Z");
  CHECK(stage.run_until(time_of(end - Seconds(2))) == kNobody);
  CHECK(stage.run_until(time_of(end + Seconds(5))) == kWeb1);
}

TEST_CASE("A clock that jumps takes no time from a pod that has been told, and gives it no more than its notice anew") {
  ToldStage stage;
  stage.run_until("12:02:00");
  REQUIRE(stage.notice());
  SUBCASE("an hour ahead") {
    stage.set_clock(std::chrono::hours(1));
    CHECK(stage.run_for(minutes(4) - Seconds(1)) == kNobody);
    CHECK(stage.reasons("web-1") == "WaitingForCheckpoint");
    CHECK(stage.run_for(Seconds(5)) == kWeb1);
  }
  SUBCASE("an hour ahead, and a done that is dated by it counts") {
    stage.set_clock(std::chrono::hours(1));
    CHECK(stage.run_for(Seconds(5)) == kNobody);
    stage.deliver(ServerClockSeen{.ahead = Millis(0)});
    CHECK(stage.run_for(minutes(1)) == kNobody);
    stage.answer("done: 2026-11-20T13:03:00Z");
    CHECK(stage.run_for(Seconds(5)) == kWeb1);
  }
  SUBCASE("an hour back") {
    stage.set_clock(-std::chrono::hours(1));
    CHECK(stage.run_for(minutes(4) - Seconds(1)) == kNobody);
    CHECK(stage.run_for(minutes(2)) == kWeb1);
  }
  SUBCASE("back across a restart of the controller: it is told anew") {
    stage.set_clock(-std::chrono::seconds(90));
    stage.restart();
    CHECK(stage.run_for(minutes(4) - Seconds(1)) == kNobody);
    CHECK(stage.run_for(minutes(3)) == kWeb1);
  }
  SUBCASE("ahead and back, again and again") {
    for (int i = 0; i < 3; ++i) {
      stage.set_clock(std::chrono::hours(1));
      CHECK(stage.run_for(Seconds(30)) == kNobody);
      stage.set_clock(Millis(0));
      CHECK(stage.run_for(Seconds(30)) == kNobody);
    }
    CHECK(stage.run_for(minutes(2)) == kWeb1);
  }
}

TEST_CASE("A clock that is set back a few seconds just after the notice moves no deadline by more than these") {
  ToldStage stage;
  stage.run_until("12:01:02");
  REQUIRE(stage.notice());
  stage.set_clock(-Seconds(4));
  CHECK(stage.run_for(minutes(4) + Seconds(50)) == kNobody);
  CHECK(stage.run_for(Seconds(20)) == kWeb1);
}

TEST_CASE("A device that recovers withdraws the notice, and the next one is a new one with a deadline of its own") {
  ToldStage stage;
  stage.run_until("12:02:00");
  stage.answer("done: 2026-11-20T12:02:00Z");
  stage.node("node-a", 4);
  stage.report("web-1", Health::Healthy);
  CHECK(stage.run_until("12:05:00") == kNobody);
  REQUIRE(stage.notice());
  CHECK_FALSE(stage.notice()->evict);
  CHECK(stage.notice()->reason == "Recovered");
  stage.run_until("12:30:00");
  const auto writes = stage.writes().size();
  stage.run_until("12:31:00");
  CHECK(stage.writes().size() == writes);
  stage.node("node-a", 4, 3);
  stage.report("web-1", Health::Unhealthy);
  SUBCASE("the answer to the first is none to the second") {}
  SUBCASE("a bare done left behind is none either") { stage.answer("done"); }
  CHECK(stage.run_until("12:36:59") == kNobody);
  CHECK(stage.notice()->number == 2);
  CHECK(stage.verdict("web-1", Reason::AnnotationRefused) != nullptr);
  CHECK(stage.run_until("12:37:10") == kWeb1);
}

TEST_CASE("A pod that is held is told so, and gets the whole time once nothing holds it any more") {
  ToldStage stage;
  stage.annotate(kOptOutAnnotation, "true");
  CHECK(stage.run_until("12:03:00") == kNobody);
  REQUIRE(stage.notice());
  CHECK_FALSE(stage.notice()->evict);
  CHECK(stage.notice()->reason == "OptedOut");
  CHECK(stage.notice()->number == 0);
  stage.annotate(kOptOutAnnotation, "");
  CHECK(stage.run_until("12:07:59") == kNobody);
  CHECK(stage.notice()->evict);
  CHECK(stage.notice()->number == 1);
  CHECK(time_of(stage.notice()->deadline) == "12:08:00");
  CHECK(stage.run_until("12:08:10") == kWeb1);
}

TEST_CASE("A pause moves nothing and says so in the notice, whose deadline stands") {
  ToldStage stage;
  stage.run_until("12:02:00");
  stage.limits().paused = true;
  stage.send_policy();
  CHECK(stage.run_until("12:08:00") == kNobody);
  CHECK(stage.notice()->evict);
  CHECK(stage.notice()->reason == "Paused");
  CHECK(time_of(stage.notice()->deadline) == "12:06:00");
  stage.limits().paused = false;
  stage.send_policy();
  CHECK(stage.run_until("12:08:10") == kWeb1);
}

TEST_CASE("A brake says so in the notice, too, and both stops in the condition once the deadline has passed") {
  for (const bool is_brake : {true, false}) {
    CAPTURE(is_brake);
    ToldStage stage;
    stage.limits().brake_trial_after = std::chrono::hours(720);
    stage.run_until("12:02:00");
    const auto told = stage.conditions().back().wanted->message;
    is_brake ? (void)(stage.limits().brake_at_least = 1) : (void)(stage.limits().paused = true);
    if (is_brake) stage.limits().brake_percent = 1;
    stage.send_policy();
    CHECK(stage.run_until("12:05:59") == kNobody);
    CHECK(stage.notice()->reason == (is_brake ? "Braked" : "Paused"));
    CHECK(time_of(stage.notice()->deadline) == "12:06:00");
    CHECK(stage.conditions().back().wanted->message == told);
    CHECK(stage.run_until("12:08:00") == kNobody);
    const auto message = stage.conditions().back().wanted->message;
    CHECK(message == told + (is_brake ? "; Braked: the brake stops new evictions here until it is released"
                                      : "; Paused: ControllerLimits has paused: true"));
    CHECK(read_condition(message).noticed() == read_condition(told).noticed());
  }
}

TEST_CASE("Nothing is written to a pod under an observing policy, and the verdict says when it would go") {
  ToldStage stage;
  stage.policy().mode = Mode::Observe;
  stage.send_policy();
  CHECK(stage.run_until("12:05:59") == kNobody);
  CHECK_FALSE(stage.notice());
  CHECK(stage.reasons("web-1") == "WaitingForCheckpoint");
  stage.run_until("12:06:01");
  CHECK(stage.reasons("web-1") == "WouldEvict");
  stage.policy().mode = Mode::Enforce;
  stage.send_policy();
  CHECK(stage.run_until("12:11:00") == kNobody);
  CHECK(time_of(stage.notice()->at) == "12:06:01");
  CHECK(stage.run_until("12:11:10") == kWeb1);
}

TEST_CASE("A policy that gives no notice any more takes the annotation back") {
  ToldStage stage;
  stage.run_until("12:02:00");
  REQUIRE(stage.notice());
  stage.policy().evict->notice.reset();
  stage.policy().evict->after = minutes(30);
  stage.send_policy();
  stage.run_until("12:04:00");
  CHECK_FALSE(stage.notice());
  const auto writes = stage.writes().size();
  stage.run_until("12:10:00");
  CHECK(stage.writes().size() == writes);
}

TEST_CASE("A driver that changes its words every second gets no write every second") {
  ToldStage stage;
  stage.run_until("12:01:30");
  const auto writes = stage.writes().size();
  for (int i = 0; i < 60; ++i) {
    stage.report("web-1", Health::Unhealthy, "word " + std::to_string(i));
    stage.run_for(Seconds(1));
  }
  CHECK(stage.writes().size() <= writes + 2);
}

TEST_CASE("A tenant who asks for other times without end gets no more than six writes a minute") {
  ToldStage stage;
  stage.run_until("12:02:00");
  const auto writes = stage.writes().size();
  for (int i = 0; i < 60; ++i) {
    stage.answer("extend-until: " + format_rfc3339(stage.now().wall + minutes(5) + Seconds(i % 7)));
    stage.run_for(Seconds(1));
  }
  CHECK(stage.writes().size() <= writes + 12);
}

TEST_CASE("The program may end itself once its Job shows the retry for the policy's settle, and not before") {
  test::JobStage stage;
  stage.policy().evict->notice = NoticeRules{};
  stage.send_policy();
  stage.add_pod(0);
  const auto told = [&]() -> Notice {
    const auto text = k8s::find(stage.pod_named("train-0").meta.annotations, kNoticeAnnotation);
    return text ? read_notice(*text).value_or(Notice{}) : Notice{};
  };
  stage.run_for(Seconds(64));
  CHECK(told().evict);
  CHECK(told().retry == "none");
  CHECK_FALSE(told().exit_is_safe);
  stage.run_for(Seconds(12));
  CHECK(stage.states() == "given");
  CHECK(told().retry == "credited");
  CHECK(told().exit_is_safe);
  stage.restart();
  stage.run_for(Seconds(3));
  CHECK(told().exit_is_safe);
}

namespace {

/// As above, and every pod of ReplicaSet web hears of it; other-1 belongs to another.
struct OwnerStage : ToldStage {
  OwnerStage() {
    policy().evict->notice->whole_owner = true;
    send_policy();
    pod({.name = "other-1", .owner = "ReplicaSet/other", .device = "gpu-2"});
  }
};

}  // namespace

TEST_CASE("With scope Owner the other pods of the controller are told who goes and when, and that it is over") {
  OwnerStage stage;
  stage.run_until("12:01:05");
  REQUIRE(stage.notice("web-2"));
  CHECK_FALSE(stage.notice("web-2")->evict);
  CHECK(stage.notice("web-2")->peer == "web-1");
  CHECK(stage.notice("web-2")->deadline == stage.notice()->deadline);
  CHECK(stage.notice("web-2")->at == stage.notice()->at);
  CHECK_FALSE(stage.notice("other-1"));
  const auto writes = stage.writes().size();
  CHECK(stage.run_until("12:03:00") == kNobody);
  CHECK(stage.writes().size() == writes);
  SUBCASE("the deadline moves, and theirs with it") {
    stage.answer("extend-until: 2026-11-20T12:10:00Z");
    stage.run_until("12:03:05");
    CHECK(time_of(stage.notice("web-2")->deadline) == "12:10:00");
  }
  SUBCASE("the pod is gone") {
    stage.answer("done");
    CHECK(stage.run_until("12:03:05") == kWeb1);
    stage.remove_pod("web-1");
    stage.run_until("12:03:10");
    CHECK_FALSE(stage.notice("web-2"));
  }
  SUBCASE("the pod has recovered while the controller was away") {
    stage.node("node-a", 4);
    stage.report("web-1", Health::Healthy);
    stage.restart();
    stage.run_until("12:06:00");
    CHECK_FALSE(stage.notice("web-2"));
    CHECK(stage.conditions().back().wanted.has_value() == (stage.conditions().back().name == "web-1"));
  }
  SUBCASE("the policy speaks to pods alone again") {
    stage.policy().evict->notice->whole_owner = false;
    stage.send_policy();
    stage.run_until("12:03:05");
    CHECK_FALSE(stage.notice("web-2"));
    CHECK(stage.notice()->evict);
  }
  SUBCASE("its own device fails: it speaks for itself from then on") {
    stage.report("web-2", Health::Unhealthy);
    stage.run_until("12:04:05");
    CHECK(stage.notice("web-2")->evict);
    CHECK(stage.notice("web-2")->number == 1);
  }
}

TEST_CASE("A notice about a peer that a tenant has made up costs one write, and none under scope Pod to the others") {
  ToldStage stage;
  stage.run_until("12:02:00");
  auto& pod = stage.pod_named("web-2");
  pod.meta.annotations = {
      {std::string(kNoticeAnnotation), R"({"v":1,"action":"peer","pod":"x","at":"2026-11-20T12:01:00Z"})"}};
  stage.upsert_pod("web-2");
  const auto writes = stage.writes().size();
  CHECK(stage.run_until("12:05:00") == kNobody);
  CHECK(stage.writes().size() == writes + 1);
  CHECK(stage.notice("web-2"));
}

TEST_CASE("A launcher without a device hears of the pod that goes, if its volume shows a notice, and holds nobody up") {
  OwnerStage stage;
  for (const auto* name : {"web-launcher", "web-deaf"}) {
    auto& pod = stage.pod({.name = name});
    pod.shows_kept_annotation = pod.meta.name == "web-launcher";
    REQUIRE_FALSE(k8s::asks_for_devices(pod));
    stage.upsert_pod(name);
  }
  stage.run_until("12:01:05");
  REQUIRE(stage.notice("web-launcher"));
  CHECK(stage.notice("web-launcher")->peer == "web-1");
  CHECK(stage.notice("web-launcher")->deadline == stage.notice()->deadline);
  CHECK_FALSE(stage.notice("web-deaf"));
  SUBCASE("also one that comes later") {
    stage.pod({.name = "web-late"}).shows_kept_annotation = true;
    stage.upsert_pod("web-late");
    stage.run_until("12:01:10");
    REQUIRE(stage.notice("web-late"));
    CHECK(stage.notice("web-late")->peer == "web-1");
  }
  SUBCASE("across a restart, and that it is over") {
    stage.restart();
    CHECK(stage.run_until("12:05:59") == kNobody);
    CHECK(stage.run_until("12:06:05") == kWeb1);
    stage.remove_pod("web-1");
    stage.run_until("12:06:10");
    CHECK_FALSE(stage.notice("web-launcher"));
  }
}

TEST_CASE("At most 256 pods of a controller hear of one that goes") {
  OwnerStage stage;
  stage.node("node-b", 400);
  for (int i = 0; i < 300; ++i) {
    stage.pod({.name = "web-b" + std::to_string(i), .node = "node-b", .device = "gpu-" + std::to_string(i)});
  }
  stage.run_until("12:01:10");
  int told = 0;
  for (int i = 0; i < 300; ++i) told += stage.notice("web-b" + std::to_string(i)) ? 1 : 0;
  CHECK(told + (stage.notice("web-2") ? 1 : 0) == 256);
}
