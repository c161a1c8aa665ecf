// The hand-shake before an eviction: the controller against the simulated API server, Job controller and kubelet.
#include <algorithm>

#include <doctest/doctest.h>

#include "domain/contract/notice_text.h"
#include "tests/support/core/job_world.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::job_shape;
using dhc::test::JobWorld;
using namespace std::chrono_literals;

namespace {

/// A Job on a policy that tells a pod five minutes before.
struct ToldWorld : JobWorld {
  explicit ToldWorld(const std::string& restart_policy = "Never") : JobWorld(shape_with(restart_policy)) {
    policy().evict->notice = NoticeRules{.deadline = 5min, .extend_up_to = 10min};
    send_policy();
    run_for(1s);
    name = live("train-").front();
  }

  static JobShape shape_with(const std::string& restart_policy) {
    auto shape = job_shape(0);
    shape.shape.restart_policy = restart_policy;
    return shape;
  }

  /// What a `downwardAPI` volume shows to the program.
  [[nodiscard]] std::string file() const {
    return text(pod(name), {"metadata", "annotations", std::string(kNoticeAnnotation)});
  }
  [[nodiscard]] std::optional<Notice> notice() const { return read_notice(file()); }

  void annotate(std::string_view key, const Json& value) {
    const Json patch = {{"metadata", {{"annotations", {{std::string(key), value}}}}}};
    REQUIRE(cluster.kubectl_patch(Res::Pods, "default", name, patch).status == 200);
  }

  [[nodiscard]] std::size_t condition_writes() const {
    const auto writes = cluster.writes();
    return static_cast<std::size_t>(std::ranges::count_if(
        writes, [](const auto& write) { return write.target.find("/status?fieldManager") != std::string::npos; }));
  }

  std::string name;
};

/// A training loop: five steps a second, a checkpoint of two seconds every ten minutes by itself.
class Trainer {
 public:
  explicit Trainer(bool listens) : listens_(listens) {}

  /// One second of it; whether it ends itself. Told of its eviction it saves, and then waits for its end.
  bool second(const std::string& file) {
    const auto notice = listens_ ? read_notice(file) : std::nullopt;
    const bool told = notice && notice->evict;
    if (saving_ > 0) {
      if (--saving_ == 0) saved_ = steps_;
    } else if ((told && saved_ != steps_) || ++since_saved_ >= 600) {
      saving_ = 2;
      since_saved_ = 0;
    } else if (!told) {
      steps_ += 5;
    }
    return told && saving_ == 0 && saved_ == steps_ && notice->exit_is_safe;
  }
  [[nodiscard]] int lost() const { return steps_ - saved_; }

 private:
  bool listens_;
  int steps_ = 0;
  int saved_ = 0;
  int saving_ = 0;
  int since_saved_ = 0;
};

}  // namespace

TEST_CASE("a pod is told in one write, evicted at the deadline and replaced, across a restart at any second of it") {
  for (const auto restart_at : {0s, 1s, 2s, 100s, 299s}) {
    CAPTURE(restart_at.count());
    ToldWorld world;
    REQUIRE(world.break_device() == world.name);
    world.run_for(6s);
    REQUIRE(world.notice());
    const auto told = *world.notice();
    CHECK(told.deadline == told.at + 5min);
    world.run_for(restart_at);
    world.restart_controller();
    world.run_for(std::chrono::floor<Millis>(*told.deadline - world.now.wall) - 1ms);
    CHECK(world.evictions().empty());
    CHECK(world.notice()->at == told.at);
    CHECK(world.notice()->deadline == told.deadline);
    world.run_for(10s);
    CHECK(world.evictions() == std::vector<std::string>{"default/" + world.name});
    CHECK(world.condition_writes() <= 3);
    CHECK(world.limit() == 1);
  }
}

TEST_CASE("somebody who may patch the pod answers for it, and a restart between answer and eviction loses nothing") {
  ToldWorld world;
  world.break_device();
  world.run_for(30s);
  SUBCASE("done") { world.annotate(kNoticeResponseAnnotation, "done"); }
  SUBCASE("done, while the controller is away") {
    world.lead(false);
    world.run_for(1s);
    world.annotate(kNoticeResponseAnnotation, "done");
    world.restart_controller();
  }
  world.run_for(15s);
  CHECK(world.evictions() == std::vector<std::string>{"default/" + world.name});
}

