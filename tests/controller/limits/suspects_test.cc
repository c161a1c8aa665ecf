// A program that breaks each device it is given is told from devices that are bad.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "tests/support/core/stage.h"
#include "tests/support/core/wide_caps.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

/// Thirteen nodes of eight devices, each with a claim and a pod of its own; three of them are the poison's.
struct Poisoned : Stage {
  static constexpr int kNodes = 13;

  explicit Poisoned(const std::string& poison = "ReplicaSet/poison") {
    widen_caps(limits());
    limits().cap_owner_per_day = {.percent = 1, .at_least = 2};
    limits().evictions_per_minute = 6000;
    limits().max_in_flight = limits().per_node = limits().per_owner = 1000;
    limits().brake_at_least = 10'000;
    policy().after = Seconds(10);
    policy().taint = TaintRules{};
    policy().evict->no_replacement_wait = Seconds(0);  // every device is held
    policy().job_retry = JobRetryRules{};
    whole_policy().own_namespace = "dhc";
    hold_caps();
    send_policy();
    std::vector<std::string> devices;
    for (int i = 0; i < 8; ++i) devices.push_back(fmt::format("gpu-{}", i));
    for (int n = 0; n < kNodes; ++n) {
      node(fmt::format("node-{}", n), 0);
      slice(fmt::format("node-{}", n), devices);
    }
    for (int i = 0; i < kNodes * 8; ++i) put_pod(i, is_poison(i) ? poison : fmt::format("ReplicaSet/rs-{}", i));
    settle();
  }

  static bool is_poison(int number) { return number % 8 == 0 && number < 24; }

  void put_pod(int number, const std::string& owner, const std::string& prefix = "p", const std::string& image = {}) {
    const auto name = fmt::format("{}-{}", prefix, number);
    auto& held = claim("claim-" + name, {fmt::format("gpu-{}", number % 8)}, name);
    held.results.front().pool = fmt::format("node-{}", number / 8);
    upsert_claim("claim-" + name);
    auto& put =
        pod({.name = name, .node = fmt::format("node-{}", number / 8), .owner = owner, .claim = "claim-" + name});
    put.meta.creation = now().wall;
    if (!image.empty()) put.images = std::vector<k8s::ContainerImage>{{.container = "main", .image = image}};
    upsert_pod(name);
  }

  std::vector<std::string> let_break(int number, Millis time = minutes(20), const std::string& prefix = "p") {
    report(fmt::format("{}-{}", prefix, number), Health::Unhealthy, "Xid 43");
    auto gone = run_for(time, Seconds(10));
    for (const auto& name : gone) {
      remove_pod(name);
      remove(k8s::Kind::ResourceClaim, "claim-" + name);
    }
    return gone;
  }

  /// Two are moved, the third is the evidence.
  void let_poison_break(bool restarts = false) {
    for (const int number : {0, 8, 16}) {
      if (restarts) restart();
      CHECK(let_break(number).size() == (number < 16 ? 1U : 0U));
    }
  }

  [[nodiscard]] std::size_t count(const std::string& word) const {
    return static_cast<std::size_t>(std::ranges::count(writes(), word));
  }
};

constexpr auto kTrain = "registry.example.com/train:7";

/// Jobs of one image come one after the other, each under a new name, and each breaks what it is given.
struct EverNew : Poisoned {
  EverNew() : Poisoned("ReplicaSet/quiet") {}

  std::vector<std::string> run_next(const std::string& image = kTrain) {
    const int number = next_++ * 8 + 7;
    remove_pod(fmt::format("p-{}", number));
    remove(k8s::Kind::ResourceClaim, fmt::format("claim-p-{}", number));
    settle();
    put_pod(number, fmt::format("Job/train-{}", next_ - 1), "train", image);
    settle();
    return let_break(number, minutes(20), "train");
  }
  [[nodiscard]] std::string last_pod() const { return fmt::format("train-{}", (next_ - 1) * 8 + 7); }

 private:
  int next_ = 0;
};

bool is_anybody_suspected(const Stage& stage) {
  return std::ranges::find(stage.verdicts(), Reason::WorkloadSuspected, &Verdict::reason) != stage.verdicts().end();
}

}  // namespace

