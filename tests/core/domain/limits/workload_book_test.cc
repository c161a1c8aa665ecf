#include "domain/limits/workload_book.h"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "domain/incidents/state_caps.h"

namespace dhc::test {

using std::chrono::hours;
using std::chrono::minutes;

namespace {

constexpr WallTime kBegin{Seconds(1'800'000'000)};
const std::string kPoison = "ml/Deployment/poison";

Now at(Millis after) { return {.mono = MonoTime(after), .wall = kBegin + after}; }

DeviceKey gpu(int number) { return DeviceKey::plugin("node-a", "example.com/gpu", fmt::format("gpu-{}", number)); }

std::size_t devices_in(const WorkloadBook& book) {
  std::size_t count = 0;
  for (const auto& [workload, devices] : book.lost()) count += devices.size();
  return count;
}

}  // namespace

TEST_CASE("What a workload has lost is forgotten after a day, to the millisecond, and that need not be written") {
  WorkloadBook book;
  book.note(kPoison, gpu(0), kBegin);
  CHECK_FALSE(book.settle(at(hours(24) - Millis(1))));
  CHECK(devices_in(book) == 1);
  CHECK_FALSE(book.settle(at(hours(24))));
  CHECK(book == WorkloadBook());
}

TEST_CASE("A device that a workload loses ahead of the clock counts from now on, once") {
  WorkloadBook book;
  book.note(kPoison, gpu(0), kBegin + hours(24 * 365));
  CHECK(book.settle(at(minutes(1))));
  CHECK_FALSE(book.settle(at(minutes(1))));
  CHECK(book.lost().at(kPoison).at(gpu(0)) == kBegin + minutes(1));
}

TEST_CASE("A workload loses a device once, however often, and the last time counts") {
  WorkloadBook book;
  book.note(kPoison, gpu(0), kBegin);
  book.note(kPoison, gpu(0), kBegin + hours(1));
  book.note("", gpu(1), kBegin);
  CHECK(devices_in(book) == 1);
  const WorkloadTally tally(book);
  CHECK(tally.room_at(kPoison, "example.com/gpu") == kBegin + hours(25));
  CHECK_FALSE(tally.room_at(kPoison, "example.com/nic"));
  CHECK(tally.has(kPoison, gpu(0)));
  CHECK_FALSE(tally.has(kPoison, gpu(1)));
}

TEST_CASE("Of what workloads have lost the oldest is forgotten beyond a thousand devices") {
  WorkloadBook book;
  for (int i = 0; i < 1001; ++i) book.note(fmt::format("ml/Job/{}", i % 7), gpu(i), kBegin + Seconds(i));
  CHECK(devices_in(book) == WorkloadBook::kMost);
  CHECK_FALSE(WorkloadTally(book).has("ml/Job/0", gpu(0)));
  CHECK(WorkloadTally(book).has("ml/Job/1", gpu(1)));
}

TEST_CASE("What workloads have lost is read back as it was written, and other entries are damage") {
  CapBook book;
  book.recall(kPoison, gpu(0), kBegin);
  book.recall(kPoison, gpu(1), kBegin + Seconds(1));
  book.recall("ml/Job/train", DeviceKey::dra("gpu.example.com", "node-b", "gpu-0"), kBegin);
  const auto json = nlohmann::ordered_json::parse(caps_text(book));
  std::size_t bad = 0;
  CHECK(read_caps(json, bad) == book);
  CHECK(bad == 0);
  for (const std::string key : {"workload", "source", "scope", "place", "devices"}) {
    CAPTURE(key);
    auto damaged = json;
    damaged["workloads"][0].erase(key);
    bad = 0;
    CHECK(read_caps(damaged, bad).workloads().lost().size() == 1);
    CHECK(bad == 1);
    damaged = json;
    damaged["workloads"][0][key] = 7;
    bad = 0;
    CHECK(read_caps(damaged, bad).workloads().lost().size() == 1);
    CHECK(bad == 1);
  }
  auto damaged = json;
  damaged["workloads"][0]["devices"]["gpu-0"] = "soon";
  bad = 0;
  CHECK(read_caps(damaged, bad).workloads().lost().size() == 1);
  CHECK(bad == 1);
}

TEST_CASE("Where the state is full, what workloads have lost goes before any eviction is forgotten") {
  CapBook book;
  book.recall(kPoison, gpu(0), kBegin);
  book.recall(gpu(0), {.node = "node-a", .at = kBegin, .evicted = true});
  const auto whole = caps_text(book);
  const auto cut = caps_text(book, whole.size() - 1);
  std::size_t bad = 0;
  const auto read = read_caps(nlohmann::ordered_json::parse(cut), bad);
  CHECK(bad == 0);
  CHECK(read.workloads() == WorkloadBook());
  CHECK(read.out() == book.out());
}

}  // namespace dhc::test
