#include "cli/demo_play.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/demo_screen.h"
#include "simulator/controllers/state.h"
#include "simulator/direct_transport.h"
#include "tests/support/shell/no_credentials.h"

namespace {
using namespace dhc;
using namespace dhc::cli;
using Words = std::vector<std::string>;

/// An act without sockets: its cluster is asked directly.
struct Theatre {
  explicit Theatre(std::string_view name, std::uint64_t seed = 1)
      : act(*find_act(name)),
        clock(demo_beginning()),
        cluster(seed, clock()),
        play(act, seed,
             {.with_cluster = [this](const DemoPlace::Work& work) { work(cluster); },
              .client = k8s::Client(std::make_shared<sim::DirectTransport>(cluster, [this] { return clock(); }),
                                    std::make_shared<test::NoCredentials>(), "demo"),
              .clock = clock},
             policy_of(act).value()) {}

  /// Ctrl-C may come after every moment: each time the account must add up.
  void check_account() {
    const auto sum = play.sum();
    ++moments;
    const bool is_complete = sum.reported == sum.replaced + sum.leaving + sum.well + sum.kept;
    if (!sum.wrong.empty() || !is_complete) FAIL(text << sum.text());
    interrupted = interrupted || sum.leaving + sum.kept > 0;
  }

  /// To the end.
  void watch() {
    check_account();
    while (!play.is_over()) {
      const auto lines = play.next();
      note_time(lines);
      for (const auto& line : lines) {
        words.emplace_back(line.word);
        text += painted(line, {});
      }
      check_account();
    }
    shown_for += act.longest_wait;
    CHECK(moments > 10);
  }

  void note_time(const std::vector<DemoLine>& lines) {
    if (lines.empty()) return;
    if (last) shown_for += shown_wait(act, std::chrono::duration_cast<Millis>(lines.front().at - *last));
    shown_for += kForLine * static_cast<int>(lines.size() - 1);
    last = lines.front().at;
  }

  const DemoAct& act;
  DemoClock clock;
  sim::Cluster cluster;
  DemoPlay play;
  Millis shown_for = kForHeading;  ///< What it takes a reader at speed 1.
  std::optional<WallTime> last;
  Words words;
  std::string text;
  std::size_t moments = 0;
  bool interrupted = false;  ///< An account was made while something was under way.
};

/// Each act for two seeds: it is not the first one's luck. At speed 1 it takes about half a minute.
template <class Check>
void watch(const char* name, Check check) {
  for (const std::uint64_t seed : {1U, 2U}) {
    CAPTURE(seed);
    Theatre theatre(name, seed);
    theatre.watch();
    CAPTURE(theatre.text);
    CHECK(theatre.interrupted);
    CAPTURE(theatre.shown_for.count());
    CHECK(theatre.shown_for >= Seconds(20));
    CHECK(theatre.shown_for <= Seconds(45));
    check(theatre, theatre.play.sum());
  }
}
}  // namespace

TEST_CASE(
    "act dra: taint, credit, eviction and a replacement on a named device, for a Job's pod, and no credit otherwise") {
  watch("dra", [](const Theatre& theatre, const DemoSum& sum) {
    CHECK(theatre.words ==
          Words{"BROKE", "TAINTED", "CREDITED", "EVICTED", "RUNNING", "BROKE", "TAINTED", "EVICTED", "RUNNING"});
    CHECK(sum.replaced == 2);
    CHECK(sum.reported == 2);
    CHECK(sum.credits == 1);
    CHECK(sum.taints == 2);
  });
}

TEST_CASE("act plugin: a failed device's pod moves, and the pod of a device that is back within after stays") {
  watch("plugin", [](const Theatre& theatre, const DemoSum& sum) {
    CHECK(theatre.words == Words{"BROKE", "EVICTED", "RUNNING", "BROKE", "HEALTHY"});
    CHECK(sum.replaced == 1);
    CHECK(sum.well == 1);
    CHECK(sum.taints == 0);
  });
}

TEST_CASE("act budget: the budget holds the pod until it is changed") {
  watch("budget", [](const Theatre& theatre, const DemoSum& sum) {
    CHECK(theatre.words == Words{"BROKE", "TAINTED", "HOLDS", "OPERATOR", "EVICTED", "RUNNING"});
    CHECK(theatre.text.find("BlockedByBudget") != std::string::npos);
    CHECK(sum.replaced == 1);
    CHECK(sum.reported == 1);
  });
}