TEST_CASE(
    "A workload under which the third device breaks is suspected: what was put down to its devices is taken back") {
  Poisoned fleet;
  fleet.let_poison_break();
  const auto* owner = fleet.verdict("poison", Reason::WorkloadSuspected);
  REQUIRE(owner != nullptr);
  CHECK(owner->subject.kind == "ReplicaSet");
  CHECK(owner->device == kDriver);
  CHECK(
      owner->message.contains("ReplicaSet default/poison is suspected of breaking the devices that it holds: since "));
  CHECK(owner->message.contains(
      "3 devices of gpu.example.com broke under it on 3 nodes, where others held 21 that were well"));
  CHECK(fleet.has_event("poison", "WorkloadSuspected"));
  CHECK(fleet.verdict("p-16", Reason::WorkloadSuspected) != nullptr);
  CHECK(fleet.verdict("p-16", Reason::CapReached) == nullptr);
  REQUIRE_FALSE(fleet.conditions().empty());
  CHECK(fleet.conditions().back().wanted->message.contains("next: no eviction (WorkloadSuspected)"));
  // The two that were tainted are free again, the third never was, and none is an offender.
  CHECK(fleet.rule() == nullptr);
  CHECK(fleet.count("delete gpu-0") == 2);
  const auto state = fleet.state_text();
  CHECK(state.contains(R"("phase":"Probation")"));
  CHECK_FALSE(state.contains(R"("phase":"Open")"));
  CHECK_FALSE(state.contains(R"("penalty":1)"));
}

TEST_CASE("All that a device broke under a suspected workload is taken back, and the incident that goes on") {
  Poisoned fleet;
  fleet.policy().recover.hold = hours(1);
  fleet.policy().recover.quarantine_above = 1.5;
  fleet.send_policy();
  CHECK(fleet.let_break(0).size() == 1);
  CHECK(fleet.let_break(8).size() == 1);
  fleet.run_for(hours(24), minutes(10));
  REQUIRE(fleet.rule() == nullptr);
  fleet.put_pod(0, "ReplicaSet/poison", "again");
  fleet.run_for(minutes(11), Seconds(30));
  CHECK(fleet.let_break(0, minutes(20), "again").size() == 1);
  REQUIRE(fleet.verdict("node-0", Reason::Quarantined) != nullptr);
  fleet.let_break(16);
  REQUIRE(fleet.verdict("poison", Reason::WorkloadSuspected) != nullptr);
  CHECK(fleet.rule() == nullptr);
  const auto content = parse_state(fleet.state_text());
  for (const auto& record : content.records) {
    CAPTURE(record.key.place);
    CHECK_FALSE(record.is_open());
    CHECK_FALSE(record.past.is_lemon);
    CHECK(record.past.count == 0);
    CHECK(record.past.penalty == 0);
  }
}

TEST_CASE("What was broken before a clock was set back is taken back as well") {
  Poisoned fleet;
  bool restarts = false;
  SUBCASE("") {}
  SUBCASE("by the process after it") { restarts = true; }
  CHECK(fleet.let_break(0).size() == 1);
  CHECK(fleet.let_break(8).size() == 1);
  fleet.set_clock(-hours(1));
  fleet.run_for(Seconds(30));
  if (restarts) fleet.restart();
  fleet.let_break(16);
  REQUIRE(fleet.verdict("poison", Reason::WorkloadSuspected) != nullptr);
  CHECK(fleet.rule() == nullptr);
  CHECK(fleet.count("delete gpu-0") == 2);
}

TEST_CASE("What added no penalty has none to take back") {
  DeviceHistory past;
  const RecoverRules rules;
  const WallTime noon(hours(12));
  count_incident(past, rules, noon);
  past.incidents.push_back({.at = noon, .reason = "Xid 79"});
  count_without_penalty(past);
  past.incidents.push_back({.at = noon + hours(1), .reason = "Xid 79", .without_penalty = true});
  take_back_incident(past, rules, noon + hours(1), noon + hours(1));
  CHECK(past.penalty == 1);
  CHECK(past.count == 1);
  take_back_incident(past, rules, noon, noon + hours(1));
  CHECK(past.penalty == 0);
}

TEST_CASE("A Job that breaks its devices gets its retries back until it is suspected, and none after that") {
  Poisoned fleet("Job/poison");
  auto& job = fleet.job_named("poison");
  job.backoff_limit = 0;
  fleet.upsert_job("poison");
  fleet.let_poison_break();
  REQUIRE(fleet.verdict("p-16", Reason::WorkloadSuspected) != nullptr);
  CHECK(fleet.job_named("poison").backoff_limit == 2);
  const auto patched = fleet.patches().size();
  CHECK(std::ranges::none_of(fleet.patches(), [](const auto& patch) {
    return std::ranges::any_of(patch.notes, [](const auto& note) { return note.text.contains("uid-p-16"); });
  }));
  // Nor after a restart, and not for what it dies of by itself.
  fleet.restart();
  CHECK(fleet.run_for(minutes(5), Seconds(10)).empty());
  auto& pod = fleet.pod_named("p-16");
  pod.phase = k8s::PodPhase::Failed;
  pod.exits = {{.container = "main", .code = 1}};
  fleet.upsert_pod("p-16");
  CHECK(fleet.run_for(minutes(5), Seconds(10)).empty());
  CHECK(fleet.patches().size() == patched);
  CHECK(fleet.job_named("poison").backoff_limit == 2);
}