TEST_CASE("a container that is restarted in place after the notice is taken at its word") {
  ToldWorld world("OnFailure");
  world.cluster.restart_containers("default", world.name);
  world.break_device();
  world.run_for(30s);
  REQUIRE(world.notice());
  CHECK(world.notice()->restarts == 1);
  CHECK(world.evictions().empty());
  world.cluster.restart_containers("default", world.name);
  SUBCASE("as it is seen") {}
  SUBCASE("seen by another process") { world.restart_controller(); }
  world.run_for(15s);
  CHECK(world.evictions() == std::vector<std::string>{"default/" + world.name});
}

TEST_CASE("a notice that a tenant has written himself holds back neither condition nor eviction, and stays his") {
  ToldWorld world;
  SUBCASE("before ours") {
    world.annotate(kNoticeAnnotation, "mine");
    world.break_device();
    world.run_for(10s);
  }
  SUBCASE("over ours") {
    world.break_device();
    world.run_for(10s);
    world.annotate(kNoticeAnnotation, "mine");
  }
  world.run_for(1min);
  CHECK(world.file() == "mine");
  CHECK(condition_status(world.pod(world.name), "device-health.io/DeviceUnhealthy") == "True");
  const auto verdicts = world.verdicts();
  const auto waits = std::ranges::find(verdicts, Reason::WaitingForCheckpoint, &Verdict::reason);
  REQUIRE(waits != verdicts.end());
  CHECK(waits->message.find("another client owns its annotation") != std::string::npos);
  const auto writes = world.condition_writes();
  world.run_for(3min);
  CHECK(world.condition_writes() <= writes + 1);
  world.run_for(2min);
  CHECK(world.evictions() == std::vector<std::string>{"default/" + world.name});
  for (const auto& request : world.cluster.requests()) CHECK(request.target.find("force") == std::string::npos);
}

TEST_CASE("an API server that is away over the deadline delays the eviction, brings it no earlier and no second one") {
  ToldWorld world;
  world.break_device();
  world.run_for(6s);
  REQUIRE(world.notice());
  const auto deadline = *world.notice()->deadline;
  SUBCASE("from the notice on") { world.run_for(0s); }
  SUBCASE("from a minute before") { world.run_for(std::chrono::floor<Millis>(deadline - 60s - world.now.wall)); }
  world.cluster.faults().add({.watches = false, .count = -1, .status = 503});
  world.run_for(std::chrono::floor<Millis>(deadline + 60s - world.now.wall));
  CHECK(world.evictions().empty());
  world.cluster.faults().clear();
  world.run_for(2min);
  CHECK(world.evictions() == std::vector<std::string>{"default/" + world.name});
}

TEST_CASE(
    "a notice that cannot be written at first is given the time from when it was tried, and evicts nobody earlier") {
  ToldWorld world;
  world.cluster.faults().add({.path_contains = "/status?fieldManager", .count = -1, .status = 503});
  world.break_device();
  world.run_for(60s);
  CHECK(world.file().empty());
  CHECK(world.says(world.name, "Noticed"));
  world.cluster.faults().clear();
  world.run_for(2min);
  REQUIRE(world.notice());
  const auto told = *world.notice();
  CHECK(told.deadline == told.at + 5min);
  world.run_for(std::chrono::floor<Millis>(*told.deadline - world.now.wall) - 1ms);
  CHECK(world.evictions().empty());
  world.run_for(30s);
  CHECK(world.evictions() == std::vector<std::string>{"default/" + world.name});
}

TEST_CASE("with the hand-shake a trainer loses no step, and without it all since its last checkpoint") {
  struct Case {
    bool told;
    bool listens;
    int lost;  // five steps a second
  };
  // The device breaks at second 200, the incident opens at 205, the Job shows its credit at 215.
  for (const auto& [told, listens, lost] :
       {Case{true, true, 0}, Case{true, false, 5 * 505}, Case{false, false, 5 * 215}}) {
    CAPTURE(told);
    CAPTURE(listens);
    ToldWorld world;
    if (!told) world.policy().evict->notice.reset();
    world.send_policy();
    Trainer trainer(listens);
    bool exited = false;
    for (int second = 0; second < 900 && !exited; ++second) {
      if (second == 200) REQUIRE(world.break_device() == world.name);
      const auto pod = world.pod(world.name);
      if (pod.is_null() || !text(pod, {"metadata", "deletionTimestamp"}).empty()) break;
      exited = trainer.second(world.file());
      if (exited) world.cluster.crash_pod("default", world.name, 1);
      world.run_for(1s);
    }
    world.run_for(1min);
    CHECK(exited == listens);
    CHECK(trainer.lost() >= lost);
    CHECK(trainer.lost() <= lost + (listens ? 0 : 10));
    CHECK(!world.has_failed());
    CHECK(world.limit() == 1);
    CHECK(world.live("train-").size() == 1);
    CHECK(world.evictions().size() == (listens ? 0U : 1U));
  }
}