TEST_CASE("act flapping: the third incident is a quarantine, which only an operator ends") {
  watch("flapping", [](const Theatre& theatre, const DemoSum& sum) {
    CHECK(theatre.words == Words{"BROKE", "TAINTED", "HEALTHY", "UNTAINTED", "BROKE", "TAINTED", "HEALTHY", "UNTAINTED",
                                 "BROKE", "TAINTED", "QUARANTINE", "HEALTHY", "OPERATOR", "UNTAINTED"});
    CHECK(sum.well == 1);
    CHECK(sum.reported == 1);
    CHECK(sum.untaints == 3);
  });
}

TEST_CASE("act brake: a driver that calls a whole node bad has nobody evicted and nothing tainted") {
  watch("brake", [](const Theatre& theatre, const DemoSum& sum) {
    CHECK(theatre.words == Words{"BROKE", "BRAKE", "OPERATOR", "HEALTHY", "RELEASED"});
    CHECK(sum.well == sum.reported);
    CHECK(sum.reported >= 1);
    CHECK(sum.taints == 0);
  });
}

TEST_CASE("act recovery: the hold ends the taint, and on probation one report brings it back at once") {
  watch("recovery", [](const Theatre& theatre, const DemoSum& sum) {
    CHECK(theatre.words == Words{"BROKE", "TAINTED", "EVICTED", "RUNNING", "UNTAINTED", "PROBATION", "OPERATOR",
                                 "TAINTED", "HOLDS", "HEALTHY", "OPERATOR", "UNTAINTED"});
    CHECK(theatre.text.find("NoReplacementDevice") != std::string::npos);
    CHECK(sum.replaced == 1);
    CHECK(sum.well == 1);
  });
}

TEST_CASE("act guilty: what broke under one Job is put down to it, taken back, and its pod stays without a credit") {
  watch("guilty", [](const Theatre& theatre, const DemoSum& sum) {
    Words expected;
    for (int i = 0; i < 3; ++i) {
      expected.insert(expected.end(), {"BROKE", "TAINTED", "CREDITED", "EVICTED", "RUNNING", "HEALTHY"});
    }
    expected.insert(expected.end(), {"BROKE", "UNTAINTED", "UNTAINTED", "UNTAINTED", "SUSPECTED", "PROBATION",
                                     "PROBATION", "PROBATION", "HOLDS", "HEALTHY", "OPERATOR"});
    CHECK(theatre.words == expected);
    std::vector<std::string> told;
    for (const auto& [name, event] : theatre.cluster.store().all(sim::Res::Events)) {
      if (sim::text(*event, {"reason"}) != "WorkloadSuspected") continue;
      CHECK(sim::text(*event, {"note"}).contains("Job default/miner is suspected"));
      told.push_back(sim::text(*event, {"regarding", "kind"}) + " " + sim::text(*event, {"regarding", "name"}));
    }
    std::ranges::sort(told);
    REQUIRE(told.size() == 2);
    CHECK(told.front() == "Job miner");
    CHECK(told.back().starts_with("Pod miner-"));
    CHECK(sum.replaced == 3);
    CHECK(sum.well == 1);
    CHECK(sum.credits == 3);
    CHECK(sum.taints == 3);
    CHECK(sum.untaints == 3);
  });
}

TEST_CASE("the README shows the first act as it is told") {
  Theatre theatre("dra");
  theatre.watch();
  std::ifstream file("README.md");
  std::stringstream readme;
  readme << file.rdbuf();
  CHECK(readme.str().find(heading(demo_acts().front(), 1, demo_acts().size(), {}) + theatre.text) != std::string::npos);
  CHECK(readme.str().find(theatre.play.sum().text()) != std::string::npos);
}

TEST_CASE("the same seed tells the same story in each act, another seed another") {
  const auto told = [](std::string_view act, std::uint64_t seed) {
    Theatre theatre(act, seed);
    theatre.watch();
    return theatre.text + theatre.play.sum().text();
  };
  for (const auto& act : demo_acts()) {
    CAPTURE(act.name);
    CHECK(told(act.name, 7) == told(act.name, 7));
  }
  CHECK(told("plugin", 7) != told("plugin", 8));
}

