// What we say on a pod does not stay: a webhook takes it out of each write that the API server accepts.
#include <string>

#include <doctest/doctest.h>

#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

/// A pod on a bad device, to which its kubelet writes something else every ten seconds.
struct Stripped : Stage {
  explicit Stripped(bool condition, bool notice = false) {
    policy().evict->notice = NoticeRules{.deadline = hours(24)};
    if (!notice) policy().evict.reset();
    send_policy();
    node("node-a", 4, 3);
    strip({.condition = condition, .notice = notice});
    pod({.name = "web-1", .device = "gpu-0", .health = Health::Unhealthy});
  }

  std::size_t writes_in(Millis time) {
    const auto before = conditions().size();
    for (Millis at{0}; at < time; at += Seconds(10)) {
      upsert_pod("web-1");
      run_for(Seconds(10), Seconds(5));
    }
    return conditions().size() - before;
  }
};

}  // namespace

TEST_CASE("A condition that a webhook takes away is written ever more rarely, and the pod says so") {
  Stripped stage(true);
  CHECK(stage.writes_in(minutes(1)) > 1);
  const auto* said = stage.verdict("web-1", Reason::ConditionContested);
  REQUIRE(said != nullptr);
  CHECK(said->message ==
        "the API server has accepted it several times, and it is not there: an admission webhook or another client "
        "takes it away");
  CHECK(stage.writes_in(hours(1)) <= 10);
  CHECK(stage.writes_in(hours(2)) <= 12);
  CHECK(stage.writes_in(hours(2)) >= 11);
  REQUIRE(stage.verdict("web-1", Reason::ConditionContested) != nullptr);
  CHECK(stage.verdict("web-1", Reason::ConditionContested)->next_at <= stage.now().wall + minutes(10));

  stage.strip({});
  CHECK(stage.writes_in(minutes(10)) == 1);
  CHECK(stage.verdict("web-1", Reason::ConditionContested) == nullptr);
  // What is to be said from then on waits for nothing.
  stage.report("web-1", Health::Healthy);
  stage.run_for(Seconds(15));
  CHECK(stage.conditions().back().wanted->status == false);
}

TEST_CASE("A notice that a webhook takes away is written ever more rarely too") {
  Stripped stage(false, true);
  stage.writes_in(minutes(5));
  CHECK(stage.verdict("web-1", Reason::ConditionContested) != nullptr);
  CHECK(stage.writes_in(hours(2)) <= 15);
}

TEST_CASE("Where the notice alone is taken away a recovery is told at once") {
  Stripped stage(false, true);
  stage.writes_in(hours(1));
  REQUIRE(stage.verdict("web-1", Reason::ConditionContested) != nullptr);
  // Just after a try, when the next is ten minutes away.
  for (auto written = stage.conditions().size(); stage.conditions().size() == written;) stage.writes_in(Seconds(10));
  stage.report("web-1", Health::Healthy);
  stage.run_for(Seconds(15));
  CHECK(stage.conditions().back().wanted->status == false);
}

TEST_CASE("A word of recovery that a webhook takes away is written ever more rarely too") {
  Stripped stage(false);
  stage.writes_in(minutes(2));
  CHECK(stage.verdict("web-1", Reason::ConditionContested) == nullptr);
  stage.strip({.condition = true});
  stage.report("web-1", Health::Healthy);
  CHECK(stage.writes_in(hours(1)) <= 15);
}

TEST_CASE("A driver that changes its words at each turn is no webhook") {
  Stripped stage(false);
  for (int i = 0; i < 30; ++i) {
    stage.report("web-1", Health::Unhealthy, "Xid " + std::to_string(i));
    stage.run_for(Seconds(30));
    CHECK(stage.verdict("web-1", Reason::ConditionContested) == nullptr);
  }
}

}  // namespace dhc::test
