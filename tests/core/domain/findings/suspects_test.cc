#include "domain/findings/suspects.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "domain/contract/ground_names.h"
#include "domain/incidents/suspect_state.h"

namespace dhc {

namespace {

using std::chrono::hours;
using std::chrono::minutes;

const std::string kBroken = "gpu.example.com";
const OwnerInScope kPoison{"ml/Deployment/poison", kBroken};

WallTime morning(Millis later = Millis(0)) {
  return WallTime(std::chrono::sys_days(std::chrono::year(2026) / 11 / 20)) + hours(8) + later;
}

/// The GPU of this number, eight a node, broke under the workload.
DeviceOnset broken(int number, Millis later, const std::string& workload = kPoison.first, double scope = 0.02,
                   double node = 0.125) {
  const auto name = fmt::format("node-{}", number / 8);
  return {.card = DeviceKey::dra(kBroken, name, fmt::format("gpu-{}", number % 8)),
          .node = name,
          .at = morning(later),
          .named_at = morning(later),
          .since = morning(later) - minutes(1),
          .well = 5,
          .workloads = {{workload, {.scope = scope, .node = node}}},
          .images = {}};
}

const OwnerInScope kImage{"ml/container image/registry.example.com/train:7", kBroken};

/// Under the Job of this number, which ran the image.
DeviceOnset broken_by_image(int number, int job, double scope = 0.02) {
  auto onset = broken(number * 8, hours(number), fmt::format("ml/Job/train-{}", job), 0.005);
  onset.images.emplace(kImage.first, OwnerShare{.scope = scope, .node = 0.125});
  return onset;
}

bool is_image_suspected(const std::vector<int>& jobs, double scope = 0.02, std::vector<Bystander> tenants = {}) {
  Suspects suspects;
  for (int i = 0; const int job : jobs) suspects.note(broken_by_image(i++, job, scope));
  SuspectHearing hearing;
  hearing.now = {.mono = MonoTime(hours(100)), .wall = morning(hours(jobs.size()))};
  hearing.tell_tenants = [&](const auto& /*image*/, const auto& /*scope*/, const auto& is_enough) {
    (void)std::ranges::any_of(tenants, is_enough);
  };
  hearing.on_bad = {kImage};
  (void)suspects.judge(hearing);
  return suspects.find(kImage.first, kBroken) != nullptr;
}

SuspectHearing heard(Millis later, std::size_t least = 3, std::set<OwnerInScope> on_bad = {kPoison}) {
  return {.least = least,
          .on_bad = std::move(on_bad),
          .acknowledged = {},
          .released = {},
          .now = {.mono = MonoTime(hours(100)) + later, .wall = morning(later)}};
}

/// Three nodes, an hour apart.
Suspects convicted() {
  Suspects suspects;
  for (int i = 0; i < 3; ++i) suspects.note(broken(i * 8, hours(i)));
  CHECK(suspects.judge(heard(hours(2))).size() == 3);
  return suspects;
}

const OwnerInScope kBadNode{ground_of_node("node-7"), kBroken};
const OwnerInScope kBadRelease{ground_of_release({.ns = "kube-system", .name = "gpu-driver", .revision = "6d4f"}),
                               kBroken};

/// The GPU of this number broke under a workload of its own, and has its node in common with seven others.
DeviceOnset broken_there(int number, Millis later, double scope = 0.03, const std::string& workload = {},
                         double of_workload = 1) {
  const auto alone = fmt::format("ml/Job/of-{}", number);
  auto onset = broken(number, later, workload.empty() ? alone : workload);
  onset.grounds.emplace(ground_of_node(onset.node), GroundShare{.scope = scope, .workload = of_workload});
  return onset;
}

/// Likewise, under the release.
DeviceOnset broken_by_release(int number, Millis later, double scope) {
  auto onset = broken_there(number, later);
  onset.grounds.emplace(kBadRelease.first, GroundShare{.scope = scope});
  return onset;
}

bool knows(const Suspects& suspects, const OwnerInScope& who) {
  return suspects.find(who.first, who.second) != nullptr;
}

/// Three devices of node-7, an hour apart.
Suspects with_bad_node() {
  Suspects suspects;
  for (int i = 0; i < 3; ++i) suspects.note(broken_there(56 + i, hours(i)));
  CHECK(suspects.judge(heard(hours(2), 3, {kBadNode})).empty());
  REQUIRE(knows(suspects, kBadNode));
  return suspects;
}

bool is_suspected(const Suspects& suspects) { return suspects.find(kPoison.first, kBroken) != nullptr; }

}  // namespace

TEST_CASE("a small workload under which the third device breaks is suspected, with the evidence") {
  Suspects suspects;
  suspects.note(broken(0, hours(0)));
  suspects.note(broken(8, hours(1)));
  CHECK(suspects.judge(heard(hours(1))).empty());
  CHECK_FALSE(is_suspected(suspects));
  suspects.note(broken(16, hours(2)));
  const auto excused = suspects.judge(heard(hours(2)));
  REQUIRE(excused.size() == 3);
  CHECK(excused.front().card == broken(0, hours(0)).card);
  REQUIRE(is_suspected(suspects));
  const auto& suspicion = *suspects.find(kPoison.first, kBroken);
  CHECK(suspicion.since == morning(hours(2)));
  CHECK(suspicion.evidence ==
        "since 2026-11-20T08:00:00Z 3 devices of gpu.example.com broke under it on 3 nodes, where others held 15 that "
        "were well; it holds at most 2.0 percent of them: gpu.example.com/node-0/gpu-0, gpu.example.com/node-1/gpu-0, "
        "gpu.example.com/node-2/gpu-0");
  CHECK(suspects.judge(heard(hours(3))).empty());
}

TEST_CASE("more devices may be asked for, and none at all is never suspected") {
  for (const std::size_t least : {std::size_t(4), std::size_t(0)}) {
    Suspects suspects;
    for (int i = 0; i < 3; ++i) suspects.note(broken(i * 8, hours(i)));
    CHECK(suspects.judge(heard(hours(2), least)).empty());
    CHECK_FALSE(is_suspected(suspects));
  }
  auto suspects = convicted();
  CHECK(suspects.judge(heard(hours(3), 0)).empty());
  CHECK_FALSE(is_suspected(suspects));
}

TEST_CASE("the same device three times is one device, whatever replica of it was reported") {
  Suspects suspects;
  for (int i = 0; i < 3; ++i) suspects.note(broken(0, hours(i)));
  CHECK(suspects.judge(heard(hours(2))).empty());
}

TEST_CASE("who holds much breaks much: its share decides, and above 30 percent counts alone never do") {
  const auto is_suspected_with = [](double share, int devices) {
    Suspects suspects;
    for (int i = 0; i < devices; ++i) suspects.note(broken(i * 8, hours(i), kPoison.first, share));
    (void)suspects.judge(heard(hours(devices)));
    return is_suspected(suspects);
  };
  CHECK(is_suspected_with(0.031, 3));
  CHECK_FALSE(is_suspected_with(0.032, 3));
  CHECK(is_suspected_with(0.05, 4));
  CHECK_FALSE(is_suspected_with(0.3, 6));
  CHECK(is_suspected_with(0.3, 7));
  CHECK_FALSE(is_suspected_with(0.301, 60));
}

TEST_CASE("what breaks under others too speaks for hardware") {
  Suspects suspects;
  for (int i = 0; i < 40; ++i) suspects.note(broken(100 + i * 8, minutes(i), fmt::format("ml/Job/other-{}", i)));
  for (int i = 0; i < 3; ++i) suspects.note(broken(i * 8, hours(i)));
  CHECK(suspects.judge(heard(hours(2))).empty());
}

TEST_CASE("a bad node is not its tenant's fault") {
  Suspects suspects;
  // It holds all of the node, whose devices break one after the other.
  for (int i = 0; i < 8; ++i) suspects.note(broken(i, hours(i), kPoison.first, 0.02, 1));
  CHECK(suspects.judge(heard(hours(8))).empty());
  Suspects half;
  for (int i = 0; i < 4; ++i) half.note(broken(i, hours(i), kPoison.first, 0.02, 0.5));
  CHECK(half.judge(heard(hours(8))).empty());
}

TEST_CASE("one of eight on a node under which five break is suspected, although all are on that node") {
  Suspects suspects;
  for (int i = 0; i < 4; ++i) suspects.note(broken(i, hours(i)));
  CHECK(suspects.judge(heard(hours(4))).empty());
  suspects.note(broken(4, hours(4)));
  CHECK(suspects.judge(heard(hours(4))).size() == 5);
}

TEST_CASE("a bad release of the driver is not the fault of who holds the nodes that have it first") {
  Suspects suspects;
  for (int i = 0; i < 5; ++i) suspects.note(broken(i * 8, hours(i), kPoison.first, 0.29));
  CHECK(suspects.judge(heard(hours(5))).empty());
}

TEST_CASE("a device that breaks under others too is itself the cause, and counts against nobody") {
  Suspects suspects;
  suspects.note(broken(0, -hours(5), "ml/Job/other"));
  for (int i = 0; i < 3; ++i) suspects.note(broken(i * 8, hours(i)));
  CHECK(suspects.judge(heard(hours(2))).empty());
  suspects.note(broken(24, hours(3)));
  const auto excused = suspects.judge(heard(hours(3)));
  REQUIRE(excused.size() == 3);
  for (const auto& onset : excused) CHECK(onset.card != broken(0, hours(0)).card);
}

TEST_CASE("a device is excused once, also after its workload was cleared") {
  auto suspects = convicted();
  auto cleared = heard(hours(4));
  cleared.acknowledged[kPoison.first] = morning(hours(3));
  CHECK(suspects.judge(cleared).empty());
  CHECK_FALSE(is_suspected(suspects));
  for (int i = 0; i < 4; ++i) suspects.note(broken(i * 8, hours(5 + i)));
  const auto excused = suspects.judge(heard(hours(9)));
  REQUIRE(excused.size() == 1);
  CHECK(excused.front().card == broken(24, hours(0)).card);
}

TEST_CASE("a word for the workload clears what broke up to then, and nothing that breaks later") {
  auto suspects = convicted();
  auto early = heard(hours(2));
  early.acknowledged[kPoison.first] = morning(hours(2)) - Millis(1);
  CHECK(suspects.judge(early).empty());
  CHECK(is_suspected(suspects));
  auto cleared = heard(hours(4));
  cleared.acknowledged[kPoison.first] = morning(hours(2));
  CHECK(suspects.judge(cleared).empty());
  CHECK_FALSE(is_suspected(suspects));
  // Its pods still hold devices that broke before: their incidents open now.
  for (int i = 0; i < 3; ++i) {
    auto onset = broken(40 + i * 8, hours(4));
    onset.since = morning(hours(1));
    suspects.note(onset);
  }
  CHECK(suspects.judge(cleared).empty());
  for (int i = 0; i < 3; ++i) suspects.note(broken(80 + i * 8, hours(5)));
  auto later = heard(hours(6));
  later.acknowledged = cleared.acknowledged;
  CHECK(suspects.judge(later).size() == 3);
}

TEST_CASE("an operator's release clears every workload") {
  auto suspects = convicted();
  auto hearing = heard(hours(4));
  hearing.released = morning(hours(3));
  CHECK(suspects.judge(hearing).empty());
  CHECK_FALSE(is_suspected(suspects));
}

TEST_CASE("a day without a bad device ends the suspicion, to the millisecond, and a bad one starts it anew") {
  auto suspects = convicted();
  CHECK(suspects.next_change_at() == morning(hours(24 * 7)));  // when the first device counts no more
  (void)suspects.judge(heard(hours(3), 3, {}));
  CHECK(suspects.next_change_at() == morning(hours(27)));
  (void)suspects.judge(heard(hours(10)));
  CHECK(suspects.next_change_at() == morning(hours(24 * 7)));  // when the first device counts no more
  (void)suspects.judge(heard(hours(11), 3, {}));
  (void)suspects.judge(heard(hours(35) - Millis(1), 3, {}));
  CHECK(is_suspected(suspects));
  (void)suspects.judge(heard(hours(35), 3, {}));
  CHECK_FALSE(is_suspected(suspects));
  (void)suspects.judge(heard(hours(36)));
  CHECK_FALSE(is_suspected(suspects));
}

TEST_CASE("what is a week old counts no more, and a clock that was ahead holds nothing for longer") {
  Suspects suspects;
  suspects.note(broken(0, hours(0)));
  suspects.note(broken(8, hours(24 * 7) - Millis(1)));
  suspects.note(broken(16, hours(24 * 7)));
  CHECK(suspects.judge(heard(hours(24 * 7))).empty());
  Suspects ahead;
  ahead.note(broken(0, hours(24 * 365)));
  (void)ahead.judge(heard(hours(0)));
  (void)ahead.judge(heard(hours(24 * 7)));
  CHECK(ahead.onsets().empty());
}

TEST_CASE("the order in which incidents are told changes nothing, nor does telling them twice") {
  std::vector<int> order = {0, 1, 2, 3};
  std::string first;
  do {
    Suspects suspects;
    for (const int i : order) suspects.note(broken(i * 8, hours(i)));
    const auto revision = suspects.revision();
    for (const int i : order) suspects.note(broken(i * 8, hours(i)));
    CHECK(suspects.revision() == revision);
    (void)suspects.judge(heard(hours(4)));
    const auto text = suspect_state_text(suspects);
    CHECK((first.empty() || text == first));
    first = text;
  } while (std::ranges::next_permutation(order).found);
}

TEST_CASE("no more than the newest incidents are remembered, and no more than they fit is written") {
  Suspects suspects;
  for (int i = 0; i < 1000; ++i) {
    suspects.note(broken(i, Seconds(i), fmt::format("ml/Job/{}-{}", std::string(300, 'x'), i)));
  }
  CHECK(suspects.onsets().size() == Suspects::kMost);
  CHECK(suspects.onsets().front().at == morning(Seconds(700)));
  const auto text = suspect_state_text(suspects);
  CHECK(text.size() <= kSuspectStateLimit);
  const auto read = parse_suspect_state(text);
  REQUIRE_FALSE(read.onsets().empty());
  CHECK(read.onsets().size() < Suspects::kMost);
  CHECK(read.onsets().back() == suspects.onsets().back());
}

TEST_CASE("however many workloads are suspected, the newest are written down, and some incidents") {
  std::map<OwnerInScope, Suspicion> suspicions;
  for (int i = 0; i < 300; ++i) {
    suspicions[{fmt::format("ml/Deployment/{}", i), kBroken}] = {
        .since = morning(Seconds(i)), .clean_since = {}, .evidence = std::string(1000, 'e')};
  }
  Suspects suspects;
  suspects.load({broken(0, hours(0)), broken(8, hours(1))}, suspicions);
  const auto text = suspect_state_text(suspects);
  CHECK(text.size() <= kSuspectStateLimit);
  const auto read = parse_suspect_state(text);
  CHECK(read.suspicions().size() > 100);
  CHECK(read.suspicions().size() < 300);
  CHECK(read.find("ml/Deployment/299", kBroken) != nullptr);
  CHECK(read.find("ml/Deployment/0", kBroken) == nullptr);
  CHECK(read.onsets() == suspects.onsets());
  // Those that fit in full are told in full.
  while (suspicions.size() > 30) suspicions.erase(suspicions.begin());
  suspects.load({}, suspicions);
  CHECK(parse_suspect_state(suspect_state_text(suspects)).suspicions() == suspicions);
}

TEST_CASE("a restart changes nothing: who is suspected, since when, and what was excused") {
  auto suspects = convicted();
  (void)suspects.judge(heard(hours(3), 3, {}));
  auto read = parse_suspect_state(suspect_state_text(suspects));
  CHECK(read.onsets() == suspects.onsets());
  CHECK(read.suspicions() == suspects.suspicions());
  CHECK(read.judge(heard(hours(4), 3, {})).empty());
  CHECK(read.suspicions() == suspects.suspicions());
}

TEST_CASE("of a damaged section what can be read stands") {
  for (const std::string text :
       {"", "[]", "1", "{\"incidents\":1}", "{\"incidents\":[{}],\"suspicions\":[1,{}]}", "{\"x"}) {
    const auto read = parse_suspect_state(text);
    CHECK(read.onsets().empty());
    CHECK(read.suspicions().empty());
  }
  auto text = suspect_state_text(convicted());
  const auto at = text.find("\"workloads\":{");
  REQUIRE(at != std::string::npos);
  text.replace(at, 13, "\"workloads\":[");
  CHECK(parse_suspect_state(text).onsets().empty());
}

TEST_CASE("an image is suspected if it is enough without the workload that broke most, and three broke any") {
  CHECK(is_image_suspected({0, 1, 2, 3}));
  CHECK_FALSE(is_image_suspected({0, 1, 2}));           // two are left without the largest
  CHECK_FALSE(is_image_suspected({0, 0, 0, 0, 1, 2}));  // so they are here
  CHECK_FALSE(is_image_suspected({0, 0, 0, 1, 1, 1}));  // two workloads
  CHECK(is_image_suspected({0, 0, 0, 1, 2, 3}));
  CHECK_FALSE(is_image_suspected({0, 1, 2, 3}, 0.1));  // who runs on much breaks much
}

TEST_CASE("an image is not suspected while it left out, again and again, those that run it") {
  const auto tenant = [](const std::string& name, Millis since, double share) {
    return Bystander{.workload = "ml/Deployment/" + name, .since = morning(since), .share = share};
  };
  CHECK(is_image_suspected({0, 1, 2, 3}, 0.02, {tenant("a", hours(-1), 0.01)}));          // a half, four times: 0.0625
  CHECK_FALSE(is_image_suspected({0, 1, 2, 3}, 0.02, {tenant("a", hours(-1), 0.0106)}));  // 0.047
  CHECK(is_image_suspected({0, 1, 2, 3}, 0.02, {tenant("a", hours(2), 0.0106)}));  // it was not there at the first
  auto guilty = tenant("a", hours(-1), 0.015);
  guilty.workload = "ml/Job/train-1";
  CHECK(is_image_suspected({0, 1, 2, 3}, 0.02, {guilty}));
}

TEST_CASE("a device that breaks twice with one image is no cause by itself, with two it is") {
  const auto suspects_of = [](bool same) {
    Suspects suspects;
    for (int i = 0; i < 4; ++i) {
      suspects.note(broken_by_image(i, i));
      auto again = broken_by_image(i, i + 10);
      again.at += hours(20);
      if (!same) {
        again.images.clear();
        again.images.emplace("ml/container image/other", OwnerShare{.scope = 0.02, .node = 0.125});
      }
      suspects.note(again);
    }
    (void)suspects.judge(heard(hours(40)));
    return suspects.find(kImage.first, kBroken) != nullptr;
  };
  CHECK(suspects_of(true));
  CHECK_FALSE(suspects_of(false));
}

TEST_CASE("a word for an image clears it, and a restart changes nothing of what is known of it") {
  Suspects suspects;
  for (int i = 0; i < 4; ++i) suspects.note(broken_by_image(i, i));
  CHECK(suspects.judge(heard(hours(4), 3, {kImage})).size() == 4);
  auto read = parse_suspect_state(suspect_state_text(suspects));
  CHECK(read.onsets() == suspects.onsets());
  CHECK(read.suspicions() == suspects.suspicions());
  auto cleared = heard(hours(6), 3, {kImage});
  cleared.acknowledged[kImage.first] = morning(hours(5));
  CHECK(read.judge(cleared).empty());
  CHECK(read.find(kImage.first, kBroken) == nullptr);
  CHECK(std::ranges::all_of(read.onsets(), [](const auto& onset) { return onset.images.empty(); }));
}

TEST_CASE("a node of which the third device breaks under as many workloads is suspected, and nobody is excused by it") {
  Suspects suspects;
  suspects.note(broken_there(56, hours(0)));
  suspects.note(broken_there(57, hours(1)));
  CHECK(suspects.judge(heard(hours(1))).empty());
  CHECK_FALSE(knows(suspects, kBadNode));
  suspects.note(broken_there(58, hours(2)));
  CHECK(suspects.judge(heard(hours(2))).empty());
  REQUIRE(knows(suspects, kBadNode));
  CHECK(suspects.suspicions().size() == 1);
  CHECK(std::ranges::none_of(suspects.onsets(), &DeviceOnset::excused));
  CHECK(suspects.find(kBadNode.first, kBroken)->evidence ==
        "since 2026-11-20T08:00:00Z 3 devices of gpu.example.com broke there under 3 workloads, where others held 5 "
        "that were well; it has at most 3.0 percent of those that are held: gpu.example.com/node-7/gpu-0, "
        "gpu.example.com/node-7/gpu-1, gpu.example.com/node-7/gpu-2");
}

TEST_CASE("a node is suspected by its share, and above 30 percent never") {
  const auto is_suspected_with = [](double share, int devices, std::size_t least = 3) {
    Suspects suspects;
    for (int i = 0; i < devices; ++i) suspects.note(broken_there(56 + i, hours(i), share));
    (void)suspects.judge(heard(hours(devices), least));
    return knows(suspects, kBadNode);
  };
  CHECK(is_suspected_with(0.031, 3));
  CHECK_FALSE(is_suspected_with(0.032, 3));
  CHECK_FALSE(is_suspected_with(0.031, 3, 4));
  CHECK_FALSE(is_suspected_with(0.031, 3, 0));
  CHECK(is_suspected_with(0.3, 7));
  CHECK_FALSE(is_suspected_with(0.301, 8));
}

TEST_CASE("what breaks on other nodes too speaks for hardware, and one device that breaks often is one device") {
  Suspects suspects;
  for (int i = 0; i < 20; ++i) suspects.note(broken_there(100 + i * 8, minutes(i)));
  for (int i = 0; i < 3; ++i) suspects.note(broken_there(56 + i, hours(i + 1)));
  (void)suspects.judge(heard(hours(4)));
  CHECK(suspects.suspicions().empty());
  Suspects often;
  for (int i = 0; i < 9; ++i) often.note(broken_there(56, hours(i), 0.03, fmt::format("ml/Job/{}", i)));
  (void)often.judge(heard(hours(9)));
  CHECK(often.suspicions().empty());
}

TEST_CASE("a node is not suspected for one workload: of that each further device was to be expected where it is") {
  const auto is_suspected_under = [](const std::vector<std::string>& workloads, double of_workload) {
    Suspects suspects;
    for (int i = 0; const auto& workload : workloads) {
      auto onset = broken_there(56 + i, hours(i), 0.03, workload, of_workload);
      ++i;
      onset.workloads.begin()->second.node = 1;
      suspects.note(onset);
    }
    (void)suspects.judge(heard(hours(8)));
    return knows(suspects, kBadNode);
  };
  const std::vector<std::string> one(8, "ml/Job/train");
  CHECK_FALSE(is_suspected_under(one, 1));  // it is nowhere else
  CHECK(is_suspected_under(one, 0.1));      // it is on nine other nodes, and breaks nothing there
  CHECK_FALSE(is_suspected_under({"ml/Job/a", "ml/Job/a", "ml/Job/a", "ml/Job/b"}, 1));
  CHECK(is_suspected_under({"ml/Job/a", "ml/Job/a", "ml/Job/b", "ml/Job/c"}, 1));
  // Likewise under ever new workloads that run one image.
  for (const auto share : {1.0, 0.03}) {
    Suspects suspects;
    for (int i = 0; i < 5; ++i) {
      auto onset = broken_there(56 + i, hours(i));
      onset.images.emplace(kImage.first, OwnerShare{.scope = 0.31, .node = 1});
      onset.grounds.begin()->second.image = share;
      suspects.note(onset);
    }
    (void)suspects.judge(heard(hours(8)));
    CHECK(knows(suspects, kBadNode) == (share < 1));
  }
}

TEST_CASE("what is put down to a workload does not speak against the node as well") {
  Suspects suspects;
  for (int i = 0; i < 3; ++i) {
    suspects.note(broken_there(i == 0 ? 56 : i * 8, hours(i), 0.03, kPoison.first, 0.1));
  }
  CHECK(suspects.judge(heard(hours(2))).size() == 3);
  for (int i = 1; i < 3; ++i) suspects.note(broken_there(56 + i, hours(2 + i)));
  (void)suspects.judge(heard(hours(5)));
  CHECK_FALSE(knows(suspects, kBadNode));
  // What it breaks later is put down to it too, although nobody takes it back.
  auto later = broken_there(59, hours(5), 0.03, kPoison.first, 0.1);
  suspects.note(later);
  (void)suspects.judge(heard(hours(5)));
  CHECK_FALSE(knows(suspects, kBadNode));
  suspects.note(broken_there(60, hours(6)));
  (void)suspects.judge(heard(hours(6)));
  CHECK(knows(suspects, kBadNode));
}

TEST_CASE("a node was never to be suspected once a workload is of what broke there") {
  Suspects suspects;
  suspects.note(broken_there(56, hours(0), 0.03, kPoison.first, 0.05));
  suspects.note(broken_there(57, hours(1), 0.03, kPoison.first, 0.05));
  suspects.note(broken_there(58, hours(2)));
  suspects.note(broken_there(59, hours(3)));
  (void)suspects.judge(heard(hours(3)));
  REQUIRE(knows(suspects, kBadNode));
  CHECK_FALSE(is_suspected(suspects));
  for (int i = 1; i < 3; ++i) {
    suspects.note(broken_there(i * 8, hours(3 + i), 0.03, kPoison.first, 0.05));
    (void)suspects.judge(heard(hours(3 + i), 3, {kPoison, kBadNode}));
    CHECK(knows(suspects, kBadNode));
  }
  suspects.note(broken_there(24, hours(6), 0.03, kPoison.first, 0.05));
  CHECK(suspects.judge(heard(hours(6), 3, {kPoison, kBadNode})).size() == 5);
  CHECK(is_suspected(suspects));
  CHECK_FALSE(knows(suspects, kBadNode));
}

TEST_CASE("a release is suspected over three nodes, and each node speaks against it once") {
  const auto is_suspected_with = [](double share, const std::vector<int>& devices) {
    Suspects suspects;
    for (int i = 0; const int device : devices) suspects.note(broken_by_release(device, hours(i++), share));
    CHECK(suspects.judge(heard(hours(10))).empty());
    return knows(suspects, kBadRelease);
  };
  CHECK(is_suspected_with(0.03, {0, 8, 16}));
  CHECK_FALSE(is_suspected_with(0.03, {0, 8}));
  CHECK_FALSE(is_suspected_with(0.03, {0, 1, 2, 3}));
  CHECK_FALSE(is_suspected_with(0.0005, {0, 1, 8}));  // by its share alone it would be
  CHECK_FALSE(is_suspected_with(0.1, {0, 8, 16, 17, 18, 19}));
  CHECK(is_suspected_with(0.1, {0, 8, 16, 24, 32}));
  CHECK_FALSE(is_suspected_with(0.301, {0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80}));
}

TEST_CASE("where all broke on one node it is named, and not its release, whose evidence is a count of nodes") {
  Suspects there;
  for (int i = 0; i < 4; ++i) there.note(broken_by_release(56 + i, hours(i), 0.03));
  (void)there.judge(heard(hours(4)));
  CHECK(knows(there, kBadNode));
  CHECK_FALSE(knows(there, kBadRelease));
  Suspects suspects;
  for (int i = 0; i < 3; ++i) suspects.note(broken_by_release(i * 8, hours(i), 0.03));
  (void)suspects.judge(heard(hours(3)));
  REQUIRE(knows(suspects, kBadRelease));
  CHECK(suspects.find(kBadRelease.first, kBroken)
            ->evidence.starts_with("since 2026-11-20T08:00:00Z 3 devices of gpu.example.com broke on 3 nodes where it "
                                   "runs, under 3 workloads; it serves at most 3.0 percent of those that are held: "));
}

TEST_CASE("a device that broke under another release too is itself the cause") {
  Suspects suspects;
  suspects.note(broken_there(0, -hours(5)));  // before the release came
  for (int i = 0; i < 3; ++i) suspects.note(broken_by_release(i * 8, hours(i), 0.03));
  (void)suspects.judge(heard(hours(3)));
  CHECK_FALSE(knows(suspects, kBadRelease));
  suspects.note(broken_by_release(24, hours(4), 0.01));
  suspects.note(broken_by_release(32, hours(5), 0.01));
  (void)suspects.judge(heard(hours(5)));
  CHECK(knows(suspects, kBadRelease));
}

TEST_CASE("a node's suspicion ends after a day without a bad device, by a word on the node, and by the caps' release") {
  auto suspects = with_bad_node();
  (void)suspects.judge(heard(hours(3), 3, {}));
  CHECK(suspects.next_change_at() == morning(hours(27)));
  (void)suspects.judge(heard(hours(27) - Millis(1), 3, {}));
  CHECK(knows(suspects, kBadNode));
  (void)suspects.judge(heard(hours(27), 3, {}));
  CHECK_FALSE(knows(suspects, kBadNode));
  (void)suspects.judge(heard(hours(28), 3, {kBadNode}));
  CHECK_FALSE(knows(suspects, kBadNode));

  auto looked_at = with_bad_node();
  auto hearing = heard(hours(3), 3, {kBadNode});
  hearing.acknowledged[kBadNode.first] = morning(hours(2)) - Millis(1);
  (void)looked_at.judge(hearing);
  CHECK(knows(looked_at, kBadNode));
  hearing.acknowledged[kBadNode.first] = morning(hours(2));
  (void)looked_at.judge(hearing);
  CHECK_FALSE(knows(looked_at, kBadNode));
  // What broke up to then is not held against it; against the workloads it still is.
  CHECK(looked_at.onsets().size() == 3);
  for (const auto& onset : looked_at.onsets()) CHECK(onset.grounds.empty());

  // Also what broke before it was suspected.
  Suspects early;
  for (int i = 0; i < 2; ++i) early.note(broken_there(56 + i, hours(i)));
  hearing = heard(hours(1));
  hearing.acknowledged[kBadNode.first] = morning(hours(1));
  (void)early.judge(hearing);
  early.note(broken_there(58, hours(2)));
  (void)early.judge(heard(hours(2)));
  CHECK_FALSE(knows(early, kBadNode));

  auto released = with_bad_node();
  hearing = heard(hours(3), 3, {kBadNode});
  hearing.released = morning(hours(3));
  (void)released.judge(hearing);
  CHECK_FALSE(knows(released, kBadNode));
}

TEST_CASE(
    "a restart changes nothing of what is known of nodes and releases, and what knows none of them reads the rest") {
  auto suspects = with_bad_node();
  for (int i = 0; i < 3; ++i) suspects.note(broken_by_release(i * 8, hours(3 + i), 0.005));
  suspects.note(broken(80, hours(7)));  // of before there were any
  (void)suspects.judge(heard(hours(8), 3, {kBadNode, kBadRelease}));
  REQUIRE(knows(suspects, kBadRelease));
  const auto text = suspect_state_text(suspects);
  CHECK(text.starts_with(R"({"suspicions":[],"incidents":[{)"));
  auto read = parse_suspect_state(text);
  CHECK(read.onsets() == suspects.onsets());
  CHECK(read.suspicions() == suspects.suspicions());
  CHECK(read.judge(heard(hours(9), 3, {kBadNode, kBadRelease})).empty());
  CHECK(read.suspicions() == suspects.suspicions());
  // A node under a workload's name, or the other way round, is nobody's.
  for (const auto& [from, to] :
       {std::pair(std::string("at node/"), std::string("ml/Job/")),
        std::pair(std::string("\"grounds\":[{\"workload\""), std::string("\"suspicions\":[{\"workload\""))}) {
    auto other = text;
    other.replace(other.find(from), from.size(), to);
    CHECK_FALSE(knows(parse_suspect_state(other), kBadNode));
    CHECK(parse_suspect_state(other).find("ml/Job/node-7", kBroken) == nullptr);
  }
}

TEST_CASE("with many nodes suspected no more than fits is written, and a workload's suspicion before a node's") {
  std::map<OwnerInScope, Suspicion> suspicions;
  for (int i = 0; i < 600; ++i) {
    suspicions[{ground_of_node(fmt::format("node-{}", i)), kBroken}] = {
        .since = morning(Seconds(i)), .clean_since = {}, .evidence = std::string(1000, 'e')};
  }
  suspicions[kPoison] = {.since = morning(), .clean_since = {}, .evidence = "e"};
  Suspects suspects;
  suspects.load({broken_there(0, hours(0))}, suspicions);
  const auto text = suspect_state_text(suspects);
  CHECK(text.size() <= kSuspectStateLimit);
  const auto read = parse_suspect_state(text);
  CHECK(is_suspected(read));
  CHECK(knows(read, {ground_of_node("node-599"), kBroken}));
  CHECK_FALSE(knows(read, {ground_of_node("node-0"), kBroken}));
  CHECK(read.onsets() == suspects.onsets());
}

TEST_CASE("what broke and who is suspected of it is written before anything of nodes and releases") {
  Suspects suspects;
  for (int i = 0; i < 300; ++i) {
    auto onset = broken(i, hours(0) + Seconds(i));
    for (int release = 0; release < 16; ++release) {
      onset.grounds.emplace(
          ground_of_release({.ns = "kube-system", .name = fmt::format("plugin-{}", release), .revision = "6d4f7c9b8"}),
          GroundShare{.scope = 0.01, .workload = 1, .image = 1});
    }
    suspects.note(onset);
  }
  Suspects plain;
  for (int i = 0; i < 300; ++i) plain.note(broken(i, hours(0) + Seconds(i)));
  const auto text = suspect_state_text(suspects);
  CHECK(text.size() <= kSuspectStateLimit);
  const auto as_without = parse_suspect_state(suspect_state_text(plain)).onsets().size();
  CHECK(as_without >= 100);
  CHECK(parse_suspect_state(text).onsets().size() == as_without);
}

TEST_CASE("whoever vouches for a workload leaves nothing that would convict its node instead") {
  const auto node_of_its_own = [] {
    Suspects suspects;
    for (int i = 0; i < 3; ++i) {
      auto onset = broken_there(56 + i, hours(i));
      onset.workloads = {{"ml/StatefulSet/web", OwnerShare{.scope = 0.03, .node = 1}}};
      for (auto& [ground, share] : onset.grounds) share.workload = 1;
      suspects.note(onset);
    }
    return suspects;
  };
  auto suspects = node_of_its_own();
  (void)suspects.judge(heard(hours(3)));
  REQUIRE_FALSE(knows(suspects, kBadNode));
  auto hearing = heard(hours(4));
  hearing.acknowledged["ml/StatefulSet/web"] = morning(hours(3));
  (void)suspects.judge(hearing);
  CHECK_FALSE(knows(suspects, kBadNode));
  auto read = parse_suspect_state(suspect_state_text(suspects));
  (void)read.judge(heard(hours(5)));
  CHECK_FALSE(knows(read, kBadNode));
  suspects.note(broken_there(59, hours(6)));
  (void)suspects.judge(heard(hours(6)));
  CHECK_FALSE(knows(suspects, kBadNode));
}

TEST_CASE("how likely chance is: none, one, all of them") {
  CHECK(chance_of_at_least(0, {}) == 1);
  CHECK(chance_of_at_least(1, {}) == 0);
  CHECK(chance_of_at_least(1, {0.5, 0.5}) == doctest::Approx(0.75));
  CHECK(chance_of_at_least(2, {0.5, 0.25}) == doctest::Approx(0.125));
  CHECK(chance_of_at_least(2, {1, 1, 0.5}) == doctest::Approx(1));
}

}  // namespace dhc