TEST_CASE("While a workload is suspected its devices are not blamed, and others lose theirs as before") {
  Poisoned fleet;
  fleet.let_poison_break();
  fleet.put_pod(0, "ReplicaSet/poison", "again");
  fleet.settle();
  const auto rules = fleet.count("apply NoSchedule gpu-0");
  CHECK(fleet.let_break(0, minutes(20), "again").empty());
  CHECK(fleet.verdict("again-0", Reason::WorkloadSuspected) != nullptr);
  CHECK(fleet.count("apply NoSchedule gpu-0") == rules);
  CHECK(fleet.let_break(25) == std::vector<std::string>{"p-25"});
  // A device that another holds is his, and may be bad after all.
  fleet.put_pod(8, "ReplicaSet/other", "later");
  fleet.settle();
  CHECK(fleet.let_break(8, minutes(20), "later") == std::vector<std::string>{"later-8"});
}

TEST_CASE("A controller that restarts before each device breaks suspects the same, and after it nobody is told twice") {
  Poisoned fleet;
  fleet.let_poison_break(true);
  const auto* told = fleet.verdict("poison", Reason::WorkloadSuspected);
  REQUIRE(told != nullptr);
  const auto message = told->message;
  fleet.restart();
  CHECK(fleet.run_for(minutes(5), Seconds(10)).empty());
  told = fleet.verdict("poison", Reason::WorkloadSuspected);
  REQUIRE(told != nullptr);
  CHECK(told->message == message);
  CHECK(std::ranges::find(fleet.verdicts(), Reason::StateDamaged, &Verdict::reason) == fleet.verdicts().end());
  CHECK(fleet.rule() == nullptr);
}

TEST_CASE("An annotation on the workload clears it: its devices are its devices' matter again") {
  Poisoned fleet;
  fleet.let_poison_break();
  k8s::Owner cleared;
  cleared.kind = k8s::Kind::ReplicaSet;
  cleared.meta.ns = "default";
  cleared.meta.name = "poison";
  cleared.meta.uid = "uid-poison";
  cleared.meta.annotations = {{std::string(kAcknowledgeAnnotation), format_rfc3339(fleet.now().wall)}};
  fleet.advance(Seconds(1));
  fleet.put(cleared);
  fleet.run_for(minutes(2), Seconds(10));
  CHECK(fleet.verdict("poison", Reason::WorkloadSuspected) == nullptr);
  // Of the bad device it holds the incident opens; what broke before is not held against it.
  CHECK(fleet.verdict("p-16", Reason::CapReached) != nullptr);
}

TEST_CASE("Its annotation clears it also after its devices are well again") {
  Poisoned fleet;
  fleet.let_poison_break();
  fleet.report("p-16", Health::Healthy);
  fleet.run_for(minutes(2), Seconds(10));
  REQUIRE(fleet.verdict("poison", Reason::WorkloadSuspected) != nullptr);  // by its name, as before
  fleet.pod_named("p-16").meta.annotations = {{std::string(kAcknowledgeAnnotation), format_rfc3339(fleet.now().wall)}};
  fleet.advance(Seconds(1));
  fleet.upsert_pod("p-16");
  fleet.run_for(minutes(2), Seconds(10));
  CHECK_FALSE(is_anybody_suspected(fleet));
}

TEST_CASE("A suspicion ends a day after the workload has left its bad devices") {
  Poisoned fleet;
  fleet.let_poison_break();
  fleet.remove_pod("p-16");
  fleet.remove(k8s::Kind::ResourceClaim, "claim-p-16");
  fleet.settle();
  const auto* told = fleet.verdict("poison", Reason::WorkloadSuspected);
  CHECK(told == nullptr);  // nobody is left of whom it could be said by name
  const auto by_name = std::ranges::find(fleet.verdicts(), Reason::WorkloadSuspected, &Verdict::reason);
  REQUIRE(by_name != fleet.verdicts().end());
  CHECK(by_name->subject.kind == "Workload");
  REQUIRE(by_name->next_at);
  const auto until = *by_name->next_at;
  fleet.advance(std::chrono::duration_cast<Millis>(until - fleet.now().wall) - Millis(1));
  fleet.settle();
  CHECK(is_anybody_suspected(fleet));
  fleet.advance(Millis(1));
  fleet.settle();
  CHECK_FALSE(is_anybody_suspected(fleet));
}

