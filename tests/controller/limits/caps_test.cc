#include "domain/limits/caps.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "domain/incidents/incident_store.h"
#include "domain/incidents/state_text.h"
#include "reconcilers/incident_state/plan.h"
#include "tests/controller/taint/gpu_stage.h"
#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::minutes;
using Names = std::vector<std::string>;

namespace {

std::string pod_of(int node, int device) { return fmt::format("p-{}-{}", node, device); }

/// Nodes with so many plugin devices each, every one held by a pod of its own ReplicaSet; the default caps hold, and
/// nothing else does.
struct Fleet : Stage {
  Fleet(int nodes, int devices) {
    limits() = {.evictions_per_minute = 6000,
                .max_in_flight = 1000,
                .per_node = 1000,
                .per_owner = 1000,
                .brake_at_least = 10'000};
    policy().after = Seconds(10);
    policy().evict->no_replacement_wait = Seconds(0);  // every device is held
    whole_policy().own_namespace = "dhc";
    hold_caps();
    send_policy();
    for (int n = 0; n < nodes; ++n) {
      node(fmt::format("node-{}", n), devices);
      bad.push_back(0);
      for (int d = 0; d < devices; ++d) put_pod(n, d, Health::Healthy);
    }
    per_node = devices;
    settle();
  }

  void put_pod(int n, int d, Health health) {
    pod({.name = pod_of(n, d),
         .node = fmt::format("node-{}", n),
         .owner = fmt::format("ReplicaSet/rs-{}-{}", n, d),
         .device = fmt::format("gpu-{}", d),
         .health = health});
  }

  void break_device(int n, int d) {
    report(pod_of(n, d), Health::Unhealthy, "Xid 79");
    node(fmt::format("node-{}", n), per_node, per_node - ++bad[static_cast<std::size_t>(n)]);
  }

  /// Breaks one device after the other and gives the evicted pods, which go away as kubelets would have it.
  Names break_slowly(int count, Millis every, bool restarts = false) {
    Names gone;
    for (int i = 0; i < count; ++i) {
      break_device(i % static_cast<int>(bad.size()), i / static_cast<int>(bad.size()));
      if (restarts) restart();
      for (auto& name : run_for(every, Seconds(5))) {
        remove_pod(name);
        gone.push_back(std::move(name));
      }
    }
    return gone;
  }

  /// Goes on for a minute at most until evictions are sent, gives their pods, and starts anew: the server carries them
  /// out, the pods are gone before the next process lists, and nobody hears the answers.
  Names kill_after_eviction() {
    Names gone;
    for (int second = 0; second < 60 && gone.empty(); ++second) {
      for (const auto& action : turn()) {
        if (const auto* evict = std::get_if<eviction::EvictPod>(&action)) {
          remove_pod(evict->name);
          gone.push_back(evict->name);
          continue;
        }
        answer(action);
        if (const auto* state = std::get_if<incident_state::WriteState>(&action))
          put(state_map(state->text, state->ns));
      }
      advance(Seconds(1));
    }
    restart();
    return gone;
  }

  void annotate_node(const std::string& name, const std::string& value) {
    auto changed = node_named(name);
    changed.meta.annotations = {{std::string(kCapReleaseAnnotation), value}};
    put(changed);
  }

  int per_node = 0;
  std::vector<int> bad;  // devices of each node
};

}  // namespace

TEST_CASE("A driver that lies about one device every two minutes takes no more than the cluster's cap") {
  Fleet fleet(3, 8);
  const auto gone = fleet.break_slowly(24, minutes(2));
  CHECK(gone == Names{"p-0-0", "p-1-0"});
  const auto* held = fleet.verdict("p-2-0", Reason::CapReached);
  REQUIRE(held != nullptr);
  CHECK(
      held->message ==
      "2 of 24 devices of example.com/gpu in the cluster are out of service on our account, caps.cluster is 10 percent "
      "and at least 2: acknowledge what is repaired, or release the cap with the annotation "
      "device-health.io/cap-release on the configuration's ConfigMap");
  CHECK(fleet.has_event("p-2-0", "CapReached"));
}

TEST_CASE("An eviction right after another does not wait for its charge while the state is small") {
  Fleet fleet(8, 8);
  fleet.break_device(0, 0);
  fleet.run_for(Millis(40));
  fleet.break_device(1, 0);
  CHECK(fleet.run_for(Seconds(10) - Millis(41)).empty());
  CHECK(fleet.run_for(Millis(2), Millis(1)) == Names{"p-0-0"});
  CHECK(fleet.run_for(Millis(38), Millis(1)).empty());
  CHECK(fleet.run_for(Millis(25), Millis(1)) == Names{"p-1-0"});
}

TEST_CASE("A pod whose condition is on its way holds no slot, and is charged meanwhile") {
  Fleet fleet(2, 4);
  fleet.limits().max_in_flight = 1;
  fleet.policy().after = Seconds(0);
  fleet.send_policy();
  fleet.run_for(minutes(1), Seconds(30));
  fleet.break_device(0, 0);
  fleet.break_device(1, 0);
  Names gone;
  for (int i = 0; i < 10; ++i) {
    for (const auto& action : fleet.turn()) {
      const auto* condition = std::get_if<notice::ApplyCondition>(&action);
      if (condition != nullptr && condition->name == "p-0-0") continue;  // it hangs
      fleet.answer(action);
      if (const auto* evict = std::get_if<eviction::EvictPod>(&action)) {
        gone.push_back(evict->name);
        fleet.remove_pod(evict->name);
      } else {
        fleet.show(action);
      }
    }
    fleet.advance(Millis(20));
  }
  CHECK(gone == Names{"p-1-0"});
  CHECK(fleet.reasons("p-0-0").find("WaitingForCondition") != std::string::npos);
  CHECK(fleet.state_text().find("uid-p-0-0") != std::string::npos);
}

TEST_CASE("The larger the state, the longer a write for charges waits for more of them") {
  using incident_state::charge_interval;
  CHECK(charge_interval(0) == Millis(5));
  CHECK(charge_interval(incident_state::kBurstBytesPerSecond / 4) == Millis(250));
  CHECK(charge_interval(512UL * 1024) == Millis(125));
}

TEST_CASE("A thousand devices that fail at once are each charged once, and their pods go after a few writes") {
  Fleet fleet(125, 8);
  fleet.limits().max_in_flight = 10'000;
  fleet.limits().evictions_per_minute = 100'000;
  fleet.limits().cap_cluster = fleet.limits().cap_node =
      fleet.limits().cap_per_day = {.percent = 100, .at_least = 1000};
  fleet.send_policy();
  fleet.run_for(minutes(1), Seconds(30));
  for (int n = 0; n < 125; ++n) {
    for (int d = 0; d < 8; ++d) fleet.break_device(n, d);
  }
  fleet.run_for(Seconds(10) - Millis(1), Seconds(10));
  const auto before = std::ranges::count(fleet.writes(), "state");
  CHECK(fleet.run_for(Millis(701), Millis(100)).size() == 1000);
  CHECK(std::ranges::count(fleet.writes(), "state") - before <= 6);
}

TEST_CASE("What is written for charges stays within a share of etcd's writes, and a quiet minute leaves some over") {
  Fleet fleet(4, 8);
  fleet.policy().after = Seconds(0);
  fleet.limits().cap_cluster = fleet.limits().cap_node =
      fleet.limits().cap_per_day = {.percent = 100, .at_least = 1000};
  fleet.send_policy();
  // Kept as it is, and written with each charge.
  const StateSection future{.name = "future", .text = '"' + std::string(kUnknownLimit - 2, 'x') + '"'};
  fleet.put(state_map(state_text(IncidentStore(), {future}).text));
  fleet.restart();
  const auto break_sixteen = [&](int first_node) {
    const auto before = std::ranges::count(fleet.writes(), "state");
    for (int i = 0; i < 16; ++i) {
      fleet.break_device(first_node + i / 8, i % 8);
      fleet.run_for(Millis(100), Millis(20));
    }
    return std::ranges::count(fleet.writes(), "state") - before;
  };
  const auto share = incident_state::kStateBytesPerMinute * 1600 / 60'000 / static_cast<std::int64_t>(kUnknownLimit);
  const auto at_first = break_sixteen(0);
  CHECK(at_first <= share + 1);
  CHECK(at_first >= share - 2);
  fleet.run_for(minutes(1), Seconds(10));
  CHECK(break_sixteen(2) >= 16);
}

TEST_CASE("Whoever changes each state that we write makes us write no more often than every five seconds") {
  Fleet fleet(8, 8);
  fleet.break_device(0, 0);
  REQUIRE(fleet.run_for(Seconds(11)) == Names{"p-0-0"});
  fleet.put(state_map(fleet.state_text() + " ", "dhc"));
  int writes = 0;
  for (Millis passed{0}; passed < Seconds(20); passed += Millis(10)) {
    for (const auto& action : fleet.turn()) {
      fleet.answer(action);
      const auto* state = std::get_if<incident_state::WriteState>(&action);
      if (state == nullptr) continue;
      ++writes;
      fleet.put(state_map(state->text + " ", state->ns));
    }
    fleet.advance(Millis(10));
  }
  CHECK(writes <= 5);
  CHECK(writes >= 2);
}

TEST_CASE("A controller that restarts with every lie takes no more either") {
  Fleet fleet(3, 8);
  CHECK(fleet.break_slowly(24, minutes(2), true) == Names{"p-0-0", "p-1-0"});
}

TEST_CASE("The cluster's cap is a share of the known devices, and always allows atLeast") {
  for (const auto& [nodes, allowed] :
       std::vector<std::pair<int, std::size_t>>{{1, 2}, {5, 2}, {7, 2}, {8, 3}, {10, 4}}) {
    CAPTURE(nodes);
    Fleet fleet(nodes, 4);
    fleet.limits().cap_per_day = {.percent = 100, .at_least = 100};
    fleet.limits().cap_node = {.percent = 100, .at_least = 100};
    fleet.send_policy();
    CHECK(fleet.break_slowly(nodes * 4, Seconds(30)).size() == allowed);
  }
}

TEST_CASE("A node that lists ten thousand devices for a moment raises no cap and no brake's share") {
  Fleet fleet(3, 8);
  fleet.run_for(minutes(20), minutes(1));
  fleet.node("liar", 10'000);
  SUBCASE("for a moment") {
    fleet.settle();
    fleet.node("liar", 0);
  }
  SUBCASE("for almost long enough") {
    fleet.run_for(kCardProof - Millis(1), minutes(1));
    fleet.node("liar", 0);
  }
  SUBCASE("and a new process begins after it") {
    fleet.run_for(minutes(5), minutes(1));
    fleet.node("liar", 0);
    fleet.settle();
    fleet.restart();
  }
  SUBCASE("while a new process begins, and hardly longer") {
    fleet.restart();
    fleet.settle();
    fleet.node("liar", 0);
  }
  CHECK(fleet.break_slowly(24, minutes(2)) == Names{"p-0-0", "p-1-0"});
  const auto* held = fleet.verdict("p-2-0", Reason::CapReached);
  REQUIRE(held != nullptr);
  CHECK(held->message.starts_with("2 of 24 devices"));
}

TEST_CASE("A node that lists ten thousand devices for a moment keeps no brake from engaging") {
  for (const bool lies : {false, true}) {
    CAPTURE(lies);
    Fleet fleet(3, 8);
    fleet.limits().brake_at_least = 3;
    fleet.send_policy();
    fleet.run_for(minutes(20), minutes(1));
    fleet.node("liar", lies ? 10'000 : 0);
    fleet.settle();
    // Three of a node's eight are few, nine of 24 are not.
    for (int n = 0; n < 3; ++n) {
      for (int d = 0; d < 3; ++d) fleet.break_device(n, d);
    }
    CHECK(fleet.run_for(minutes(5), Seconds(5)).empty());
    CHECK(fleet.verdict("example.com/gpu", Reason::BrakeEngaged) != nullptr);
  }
}

TEST_CASE("Pools that a driver publishes for a moment raise no cap") {
  for (const bool is_brief : {true, false}) {
    CAPTURE(is_brief);
    Stage stage;
    stage.policy().taint = TaintRules{};
    stage.policy().evict.reset();
    stage.policy().after = Seconds(1);
    stage.limits().brake_at_least = 1000;
    stage.limits().cap_cluster = {.percent = 50, .at_least = 1};
    stage.limits().cap_node = {.percent = 100, .at_least = 100};
    stage.hold_caps();
    stage.send_policy();
    stage.node("node-a", 0);
    stage.node("liar", 0);
    stage.slice("node-a", kFourGpus);
    for (int i = 0; i < 4; ++i) {
      stage.claim(fmt::format("c-{}", i), {fmt::format("gpu-{}", i)}, fmt::format("t-{}", i));
      stage.pod({.name = fmt::format("t-{}", i),
                 .owner = fmt::format("ReplicaSet/t-{}", i),
                 .health = Health::Healthy,
                 .claim = fmt::format("c-{}", i)});
    }
    stage.run_for(minutes(20), minutes(1));
    Names many;
    for (int i = 0; i < 100; ++i) many.push_back(fmt::format("gpu-{}", i));
    stage.slice("liar", many);
    stage.run_for(is_brief ? Millis(kCardProof - Millis(1)) : kCardProof, minutes(1));
    stage.remove(k8s::Kind::ResourceSlice, "slice-liar");
    for (int i = 0; i < 4; ++i) stage.report(fmt::format("t-{}", i), Health::Unhealthy);
    stage.run_for(minutes(5));
    const auto made = std::ranges::count_if(stage.writes(), [](const auto& word) { return word.starts_with("apply"); });
    CHECK(made == (is_brief ? 2 : 4));
  }
}

TEST_CASE("A new node's devices raise the cap when they have been listed for ten minutes, and at that very moment") {
  Fleet fleet(3, 8);
  CHECK(fleet.break_slowly(3, minutes(2)) == Names{"p-0-0", "p-1-0"});
  fleet.node("more", 8);
  CHECK(fleet.run_for(kCardProof - Millis(1), minutes(1)).empty());
  const auto* held = fleet.verdict("p-2-0", Reason::CapReached);
  REQUIRE(held != nullptr);
  CHECK(held->message.starts_with(
      "2 of 32 devices of example.com/gpu in the cluster are out of service on our account (the share is of 24 until "
      "the others have been listed for 10 minutes), caps.cluster is 10 percent and at least 2: "));
  CHECK(held->next_at == fleet.now().wall + Millis(1));
  CHECK(fleet.wake_at() == fleet.now().mono + Millis(1));
  fleet.advance(Millis(1));
  CHECK(fleet.run_for(Seconds(5), Seconds(1)) == Names{"p-2-0"});
}

TEST_CASE("A new node has all its devices, of which half may go as soon as they count") {
  Fleet fleet(1, 8);
  fleet.limits().cap_cluster = {.percent = 100, .at_least = 100};
  fleet.send_policy();
  fleet.run_for(minutes(20), minutes(1));
  fleet.bad.push_back(0);
  fleet.node("node-1", 8);
  for (int d = 0; d < 8; ++d) fleet.put_pod(1, d, Health::Healthy);
  fleet.settle();
  const auto counts_at = fleet.now().wall + kCardProof;
  Names gone;
  for (int d = 0; d < 2; ++d) {
    fleet.break_device(1, d);
    for (auto& name : fleet.run_for(minutes(1))) {
      fleet.remove_pod(name);
      gone.push_back(std::move(name));
    }
  }
  CHECK(gone == Names{"p-1-0"});
  const auto* held = fleet.verdict("p-1-1", Reason::CapReached);
  REQUIRE(held != nullptr);
  CHECK(held->message.starts_with(
      "1 of 8 devices of example.com/gpu on node node-1 are out of service on our account (the share is of 2 until the "
      "others have been listed for 10 minutes), caps.node is 50 percent and at least 1: "));
  CHECK(held->next_at == counts_at);
  CHECK(fleet.run_for(std::chrono::duration_cast<Millis>(counts_at - fleet.now().wall) - Millis(1)).empty());
  fleet.advance(Millis(1));
  CHECK(fleet.run_for(Seconds(5)) == Names{"p-1-1"});
}

TEST_CASE("A plugin that lists nothing lowers the cap after a day, and over a restart at once") {
  for (const bool restarts : {false, true}) {
    CAPTURE(restarts);
    Fleet fleet(3, 8);
    fleet.node("idle", 8);
    fleet.run_for(kCardProof, minutes(1));
    fleet.node("idle", 0);
    fleet.run_for(kCardMemory - minutes(10), minutes(5));
    if (restarts) fleet.restart();
    CHECK(fleet.break_slowly(3, minutes(1)).size() == (restarts ? 2 : 3));
  }
}

TEST_CASE("A node's taint takes out of service also what its node has listed for less than ten minutes") {
  Fleet fleet(2, 4);
  fleet.policy().taint = TaintRules{.node = true};
  fleet.policy().evict.reset();
  fleet.limits().cap_cluster = {.percent = 50, .at_least = 10};
  fleet.send_policy();
  fleet.run_for(minutes(20), minutes(1));
  fleet.break_device(1, 0);
  fleet.break_device(1, 1);
  fleet.run_for(minutes(1), Seconds(5));
  fleet.per_node = 1000;
  fleet.break_device(0, 0);
  fleet.break_device(0, 1);
  fleet.run_for(minutes(1), Seconds(5));
  CHECK(deeds(fleet) == "taint node-1");
}

TEST_CASE("On one node with 1, 2, 4 and 8 devices half may go, and always one") {
  for (const auto& [devices, allowed] : std::vector<std::pair<int, std::size_t>>{{1, 1}, {2, 1}, {4, 2}, {8, 4}}) {
    CAPTURE(devices);
    Fleet fleet(1, devices);
    fleet.limits().cap_cluster = {.percent = 100, .at_least = 100};
    fleet.send_policy();
    CHECK(fleet.break_slowly(devices, minutes(1)).size() == allowed);
    if (static_cast<int>(allowed) == devices) continue;
    const auto* held = fleet.verdict(pod_of(0, devices - 1), Reason::CapReached);
    REQUIRE(held != nullptr);
    CHECK(held->message.starts_with(
        fmt::format("{} of {} devices of example.com/gpu on node node-0 are out of service", allowed, devices)));
  }
}

TEST_CASE("Evictions of a day are counted to the millisecond, and a new process counts on") {
  Fleet fleet(1, 8);
  fleet.limits().cap_cluster = {.percent = 100, .at_least = 100};
  fleet.limits().cap_node = {.percent = 100, .at_least = 100};
  fleet.limits().cap_per_day = {.percent = 5, .at_least = 2};
  fleet.send_policy();
  CHECK(fleet.break_slowly(2, minutes(1)) == Names{"p-0-0", "p-0-1"});
  fleet.break_device(0, 2);
  fleet.restart();
  CHECK(fleet.run_for(minutes(5)).empty());
  const auto* held = fleet.verdict("p-0-2", Reason::CapReached);
  REQUIRE(held != nullptr);
  CHECK(held->message.starts_with("2 pods on devices of example.com/gpu were evicted within 24 h, caps.perDay is 5 "));
  REQUIRE(held->next_at);
  fleet.advance(std::chrono::duration_cast<Millis>(*held->next_at - fleet.now().wall) - Millis(1));
  CHECK(fleet.settle().empty());
  CHECK(fleet.verdict("p-0-2", Reason::CapReached) != nullptr);
  fleet.advance(Millis(1));
  CHECK(fleet.settle() == Names{"p-0-2"});
  CHECK(fleet.verdict("p-0-2", Reason::CapReached) == nullptr);
}

TEST_CASE("A day's cap of nothing lets nobody go") {
  Fleet fleet(1, 8);
  fleet.limits().cap_per_day = {.percent = 0, .at_least = 0};
  fleet.send_policy();
  CHECK(fleet.break_slowly(2, minutes(5)).empty());
  const auto* held = fleet.verdict("p-0-0", Reason::CapReached);
  REQUIRE(held != nullptr);
  CHECK(held->message ==
        "1 pod on devices of example.com/gpu would go at once, caps.perDay is 0 percent and at least 0 of 8 known "
        "devices, which is 0 a day: raise it, or evict it yourself");
  CHECK_FALSE(held->next_at);
}

TEST_CASE("An eviction is sent when its charge is saved, and one write charges all that are due") {
  Fleet fleet(10, 8);
  for (int n = 0; n < 4; ++n) fleet.break_device(n, 0);
  CHECK(fleet.run_for(minutes(2)).size() == 4);
  const auto& writes = fleet.writes();
  const auto first = std::ranges::find(writes, "evict p-0-0");
  REQUIRE(writes.end() - first >= 4);
  CHECK(*(first - 1) == "state");
  CHECK(Names(first, first + 4) == Names{"evict p-0-0", "evict p-1-0", "evict p-2-0", "evict p-3-0"});
}

TEST_CASE("Our own state in the watch is an answer: a lost one delays no eviction") {
  for (const bool is_shown_first : {true, false}) {
    CAPTURE(is_shown_first);
    Fleet fleet(10, 8);
    fleet.break_device(0, 0);
    // The API server takes the charge, and its answer is lost.
    std::optional<Action> charge;
    while (!charge) {
      fleet.advance(Seconds(1));
      for (const auto& action : fleet.turn()) {
        const auto* state = std::get_if<incident_state::WriteState>(&action);
        if (state != nullptr && state->for_charges) {
          charge = action;
        } else {
          fleet.answer(action);
          fleet.show(action);
        }
      }
    }
    const auto show = [&] { fleet.put(state_map(std::get<incident_state::WriteState>(*charge).text)); };
    const auto lose = [&] { fleet.answer(*charge, fail(ErrorKind::TimedOut, "no answer")); };
    is_shown_first ? show() : lose();
    CHECK(evicted(fleet.turn()).empty() != is_shown_first);
    is_shown_first ? lose() : show();
    CHECK(evicted(fleet.turn()).empty() == is_shown_first);
    // Nor does the next charge wait for the answer.
    fleet.break_device(1, 0);
    CHECK(fleet.run_for(Seconds(15), Seconds(1)) == Names{"p-1-0"});
  }
}

TEST_CASE("A state that cannot be written holds every eviction, and says why") {
  Fleet fleet(3, 8);
  const auto refuse_states = [&](Millis time) {
    Names gone;
    for (Millis passed{0}; passed < time; passed += Seconds(1)) {
      for (int i = 0; i < 10; ++i) {
        const auto actions = fleet.turn();
        if (actions.empty()) break;
        for (const auto& action : actions) {
          const bool is_state = std::holds_alternative<incident_state::WriteState>(action);
          fleet.answer(action, is_state ? Status(fail(ErrorKind::Forbidden, "configmaps is forbidden")) : Status());
        }
        for (auto& name : evicted(actions)) gone.push_back(std::move(name));
      }
      fleet.advance(Seconds(1));
    }
    return gone;
  };
  fleet.break_device(0, 0);
  CHECK(refuse_states(minutes(30)).empty());
  const auto* held = fleet.verdict("p-0-0", Reason::WaitingForCharge);
  REQUIRE(held != nullptr);
  CHECK(held->message.find("Forbidden: configmaps is forbidden") != std::string::npos);
  CHECK(fleet.verdict("device-health-incidents", Reason::StateNotSaved) != nullptr);
  CHECK(fleet.run_for(minutes(30), Seconds(10)) == Names{"p-0-0"});
}

TEST_CASE("Killed between charge and eviction, again and again, the pod goes once and is charged once") {
  Fleet fleet(3, 8);
  fleet.break_device(0, 0);
  for (int i = 0; i < 20; ++i) {
    CAPTURE(i);
    bool charged = false;
    for (int turn = 0; turn < 200 && !charged; ++turn) {
      const auto actions = fleet.turn();
      REQUIRE(evicted(actions).empty());
      for (const auto& action : actions) {
        fleet.answer(action);
        const auto* state = std::get_if<incident_state::WriteState>(&action);
        if (state == nullptr) continue;
        fleet.put(state_map(state->text, state->ns));
        charged = state->text.find(R"("charges":[{)") != std::string::npos;
      }
      fleet.advance(Seconds(1));
      // The next process finds it charged and may send at once: it is killed before its first turn ends.
      if (i > 0 && turn == 0) break;
    }
    fleet.restart();
  }
  CHECK(fleet.run_for(minutes(5)) == Names{"p-0-0"});
  fleet.remove_pod("p-0-0");
  fleet.settle();
  fleet.run_for(Seconds(10));
  const auto content = parse_state(fleet.state_text());
  REQUIRE(content.caps.evictions().contains("example.com/gpu"));
  CHECK(content.caps.evictions().at("example.com/gpu").front().count == 1);
  CHECK(content.caps.charges().empty());
}

TEST_CASE("A leader that is killed after each eviction, before its answer, walks past no cap") {
  Fleet fleet(3, 8);
  fleet.limits().cap_cluster = {.percent = 100, .at_least = 100};
  fleet.limits().cap_node = {.percent = 100, .at_least = 100};
  fleet.send_policy();
  for (int n = 0; n < 3; ++n) {
    for (int d = 0; d < 8; ++d) fleet.break_device(n, d);
  }
  Names gone;
  for (int life = 0; life < 40; ++life) {
    for (auto& name : fleet.kill_after_eviction()) gone.push_back(std::move(name));
  }
  CHECK(gone.size() <= 4);
  CHECK(gone.size() >= 1);
}

TEST_CASE("A leader that is killed after an eviction, before its loss is written, leaves the replacement in peace") {
  Fleet fleet(1, 8);
  fleet.break_device(0, 0);
  REQUIRE(fleet.kill_after_eviction() == Names{"p-0-0"});
  fleet.settle();
  fleet.pod({.name = "p-0-0-again",
             .node = "node-0",
             .owner = "ReplicaSet/rs-0-0",
             .device = "gpu-0",
             .health = Health::Unhealthy});
  CHECK(fleet.run_for(minutes(30), Seconds(5)).empty());
  CHECK(fleet.reasons("p-0-0-again").find("ReplacementOnSameDevice") != std::string::npos);
  fleet.restart();
  CHECK(fleet.run_for(minutes(20), Seconds(5)).empty());
  CHECK(fleet.run_for(minutes(15), Seconds(5)) == Names{"p-0-0-again"});
}

TEST_CASE("A pod with several bad devices is charged once and goes once") {
  Fleet fleet(1, 8);
  auto& pod = fleet.pod_named("p-0-0");
  pod.allocated = {{std::string(kGpu), {{"gpu-0", Health::Healthy, ""}, {"gpu-x", Health::Healthy, ""}}}};
  fleet.upsert_pod("p-0-0");
  fleet.settle();
  fleet.break_device(0, 0);
  CHECK(fleet.run_for(minutes(2)) == Names{"p-0-0"});
  const auto content = parse_state(fleet.state_text());
  CHECK(content.caps.charges().empty());
  REQUIRE(content.caps.evictions().contains("example.com/gpu"));
  CHECK(content.caps.evictions().at("example.com/gpu").front().count == 1);
}

TEST_CASE("What a budget refuses uses up no cap, and others go meanwhile") {
  Fleet fleet(3, 8);
  fleet.limits().cap_per_day = {.percent = 0, .at_least = 1};
  fleet.send_policy();
  fleet.break_device(0, 0);
  Names gone;
  const auto pass = [&](Millis time) {
    for (Millis passed{0}; passed < time; passed += Seconds(1)) {
      for (int i = 0; i < 10; ++i) {
        const auto actions = fleet.turn();
        if (actions.empty()) break;
        for (const auto& action : actions) {
          const auto* evict = std::get_if<eviction::EvictPod>(&action);
          if (evict != nullptr && evict->name == "p-0-0") {
            fleet.answer(action, fail(ErrorKind::Blocked, "the budget says no"));
            continue;
          }
          fleet.answer(action);
          if (evict != nullptr) {
            fleet.remove_pod(evict->name);
            gone.push_back(evict->name);
          }
          const auto* state = std::get_if<incident_state::WriteState>(&action);
          if (state != nullptr) fleet.put(state_map(state->text, state->ns));
        }
      }
      fleet.advance(Seconds(1));
    }
  };
  pass(minutes(2));
  CHECK(fleet.verdict("p-0-0", Reason::BlockedByBudget) != nullptr);
  fleet.break_device(1, 0);
  pass(minutes(2));
  CHECK(gone == Names{"p-1-0"});
  fleet.restart();
  pass(minutes(2));
  CHECK(gone == Names{"p-1-0"});
  CHECK(fleet.verdict("p-0-0", Reason::CapReached) != nullptr);
}

TEST_CASE("A device that is Healthy again, or acknowledged, counts no more") {
  for (const bool acknowledged : {false, true}) {
    CAPTURE(acknowledged);
    Fleet fleet(3, 8);
    fleet.policy().recover.healthy_for = minutes(1);
    fleet.send_policy();
    CHECK(fleet.break_slowly(3, minutes(2)) == Names{"p-0-0", "p-1-0"});
    REQUIRE(fleet.verdict("p-2-0", Reason::CapReached) != nullptr);
    if (acknowledged) {
      auto node = fleet.node_named("node-0");
      node.meta.annotations = {{std::string(kAcknowledgeAnnotation), format_rfc3339(fleet.now().wall)}};
      fleet.put(node);
    } else {
      fleet.put_pod(0, 0, Health::Healthy);  // a new pod on the repaired device
      fleet.node("node-0", 8, 8);
    }
    CHECK(fleet.run_for(minutes(5), Seconds(5)) == Names{"p-2-0"});
  }
}

TEST_CASE("An operator releases the cluster's caps for what was done up to a time, and a node's on the node") {
  Fleet fleet(3, 8);
  CHECK(fleet.break_slowly(5, minutes(2)).size() == 2);
  fleet.whole_policy().cap_release = "2062-01-01T00:00:00Z";
  fleet.send_policy();
  CHECK(fleet.run_for(minutes(2)).empty());
  const auto* refused = fleet.verdict("configuration", Reason::AnnotationRefused);
  REQUIRE(refused != nullptr);
  CHECK(
      refused->message.starts_with("annotation device-health.io/cap-release has no effect: 2062-01-01T00:00:00Z is "
                                   "ahead of the controller's clock"));
  fleet.whole_policy().cap_release = "soon";
  fleet.send_policy();
  CHECK(fleet.run_for(minutes(1)).empty());
  CHECK(fleet.verdict("configuration", Reason::AnnotationRefused) != nullptr);
  fleet.whole_policy().cap_release = format_rfc3339(fleet.now().wall + Seconds(30));
  fleet.send_policy();
  CHECK(fleet.run_for(Seconds(29)).empty());
  CHECK(fleet.run_for(Seconds(2)).size() == 2);
  CHECK(fleet.verdict("configuration", Reason::AnnotationRefused) == nullptr);
  CHECK(fleet.run_for(minutes(10), Seconds(10)).empty());

  Fleet one(1, 2);
  one.limits().cap_cluster = {.percent = 100, .at_least = 100};
  one.send_policy();
  CHECK(one.break_slowly(2, minutes(1)).size() == 1);
  one.annotate_node("node-0", "2062-01-01T00:00:00Z");
  CHECK(one.run_for(minutes(1)).empty());
  CHECK(one.verdict("node-0", Reason::AnnotationRefused) != nullptr);
  one.annotate_node("node-0", format_rfc3339(one.now().wall));
  CHECK(one.run_for(minutes(1)).size() == 1);
}

/// Four devices of one driver, of a node or (of_network) of none that is known, each held by a pod that calls it bad.
struct FourBadGpus : Stage {
  explicit FourBadGpus(bool of_network = false) {
    policy().taint = TaintRules{};
    policy().evict.reset();
    policy().after = Seconds(1);
    policy().recover.healthy_for = minutes(1);
    limits().brake_at_least = 1000;
    whole_policy().own_namespace = "dhc";
    hold_caps();
    send_policy();
    node("node-a", 0);
    node("node-b", 0);
    slice("node-b", kFourGpus);
    if (!of_network) slice("node-a", kFourGpus);
    for (int i = 0; i < 4; ++i) {
      claim(fmt::format("c-{}", i), {fmt::format("gpu-{}", i)}, fmt::format("t-{}", i));
      pod({.name = fmt::format("t-{}", i),
           .owner = fmt::format("ReplicaSet/t-{}", i),
           .health = Health::Unhealthy,
           .claim = fmt::format("c-{}", i)});
    }
  }
};

TEST_CASE("New taints count against the caps, and taints are removed all the same") {
  // The devices of a pool that nobody publishes belong to no known node, as those of the network.
  for (const bool of_network : {false, true}) {
    CAPTURE(of_network);
    FourBadGpus stage(of_network);
    stage.run_for(minutes(5));
    CHECK(deeds(stage) == "apply NoSchedule gpu-0, apply NoSchedule gpu-1");
    stage.restart();
    stage.run_for(minutes(5));
    CHECK(deeds(stage) == "apply NoSchedule gpu-0, apply NoSchedule gpu-1");
    CHECK(std::ranges::count(stage.verdicts(), Reason::CapReached, &Verdict::reason) == 2);
    // The caps become none: what stands goes all the same when its device is well, and nothing new comes.
    stage.limits().cap_cluster = {.percent = 0, .at_least = 0};
    stage.send_policy();
    stage.report("t-0", Health::Healthy);
    stage.run_for(minutes(3));
    CHECK(deeds(stage) == "apply NoSchedule gpu-0, apply NoSchedule gpu-1, delete gpu-0");
  }
}

TEST_CASE("A taint that has been seen counts as long as it stands, and its request no longer") {
  FourBadGpus stage;
  stage.policy().recover.healthy_for = Seconds(10);
  stage.send_policy();
  stage.run_for(Seconds(10));
  REQUIRE(deeds(stage) == "apply NoSchedule gpu-0, apply NoSchedule gpu-1");
  stage.report("t-0", Health::Healthy);
  stage.run_for(Seconds(20));
  CHECK(deeds(stage) == "apply NoSchedule gpu-0, apply NoSchedule gpu-1, delete gpu-0, apply NoSchedule gpu-2");
}

TEST_CASE("A node's taint takes all its devices out of service: one node always, another within the cluster's cap") {
  const auto taints = [](std::int64_t percent) {
    Fleet fleet(4, 4);
    fleet.policy().taint = TaintRules{.node = true};
    fleet.policy().evict.reset();
    fleet.limits().cap_cluster = {.percent = percent, .at_least = 2};
    fleet.send_policy();
    for (int n = 0; n < 4; ++n) {
      fleet.break_device(n, 0);
      fleet.break_device(n, 1);
    }
    fleet.run_for(minutes(5), Seconds(5));
    return deeds(fleet);
  };
  CHECK(taints(10) == "taint node-0");
  CHECK(taints(49) == "taint node-0");
  CHECK(taints(50) == "taint node-0, taint node-1");
  CHECK(taints(100) == "taint node-0, taint node-1, taint node-2, taint node-3");
}

TEST_CASE("A node's taint that has been seen counts as long as it stands, and its request no longer") {
  Fleet fleet(4, 4);
  fleet.policy().taint = TaintRules{.node = true};
  fleet.policy().evict.reset();
  fleet.policy().recover.healthy_for = Seconds(10);
  fleet.limits().cap_cluster = {.percent = 10, .at_least = 2};
  fleet.send_policy();
  for (const int n : {0, 1}) {
    fleet.break_device(n, 0);
    fleet.break_device(n, 1);
  }
  fleet.run_for(Seconds(15));
  REQUIRE(deeds(fleet) == "taint node-0");
  fleet.put_pod(0, 0, Health::Healthy);
  fleet.put_pod(0, 1, Health::Healthy);
  fleet.run_for(Seconds(60));
  CHECK(deeds(fleet) == "taint node-0, untaint node-0, taint node-1");
}

TEST_CASE("Replicas of one card are one device") {
  Stage stage;
  stage.limits() = {
      .evictions_per_minute = 6000, .max_in_flight = 100, .per_node = 100, .per_owner = 100, .brake_at_least = 1000};
  stage.policy().evict->no_replacement_wait = Seconds(0);  // every device is held
  stage.hold_caps();
  stage.send_policy();
  stage.node("node-a", 8, 4);  // two cards of four replicas
  for (int i = 0; i < 8; ++i) {
    stage.pod({.name = fmt::format("p-{}", i),
               .owner = fmt::format("ReplicaSet/{}", i),
               .device = fmt::format("GPU-{}::{}", i / 4, i % 4),
               .health = Health::Unhealthy});
  }
  // Of two cards one may go, with all the pods that share it.
  const auto gone = stage.run_for(minutes(5));
  CHECK(gone == Names{"p-0", "p-1", "p-2", "p-3"});
}

TEST_CASE("Outside a cluster charges are in memory") {
  Fleet fleet(3, 8);
  fleet.whole_policy().own_namespace.clear();
  fleet.restart();
  CHECK(fleet.break_slowly(24, minutes(2)) == Names{"p-0-0", "p-1-0"});
  CHECK(fleet.state_text().empty());
}

TEST_CASE(
    "An eviction whose answer was lost counts against the day until it is known, and does not hold its own retry") {
  Fleet fleet(2, 8);
  fleet.limits().cap_cluster = {.percent = 100, .at_least = 100};
  fleet.limits().cap_per_day = {.percent = 0, .at_least = 1};
  fleet.send_policy();
  fleet.answer_evictions([](const auto&) { return fail(ErrorKind::TimedOut, "no answer"); });
  fleet.break_device(0, 0);
  fleet.run_for(Seconds(20));
  CHECK(std::ranges::count(fleet.writes(), "evict p-0-0") == 1);
  fleet.break_device(1, 0);
  fleet.run_for(minutes(5));
  CHECK(std::ranges::count(fleet.writes(), "evict p-0-0") >= 2);
  CHECK(std::ranges::count(fleet.writes(), "evict p-1-0") == 0);
  CHECK(fleet.verdict("p-1-0", Reason::CapReached) != nullptr);
}

TEST_CASE("A pod is charged for the device that it goes for, which the next process knows") {
  Fleet fleet(1, 8);
  fleet.limits().cap_node = {.percent = 100, .at_least = 100};
  fleet.send_policy();
  const auto say = [&](Health first, Health second) {
    auto& pod = fleet.pod_named("p-0-0");
    pod.allocated.front().devices = {{"gpu-0", first, {}}, {"gpu-8", second, {}}};
    fleet.upsert_pod("p-0-0");
  };
  fleet.node("node-0", 9, 8);
  fleet.answer_evictions([](const auto&) { return fail(ErrorKind::Blocked, "the budget says no"); });
  say(Health::Unhealthy, Health::Healthy);
  fleet.run_for(minutes(1));
  CHECK(std::ranges::count(fleet.writes(), "evict p-0-0") >= 1);
  REQUIRE(fleet.state_text().find(R"("device":"gpu-0","node":"node-0")") != std::string::npos);
  say(Health::Healthy, Health::Unhealthy);
  REQUIRE(fleet.kill_after_eviction() == Names{"p-0-0"});
  CHECK(fleet.state_text().find(R"("device":"gpu-8","node":"node-0")") != std::string::npos);
  fleet.answer_evictions([](const auto&) { return Status{}; });
  fleet.pod({.name = "again",
             .node = "node-0",
             .owner = "ReplicaSet/rs-0-0",
             .device = "gpu-8",
             .health = Health::Unhealthy});
  CHECK(fleet.run_for(minutes(30), Seconds(5)).empty());
}

}  // namespace dhc::test
