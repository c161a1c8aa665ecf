#include "domain/cluster/driver_taints.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "domain/cluster/health_tracker.h"

namespace {

using namespace dhc;
using std::chrono::minutes;

const std::string kSpeaker = "gpu.example.com";
const std::vector<DeviceTaintMatch> kAnyTaint = {{.key = "*", .effect = {}}};

/// The taints of gpu-0 on node-a, as its driver publishes them one after the other.
struct Spoken : DriverTaints {
  void say(const std::vector<k8s::Taint>& taints, Millis at) {
    k8s::ResourceSlice slice;
    slice.meta.uid = slice.meta.name = "slice";
    slice.driver = kSpeaker;
    slice.pool = slice.node_name = "node-a";
    slice.generation = ++generation;
    slice.devices = {{.name = "gpu-0", .taints = taints}};
    inventory.replace_slices({slice});
    look_at(inventory, kSpeaker, "node-a", {.mono = MonoTime(at), .wall = WallTime(at)});
  }
  [[nodiscard]] std::string said_at(Millis at, std::string_view open_key = {}) const {
    const auto word = word_for(DeviceKey::dra(kSpeaker, "node-a", "gpu-0"), kAnyTaint, MonoTime(at), open_key);
    return word ? word->said : std::string();
  }

  Inventory inventory;
  std::int64_t generation = 0;
};

const k8s::Taint kFatal{.key = "xid", .value = "79", .effect = "NoSchedule"};
const k8s::Taint kHarmless{.key = "xid", .value = "43", .effect = "None"};
const std::string kOverwritten = "xid=79:NoSchedule, now xid=43:None";

}  // namespace

TEST_CASE("What was written over lasts 15 minutes, or as long as an incident by its own key is open") {
  Spoken taints;
  taints.say({kFatal}, minutes(1));
  taints.say({kHarmless}, minutes(2));
  const Millis end = minutes(2) + kLongestUnknown;
  CHECK(taints.said_at(end - Millis(1)) == kOverwritten);
  CHECK(taints.said_at(end).empty());
  CHECK(taints.said_at(end, "xid") == kOverwritten);
  CHECK(taints.said_at(end, "another").empty());
}

TEST_CASE("A lapse is told once, and none of a device that its driver has cleared") {
  Spoken taints;
  taints.say({kFatal}, minutes(1));
  CHECK_FALSE(taints.next_lapse());
  taints.say({kHarmless}, minutes(2));
  const MonoTime end{minutes(2) + kLongestUnknown};
  CHECK((taints.next_lapse() == end));
  CHECK(taints.lapsed({.mono = end - Millis(1), .wall = {}}).empty());
  SUBCASE("its time comes") {
    CHECK(taints.lapsed({.mono = end, .wall = {}}).size() == 1);
    CHECK(taints.lapsed({.mono = end, .wall = {}}).empty());
    CHECK_FALSE(taints.next_lapse());
  }
  SUBCASE("it is cleared") {
    taints.say({}, minutes(3));
    CHECK(taints.lapsed({.mono = end, .wall = {}}).empty());
    CHECK_FALSE(taints.next_lapse());
  }
  SUBCASE("its pool begins anew") {
    taints.begin_anew(kSpeaker, "node-a");
    CHECK(taints.lapsed({.mono = end, .wall = {}}).empty());
  }
}