TEST_CASE("each act has a name, a number and a configuration that the program's own parser warns of nothing in") {
  std::size_t number = 0;
  for (const auto& act : demo_acts()) {
    CAPTURE(act.name);
    CHECK(find_act(act.name) == &act);
    CHECK(find_act(std::to_string(++number)) == &act);
    const auto policy = policy_of(act);
    REQUIRE(policy);
    CHECK(policy->policies.front().mode == Mode::Enforce);
    CHECK(act_names().find(act.name) != std::string::npos);
  }
  CHECK(find_act("0") == nullptr);
  CHECK(find_act(std::to_string(number + 1)) == nullptr);
  CHECK(find_act("1x") == nullptr);
  CHECK(find_act("") == nullptr);
}

namespace {
/// What an account says of a pod that somebody evicts so many times, whose device is Unhealthy or not.
DemoSum sum_of_evictions(bool is_bad, int times) {
  Now now = demo_beginning();
  sim::Cluster cluster(1, now);
  const auto pass = [&](Millis time) {
    for (const auto end = now.mono + time; now.mono < end; now = {now.mono + Millis(100), now.wall + Millis(100)}) {
      cluster.step(now);
    }
  };
  cluster.add_node({.name = "node-a", .plugins = {{"example.com/gpu", 2}}, .drivers = {}, .labels = {}});
  sim::PodShape shape;
  shape.resource = "example.com/gpu";
  cluster.create_deployment("default", "web", 1, shape);
  pass(Seconds(10));
  DemoLedger ledger;
  const auto name = cluster.pod_names("default").at(0);
  if (is_bad) {
    cluster.set_device_health("node-a", "GPU-0", "Unhealthy");
    ledger.befell({.what = DemoEvent::What::Broke,
                   .devices = {{.node = "node-a", .device = "GPU-0", .kind = "example.com/gpu"}},
                   .said = {},
                   .holders = {"default/" + name}});
    pass(Seconds(5));
  }
  CHECK(ledger.look(cluster).empty());
  const auto count = ledger.sum({}).reported;
  CHECK(count == (is_bad ? 1 : 0));
  for (int i = 0; i < times; ++i) {
    k8s::Request request;
    request.method = k8s::Method::Post;
    request.target = "/api/v1/namespaces/default/pods/" + name + "/eviction";
    request.headers = {{"Content-Type", "application/json"}};
    request.body = R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":")" + name + R"("}})";
    CHECK(cluster.handle(request, now).status == 201);
  }
  pass(Millis(100));
  (void)ledger.look(cluster);
  return ledger.sum({});
}
}  // namespace

TEST_CASE("an eviction of a pod whose device nobody has reported bad is wrong") {
  const auto sum = sum_of_evictions(false, 1);
  REQUIRE(sum.wrong.size() == 1);
  CHECK(sum.wrong.front().find("nobody had reported") != std::string::npos);
  CHECK(sum.text().find("NOT what should have happened") != std::string::npos);
}

TEST_CASE("a pod that is evicted twice is wrong, once is right") {
  CHECK(sum_of_evictions(true, 1).wrong.empty());
  const auto sum = sum_of_evictions(true, 2);
  REQUIRE(sum.wrong.size() == 1);
  CHECK(sum.wrong.front().find("evicted twice") != std::string::npos);
}

TEST_CASE("a pod that stays on a bad device without a word of the controller is wrong") {
  const auto sum = sum_of_evictions(true, 0);
  REQUIRE(sum.wrong.size() == 1);
  CHECK(sum.wrong.front().find("says nothing") != std::string::npos);
}

TEST_CASE("lines are aligned: what happens to a device is one row, cut at the edge, what is explained goes on below") {
  const auto at = demo_beginning().wall;
  const std::string words = "one two three four five six seven eight nine ten eleven twelve thirteen";
  DemoLine line{.at = at, .tone = DemoTone::Bad, .word = "BROKE", .text = words};
  CHECK(painted(line, {.is_coloured = false, .width = 60}) ==
        "08:58:00 BROKE      one two three four five six seven ei...\n");
  line.is_wrapped = true;
  CHECK(painted(line, {.is_coloured = false, .width = 60}) ==
        "08:58:00 BROKE      one two three four five six seven eight\n"
        "                    nine ten eleven twelve thirteen\n");
  const auto coloured = painted(line, {.is_coloured = true, .width = 120});
  CHECK(coloured.starts_with("08:58:00 \x1b["));
  CHECK(coloured.find("BROKE     \x1b[0m one") != std::string::npos);
}