TEST_CASE("An image under whose ever new Jobs four devices break is suspected: the next Job keeps its device") {
  EverNew fleet;
  for (int i = 0; i < 3; ++i) CHECK(fleet.run_next().size() == 1);
  CHECK_FALSE(is_anybody_suspected(fleet));
  CHECK(fleet.run_next().empty());  // without the largest three are left, and enough
  const auto* said = fleet.verdict("train-3", Reason::WorkloadSuspected);
  REQUIRE(said != nullptr);
  CHECK(said->subject.kind == "Job");
  CHECK(
      said->message.starts_with("image registry.example.com/train:7 in namespace default is suspected of breaking "
                                "the devices that its containers hold: since "));
  CHECK(said->message.contains("4 devices of gpu.example.com broke under it on 4 nodes"));
  CHECK(
      said->message.contains("; 4 workloads held them: default/Job/train-0, default/Job/train-1, "
                             "default/Job/train-2, default/Job/train-3; no pod that runs it there is moved"));
  CHECK(fleet.verdict(fleet.last_pod(), Reason::WorkloadSuspected) != nullptr);
  CHECK(fleet.rule() == nullptr);  // what was put down to the devices is taken back
  const auto rules = fleet.count("apply NoSchedule gpu-7");
  CHECK(fleet.run_next().empty());
  CHECK(fleet.verdict(fleet.last_pod(), Reason::WorkloadSuspected) != nullptr);
  CHECK(fleet.count("apply NoSchedule gpu-7") == rules);
  // Others lose their devices as before, and so does the image in another namespace.
  CHECK(fleet.let_break(1) == std::vector<std::string>{"p-1"});
}

TEST_CASE("A restart before each device and after them suspects the same image") {
  EverNew fleet;
  for (int i = 0; i < 4; ++i) {
    fleet.restart();
    fleet.run_next();
  }
  const auto* said = fleet.verdict("train-3", Reason::WorkloadSuspected);
  REQUIRE(said != nullptr);
  const auto message = said->message;
  fleet.restart();
  CHECK(fleet.run_for(minutes(5), Seconds(10)).empty());
  said = fleet.verdict("train-3", Reason::WorkloadSuspected);
  REQUIRE(said != nullptr);
  CHECK(said->message == message);
}

TEST_CASE("A word on one workload that ran the image clears the image") {
  EverNew fleet;
  for (int i = 0; i < 4; ++i) fleet.run_next();
  REQUIRE(is_anybody_suspected(fleet));
  auto& pod = fleet.pod_named(fleet.last_pod());
  pod.meta.annotations = {{std::string(kAcknowledgeAnnotation), format_rfc3339(fleet.now().wall)}};
  fleet.advance(Seconds(1));
  const auto name = fleet.last_pod();
  fleet.upsert_pod(name);
  CHECK(fleet.run_for(minutes(10), Seconds(10)) == std::vector<std::string>{name});
  CHECK_FALSE(is_anybody_suspected(fleet));
}

TEST_CASE("An image that others have run for long and that broke nothing for them is not to blame for some Jobs") {
  // A clock that is ahead of ours does not make them new.
  for (const auto ahead : {hours(0), hours(240)}) {
    EverNew fleet;
    for (int i = 1; i < 104; i += 5) {
      if (i % 8 == 7) continue;
      auto& pod = fleet.pod_named(fmt::format("p-{}", i));
      pod.images = std::vector<k8s::ContainerImage>{{.container = "main", .image = kTrain}};
      pod.meta.creation = fleet.now().wall + ahead;
      fleet.upsert_pod(fmt::format("p-{}", i));
    }
    fleet.settle();
    for (int i = 0; i < 10; ++i) CHECK(fleet.run_next().size() == 1);
    CHECK_FALSE(is_anybody_suspected(fleet));
  }
}

TEST_CASE("For one guilty workload the image that others run too is not suspected") {
  Poisoned fleet;
  for (int i = 0; i < 24; ++i) {
    const auto name = fmt::format("p-{}", i);
    const bool runs_it = Poisoned::is_poison(i) || i % 8 == 3;
    if (!runs_it) continue;
    fleet.pod_named(name).images = std::vector<k8s::ContainerImage>{{.container = "main", .image = kTrain}};
    fleet.upsert_pod(name);
  }
  fleet.let_poison_break();
  REQUIRE(fleet.verdict("poison", Reason::WorkloadSuspected) != nullptr);
  CHECK(fleet.let_break(3) == std::vector<std::string>{"p-3"});
}

TEST_CASE("With suspectAfter: 0 nobody is suspected") {
  Poisoned fleet;
  fleet.limits().suspect_after = 0;
  fleet.send_policy();
  fleet.let_poison_break();
  CHECK_FALSE(is_anybody_suspected(fleet));
  CHECK(fleet.verdict("p-16", Reason::CapReached) != nullptr);
}

}  // namespace dhc::test
