#include "domain/incidents/state_caps.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "domain/contract/names.h"
#include "domain/contract/state_names.h"
#include "domain/incidents/state_text.h"
#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

using std::chrono::minutes;

namespace {

constexpr WallTime kStart{Seconds(1'800'000'000)};

DeviceKey device(int i) {
  return DeviceKey::plugin(fmt::format("node-{}", i / 8), "nvidia.com/gpu",
                           fmt::format("GPU-{:08x}-0000-0000-0000-{:012x}", i, i));
}

CapBook book_of(int evicted, int tainted, int charges) {
  CapBook book;
  for (int i = 0; i < evicted + tainted; ++i) {
    book.recall(device(i), {.node = device(i).place, .at = kStart, .evicted = i < evicted});
  }
  for (int i = 0; i < charges; ++i) {
    book.recall(EvictionCharge{.pod_uid = fmt::format("{:08x}-0000-0000-0000-000000000000", i),
                               .key = device(i),
                               .node = device(i).place,
                               .at = kStart});
  }
  for (int i = 0; i < 144; ++i) {
    book.recall("nvidia.com/gpu",
                EvictionCount{.first = kStart + minutes(10 * i), .last = kStart + minutes(10 * i + 5), .count = 3});
  }
  return book;
}

std::int64_t evictions_in(const CapBook& book) {
  std::int64_t sum = 0;
  for (const auto& [scope, counts] : book.evictions()) {
    for (const auto& count : counts) sum += count.count;
  }
  return sum;
}

CapBook read_back(const std::string& text, std::size_t expected_bad = 0) {
  std::size_t bad = 0;
  auto book = read_caps(nlohmann::ordered_json::parse(text), bad);
  CHECK(bad == expected_bad);
  return book;
}

const std::string kNewer = R"({"version":3,"devices":{"of":"another shape"}})";

}  // namespace

TEST_CASE("What counts against the caps is read back as it was written") {
  const auto book = book_of(3, 2, 2);
  CHECK(read_back(caps_text(book)) == book);
  CHECK(caps_text(CapBook()).empty());
  IncidentStore incidents;
  incidents.load({}, {}, book);
  const auto content = parse_state(state_text(incidents).text);
  CHECK_FALSE(content.damage);
  CHECK(content.caps == book);
}

TEST_CASE("Of 10,000 devices the state keeps within its limit, and the caps within theirs") {
  std::vector<DeviceRecord> records;
  for (int i = 0; i < 10'000; ++i) {
    DeviceRecord record;
    record.key = device(i);
    record.past.incidents = {{kStart, std::string(120, 'x')}};
    record.past.penalty = 1;
    IncidentFacts facts;
    facts.since = kStart;
    facts.opened_at = kStart;
    record.incident = Incident::going_on(facts, false, Acknowledged::No);
    if (i % 2 == 0) record.ours.rule.see("uid");
    records.push_back(std::move(record));
  }
  const auto book = book_of(1'000, 9'000, 100);
  IncidentStore incidents;
  incidents.load(records, {}, book);
  const auto written = state_text(incidents);
  CHECK(written.text.size() <= kStateLimit);
  CHECK(written.left_out > 0);
  const auto content = parse_state(written.text);
  CHECK_FALSE(content.damage);
  CHECK(caps_text(book).size() <= kCapsLimit);
  // The taints tell of what they keep out of service; nothing else does of the rest.
  CHECK(content.caps.out().size() == 1'000);
  CHECK(content.caps.charges().size() == 100);
  CHECK(evictions_in(content.caps) == 3 * 144);
}

TEST_CASE("Counts become one before an eviction is forgotten, and none is forgotten early") {
  const auto full = book_of(0, 0, 0);
  const auto book = read_back(caps_text(full, 200));
  REQUIRE(book.evictions().at("nvidia.com/gpu").size() == 1);
  const auto& one = book.evictions().at("nvidia.com/gpu").front();
  CHECK(one.count == 3 * 144);
  CHECK(one.first == kStart);
  CHECK(one.last == kStart + minutes(10 * 143 + 5));
}

TEST_CASE("A book without room charges no more") {
  int devices = 1000;
  while (size_of_caps(book_of(devices, 0, 0)) < kCapsLimit) devices += 100;
  CHECK(devices > 1500);
  CHECK(caps_text(book_of(devices, 0, 0)).size() <= kCapsLimit);
  CHECK(size_of_caps(book_of(100, 9'900, 0)) < kCapsLimit);
}

TEST_CASE("Pods that go at once have room, and beside them the devices that they leave") {
  struct LongNames {
    std::string node;
    std::string workload;
    std::size_t at_least = 0;
  };
  for (const auto& [node, workload, at_least] :
       {LongNames{"gpu-{}", "Job/train/job-{}", 800},
        LongNames{"ip-10-0-0-{}.eu-central-1.compute.internal", "Job/team-research/pretrain-{}", 600}}) {
    CAPTURE(node);
    CapBook book;
    CapsSize size(book);
    for (int i = 0; i < static_cast<int>(CapBook::kMostCharges); ++i) {
      const auto key = DeviceKey::plugin(fmt::format(fmt::runtime(node), i), "nvidia.com/gpu", device(i).device);
      EvictionCharge charge{.pod_uid = fmt::format("{:08x}-0000-0000-0000-000000000000", i),
                            .key = key,
                            .node = key.place,
                            .at = kStart,
                            .loser = fmt::format("team-research/{:08x}-1111-1111-1111-111111111111", i),
                            .workload = fmt::format(fmt::runtime(workload), i)};
      size.add(charge);
      if (size.bytes() > kCapsLimit) break;
      book.charge(charge);
    }
    CHECK(book.charges().size() >= at_least);
    CHECK(caps_text(book).size() <= size_of_caps(book));
    CHECK(read_back(caps_text(book)).charges().size() == book.charges().size());
    // They have gone, and some stay for as long as their programs take.
    const auto charges = book.charges();
    for (auto [uid, charge] : charges) {
      charge.counted = true;
      book.charge(charge);
      book.recall(charge.key, {.node = charge.node, .at = kStart, .evicted = true});
    }
    CHECK(caps_text(book).size() <= kCapsLimit);
    CHECK(caps_text(book).size() <= size_of_caps(book));
  }
}

TEST_CASE("What charges take is counted as they come and go, in whatever order") {
  CapBook book;
  CapsSize size(book);
  const auto empty = size.bytes();
  std::vector<EvictionCharge> charges;
  for (int i = 0; i < 12; ++i) {
    charges.push_back({.pod_uid = fmt::format("uid-{}", i),
                       .key = device(i),
                       .node = device(i).place,
                       .at = kStart + Millis(700 * (i % 4))});
    size.add(charges.back());
    book.charge(charges.back());
    CHECK(size.bytes() == size_of_caps(book));
  }
  for (int i : {5, 0, 11, 1, 2, 10, 3, 9, 4, 8, 6, 7}) {
    const auto& charge = charges.at(static_cast<std::size_t>(i));
    size.drop(charge);
    book.drop(charge.pod_uid);
    CHECK(size.bytes() == size_of_caps(book));
  }
  CHECK(size.bytes() == empty);
}

TEST_CASE("Charges and devices are read back however much they have in common") {
  CapBook book;
  for (int i = 0; i < 64; ++i) {
    const auto bit = [i](int n) { return (i >> n) % 2 == 1; };
    auto key = bit(0) ? DeviceKey::dra("gpu.example.com", "pool", fmt::format("gpu-{}", i)) : device(i);
    EvictionCharge charge{.pod_uid = fmt::format("uid-{}", i),
                          .key = key,
                          .node = bit(1) ? "elsewhere" : key.place,
                          .at = kStart + Seconds(i % 3)};
    if (bit(2)) charge.loser = "owner";
    if (bit(3)) charge.workload = "Job/a/b";
    if (bit(4)) charge.gang = "PodGroup/a/g";
    if (bit(4)) charge.gang_size = 4;
    if (bit(5)) charge.half_since = kStart;
    charge.counted = bit(5) && bit(1);
    book.recall(charge);
    book.recall(key, {.node = charge.node, .at = charge.at, .evicted = bit(2)});
  }
  const auto text = caps_text(book);
  CHECK(read_back(text) == book);
  CHECK(text.size() <= size_of_caps(book));
  // One that cannot be read takes no other with it.
  auto json = nlohmann::ordered_json::parse(text);
  json["charges"][0]["pods"]["damaged"] = 7;
  json["out"][0]["places"].push_back({{"place", "n"}, {"evicted", 7}});
  std::size_t bad = 0;
  CHECK(read_caps(json, bad) == book);
  CHECK(bad == 2);
}

TEST_CASE("All devices that a pod of two whole claims may have gone for are read back") {
  for (const int devices : {9, 32, 64}) {
    CAPTURE(devices);
    CapBook book;
    EvictionCharge charge{.pod_uid = "uid", .key = device(0), .node = device(0).place, .at = kStart};
    for (int i = 0; i < devices; ++i) {
      charge.may_be.push_back(
          DeviceKey::dra("gpu.example.com", fmt::format("pool-{}", i / 32), fmt::format("gpu-{:02}", i)));
    }
    charge.key.source = DeviceKey::Source::Dra;
    book.recall(charge);
    const auto text = caps_text(book);
    CHECK(read_back(text) == book);
    CHECK(text.size() <= size_of_caps(book));
  }
}

TEST_CASE("Devices that an earlier version wrote place by place are read") {
  const auto book = read_back(
      R"({"out":[{"source":"dra","scope":"d","place":"p","node":"n","evicted":{"gpu":"2026-11-20T12:00:00Z"}}]})");
  REQUIRE(book.out().size() == 1);
  CHECK(book.out().begin()->first == DeviceKey::dra("d", "p", "gpu"));
  CHECK(book.out().begin()->second.node == "n");
}

TEST_CASE("The candidates of a charge that an earlier version wrote one by one are read") {
  const auto book = read_back(
      R"({"charges":[{"pod":"uid","source":"dra","scope":"d","place":"p","device":"c/gpu","node":"n",)"
      R"("at":"2026-11-20T12:00:00Z","mayBe":[{"scope":"d","place":"p","device":"a"},7,{"scope":"d","place":"p"},)"
      R"({"scope":"d","place":"p","devices":7},{"scope":"d","place":"q","device":"b"}]}]})");
  CHECK(book.charges().at("uid").may_be == std::vector{DeviceKey::dra("d", "p", "a"), DeviceKey::dra("d", "q", "b")});
}

TEST_CASE("Where room is short the longest unused charges give way, and none of a pod that goes now or has counted") {
  IncidentStore incidents;
  CapBook book;
  RequestTracker requests;
  const Now now{.mono = MonoTime(minutes(30)), .wall = kStart + minutes(30)};
  EvictionCharge charge{.pod_uid = "counted", .key = device(0), .node = device(0).place, .at = kStart};
  charge.counted = true;
  book.charge(charge);
  charge.counted = false;
  for (int i = 0; size_of_caps(book) <= kCapsLimit; ++i) {
    charge.pod_uid = fmt::format("unused-{:04}", i);
    charge.node = std::string(500, 'n');
    charge.at = kStart + Seconds(1 + i % 7);
    book.charge(charge);
  }
  incidents.load({}, {}, book);
  charge.pod_uid = "new";
  charge.at = now.wall;
  incidents.charge({charge}, {"unused-0007"}, requests, now);
  CHECK(size_of_caps(incidents.caps()) <= kCapsLimit);
  CHECK(incidents.caps().charges().size() + 3 >= book.charges().size());
  CHECK(incidents.caps().charges().contains("new"));
  CHECK(incidents.caps().charges().contains("counted"));
  CHECK_FALSE(incidents.caps().charges().contains("unused-0000"));
  CHECK(incidents.caps().charges().contains("unused-0007"));
  CHECK(incidents.caps().charges().contains("unused-0001"));
}

TEST_CASE("Entries of the caps that are none of ours are damage, and the others stand") {
  const std::string good = R"({"scope":"r","first":"2026-11-20T12:00:00Z","last":"2026-11-20T12:00:00Z","count":2})";
  for (const std::string bad :
       {R"({"scope":"r"})", R"(1)",
        R"({"scope":"r","first":"2026-11-20T12:00:00Z","last":"2026-11-20T11:00:00Z","count":2})",
        R"({"scope":"r","first":"2026-11-20T12:00:00Z","last":"2026-11-20T12:00:00Z","count":0})",
        R"({"scope":"r","first":"2026-11-20T12:00:00Z","last":"2026-11-20T12:00:00Z","count":1e300})",
        R"({"scope":"","first":"2026-11-20T12:00:00Z","last":"2026-11-20T12:00:00Z","count":2})"}) {
    CAPTURE(bad);
    const auto book = read_back(fmt::format(R"({{"evictions":[{},{}]}})", good, bad), 1);
    CHECK(evictions_in(book) == 2);
  }
  CHECK(read_back("[]", 1) == CapBook());
  CHECK(read_back(R"({"charges":{},"out":7,"evictions":null})", 3) == CapBook());
  CHECK(read_back(R"({"out":[{"source":"usb","scope":"r","place":"n","node":"n","evicted":{"x":"soon"}}]})", 1)
            .out()
            .empty());
  const auto content = parse_state(R"({"version":1,"caps":{"charges":[1]},"devices":[{}]})");
  CHECK(content.damage == "1 of 1 devices could not be read; 1 entries of the caps could not be read");
}

TEST_CASE("A state of a newer version is not written over, evicts and untaints nothing, and is said") {
  auto stage = gpu_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.send_policy();
  stage.put(state_map(kNewer));
  CHECK(stage.run_for(minutes(10), Seconds(10)).empty());
  CHECK(stage.state_text() == kNewer);
  const auto* said = stage.verdict("device-health-incidents", Reason::StateFromNewerVersion);
  REQUIRE(said != nullptr);
  CHECK(said->message ==
        "its version 3 is newer than this program: it is left as it is, nothing is evicted or untainted; run the newer "
        "version, or delete the ConfigMap to begin without a past");
  CHECK(stage.verdict("train-1", Reason::WaitingForCharge) != nullptr);
  stage.restart();
  CHECK(stage.run_for(minutes(10), Seconds(10)).empty());
  CHECK(stage.state_text() == kNewer);
  // An operator begins anew.
  stage.remove(k8s::Kind::ConfigMap, std::string(kIncidentsName));
  CHECK(stage.run_for(minutes(2)) == std::vector<std::string>{"train-1"});
  CHECK(parse_state(stage.state_text()).records.size() == 1);
}

TEST_CASE("A newer version that begins to write while we lead is not written over either") {
  auto stage = gpu_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.send_policy();
  stage.run_for(Seconds(5));
  stage.policy().evict.reset();
  stage.send_policy();
  stage.run_for(minutes(2));
  REQUIRE_FALSE(stage.state_text().empty());
  stage.put(state_map(kNewer));
  stage.policy().evict = EvictRules{};
  stage.send_policy();
  CHECK(stage.run_for(minutes(5)).empty());
  CHECK(stage.state_text() == kNewer);
  CHECK(stage.verdict("device-health-incidents", Reason::StateFromNewerVersion) != nullptr);
}

TEST_CASE("A version that is no number is damage, not a newer one") {
  for (const std::string version : {"\"2\"", "0", "-1", "1.5", "null"}) {
    CAPTURE(version);
    const auto content = parse_state(fmt::format(R"({{"version":{},"devices":[]}})", version));
    CHECK_FALSE(content.newer_version);
    CHECK(content.damage);
  }
  CHECK(parse_state(R"({"version":18446744073709551615,"devices":[]})").newer_version);
}

}  // namespace dhc::test
