#include "domain/cluster/health_tracker.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

namespace dhc {

namespace {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;
using Uids = std::vector<dhc::SharedText>;

const WallTime kStart = std::chrono::sys_days(std::chrono::year(2026) / 11 / 20) + hours(12);

Now time_at(Millis since_start) { return {.mono = MonoTime(hours(100)) + since_start, .wall = kStart + since_start}; }

DeviceKey gpu(const std::string& name = "gpu-0") { return DeviceKey::dra("gpu.example.com", "node-a", name); }

Evidence unhealthy(Uids witnesses = {"a"}, std::string message = "Xid 79") {
  return {.health = Health::Unhealthy,
          .says_healthy = false,
          .message = std::move(message),
          .boot_id = "boot-1",
          .witnesses = std::move(witnesses)};
}
Evidence healthy() { return {.health = Health::Healthy, .says_healthy = true}; }
Evidence unknown() { return {.health = Health::Unknown, .says_healthy = false}; }
/// Healthy, said by a reporter that began after the device was called bad.
Evidence forgotten() { return {.health = Health::Unknown, .says_healthy = true, .forgotten = true}; }
Evidence another_word(std::string word, Uids witnesses = {"a"}) {
  return {.health = Health::Unknown,
          .says_healthy = false,
          .other_word = std::move(word),
          .other_message = "lost",
          .other_witnesses = std::move(witnesses)};
}

/// A tracker of one device that pod `a` holds.
struct Tracked {
  HealthTracker tracker;
  Tracked() { tracker.add_holder(gpu(), "a"); }

  void observe(const Evidence& evidence, Millis at) { tracker.observe(gpu(), evidence, time_at(at)); }
  [[nodiscard]] const DeviceState& state() const {
    REQUIRE(tracker.find(gpu()) != nullptr);
    return *tracker.find(gpu());
  }
  [[nodiscard]] bool is_bad() const { return tracker.not_healthy().contains(gpu()); }
};

Moment moment_at(Millis since_start) { return moment_of(time_at(since_start)); }

}  // namespace

TEST_CASE("What nobody holds is not followed") {
  HealthTracker tracker;
  tracker.observe(gpu(), unhealthy(), time_at(Millis(0)));
  tracker.note_called_bad(gpu(), moment_at(Millis(0)), "boot-1");
  tracker.remove_holder(gpu(), "a", time_at(Millis(0)));
  CHECK(tracker.find(gpu()) == nullptr);
  CHECK(tracker.devices().empty());
  CHECK(tracker.not_healthy().empty());
}

TEST_CASE("A device that is held and of which nobody speaks is Unknown, and no signal") {
  Tracked one;
  one.observe({}, Millis(0));
  one.observe({}, hours(1));
  CHECK(one.state().health == Health::Unknown);
  CHECK(!one.state().has_source);
  CHECK(!one.state().unknown_since);
  CHECK(!one.is_bad());
}

TEST_CASE("Each word of the kubelet makes the device what it says") {
  Tracked one;
  one.observe(healthy(), Millis(0));
  CHECK(one.state().health == Health::Healthy);
  CHECK(one.state().seen_healthy);
  CHECK(!one.is_bad());
  one.observe(unknown(), Seconds(1));
  CHECK(one.state().health == Health::Unknown);
  CHECK(one.state().unknown_since == moment_at(Seconds(1)));
  CHECK(one.state().not_healthy_since == moment_at(Seconds(1)));
  CHECK(!one.state().unhealthy_since);
  CHECK(one.is_bad());
  one.observe(unhealthy(), Seconds(2));
  CHECK(one.state().health == Health::Unhealthy);
  CHECK(one.state().unhealthy_since == moment_at(Seconds(2)));
  CHECK(one.state().not_healthy_since == moment_at(Seconds(1)));
  CHECK(!one.state().unknown_since);
  CHECK(one.state().message == "Xid 79");
  CHECK(one.is_bad());
  one.observe(healthy(), Seconds(3));
  CHECK(one.state().health == Health::Healthy);
  CHECK(!one.state().unhealthy_since);
  CHECK(!one.state().not_healthy_since);
  CHECK(one.state().message.empty());
  CHECK(one.state().witnesses.empty());
  CHECK(!one.is_bad());
}

TEST_CASE("What is said again changes nothing") {
  for (const auto& evidence : {unhealthy(), healthy(), unknown(), forgotten(), another_word("Retired"), Evidence{}}) {
    Tracked one;
    one.observe(unhealthy(), Millis(0));
    one.observe(evidence, Seconds(1));
    const auto before = one.state();
    const auto* word = one.tracker.other_word_of(gpu());
    const auto word_before = word == nullptr ? OtherWord{} : *word;
    one.observe(evidence, minutes(14));
    CHECK(one.state() == before);
    CHECK((word == nullptr || *word == word_before));
  }
}

TEST_CASE("An Unknown of less than fifteen minutes is part of the incident, a longer one ends it") {
  for (const auto& [lasted, goes_on] :
       {std::pair(kLongestUnknown - Millis(1), true), std::pair(kLongestUnknown, false)}) {
    Tracked one;
    one.observe(unhealthy({"a"}), Millis(0));
    one.observe(unknown(), Seconds(10));
    CHECK(one.state().message == "Xid 79");
    one.observe(unhealthy({}), Seconds(10) + lasted);
    CHECK(one.state().unhealthy_since == moment_at(goes_on ? Millis(0) : Seconds(10) + lasted));
    CHECK(one.state().is_witness("a") == goes_on);
    CHECK(one.state().not_healthy_since == moment_at(Millis(0)));
  }
}

TEST_CASE("A remembered incident goes on after any Unknown") {
  Tracked one;
  one.observe(unhealthy(), Millis(0));
  one.observe(unknown(), Seconds(10));
  auto again = unhealthy();
  again.remembered = kStart;
  one.observe(again, hours(24));
  CHECK(one.state().unhealthy_since == moment_at(Millis(0)));
  CHECK(one.state().is_witness("a"));
}

TEST_CASE("What our condition remembers begins when it says, and never in the future") {
  for (const auto& said : {unhealthy(), unknown()}) {
    Tracked one;
    auto evidence = said;
    evidence.remembered = kStart - hours(2);
    one.observe(evidence, Millis(0));
    CHECK(one.state().unhealthy_since == moment_at(-hours(2)));
    CHECK(one.state().not_healthy_since == moment_at(-hours(2)));
    CHECK(one.is_bad());
    Tracked ahead;
    evidence.remembered = kStart + hours(2);
    ahead.observe(evidence, Millis(0));
    CHECK(ahead.state().unhealthy_since == moment_at(Millis(0)));
  }
  // Nobody reports on it, and it is remembered all the same.
  Tracked silent;
  silent.observe({.health = {}, .remembered = kStart - hours(2)}, Millis(0));
  CHECK(silent.state().unhealthy_since == moment_at(-hours(2)));
  CHECK(silent.is_bad());
}

TEST_CASE("Once this process has seen the device Healthy an old condition is no memory of its incident") {
  Tracked one;
  one.observe(healthy(), Millis(0));
  auto evidence = unhealthy();
  evidence.remembered = kStart - hours(2);
  one.observe(evidence, Seconds(5));
  CHECK(one.state().unhealthy_since == moment_at(Seconds(5)));
}

TEST_CASE(
    "What a reporter that began anew calls Healthy goes on as the incident that is remembered, of its witnesses") {
  Tracked one;
  one.tracker.add_holder(gpu(), "b");
  one.observe(unhealthy({"a"}), Millis(0));
  one.observe(healthy(), minutes(1));  // before its start was known
  CHECK(Uids(one.state().relieved) == Uids{"a"});
  auto evidence = forgotten();
  evidence.remembered = kStart;
  one.observe(evidence, minutes(2));
  CHECK(one.state().unhealthy_since == moment_at(Millis(0)));
  CHECK(one.state().is_witness("a"));
  CHECK(!one.state().is_witness("b"));
  CHECK(one.state().relieved.empty());
  CHECK(one.state().forgotten);
}

TEST_CASE("A word that is not believed begins no Unknown, and ends one that lasts") {
  Tracked one;
  one.observe(unhealthy(), Millis(0));
  one.observe(unknown(), Seconds(10));
  one.observe(forgotten(), Seconds(20));
  CHECK(one.state().forgotten);
  CHECK(!one.state().unknown_since);
  CHECK(one.state().unhealthy_since == moment_at(Millis(0)));
  one.observe(unhealthy(), hours(5));
  CHECK(!one.state().forgotten);
  CHECK(one.state().unhealthy_since == moment_at(Millis(0)));
}

TEST_CASE("After fifteen minutes of Unknown a restarted reporter is believed, unless the incident is remembered") {
  const auto end = Seconds(10) + kLongestUnknown;
  const auto begun = [&] {
    Tracked one;
    one.observe(healthy(), -minutes(1));
    one.observe(unhealthy(), Millis(0));
    REQUIRE(one.state().called_bad_at);
    one.observe(unknown(), Seconds(10));
    return one;
  };
  auto one = begun();
  one.observe(forgotten(), end - Millis(1));
  CHECK(one.state().health == Health::Unknown);
  CHECK(one.state().forgotten);
  CHECK(one.state().called_bad_at);
  one = begun();
  one.observe(forgotten(), end);
  CHECK(one.state().health == Health::Healthy);
  CHECK(!one.state().forgotten);
  CHECK(!one.state().called_bad_at);
  CHECK(!one.is_bad());
  one = begun();
  auto remembered = forgotten();
  remembered.remembered = kStart;
  one.observe(remembered, end);
  CHECK(one.state().health == Health::Unknown);
  CHECK(one.state().forgotten);
  CHECK(one.state().called_bad_at);
  one = begun();
  auto silent = forgotten();
  silent.says_healthy = std::nullopt;
  one.observe(silent, end);
  CHECK(one.state().health == Health::Unknown);
}

TEST_CASE("Fifteen minutes of Unknown alone take nothing back") {
  Tracked one;
  one.observe(healthy(), -minutes(1));
  one.observe(unhealthy(), Millis(0));
  one.observe(unknown(), Seconds(10));
  auto doubted = unknown();
  doubted.says_healthy = true;
  for (const auto& evidence : {unknown(), doubted}) {
    one.observe(evidence, hours(1));
    CHECK(one.state().health == Health::Unknown);
    CHECK(one.state().called_bad_at == moment_at(Millis(0)));
    CHECK(one.state().unhealthy_since == moment_at(Millis(0)));
  }
}

TEST_CASE("A memory that comes after the first Unknown makes the time without a Healthy as long as it says") {
  Tracked one;
  one.observe(unknown(), Millis(0));
  auto evidence = unknown();
  evidence.remembered = kStart - hours(2);
  one.observe(evidence, Seconds(1));
  CHECK(one.state().not_healthy_since == moment_at(-hours(2)));
  CHECK(one.state().unhealthy_since == moment_at(-hours(2)));
  CHECK(one.state().unknown_since == moment_at(Millis(0)));
}

TEST_CASE("When the device was called bad is known only where it was seen to turn Unhealthy") {
  Tracked first_sight;
  first_sight.observe(unhealthy(), Millis(0));
  CHECK(!first_sight.state().called_bad_at);
  Tracked turned;
  turned.observe(healthy(), Millis(0));
  turned.observe(unhealthy(), Seconds(1));
  CHECK(turned.state().called_bad_at == moment_at(Seconds(1)));
  turned.observe(unhealthy(), Seconds(2));
  CHECK(turned.state().called_bad_at == moment_at(Seconds(1)));
  turned.observe(unknown(), Seconds(3));
  turned.observe(unhealthy(), Seconds(4));
  CHECK(turned.state().called_bad_at == moment_at(Seconds(4)));
  Tracked from_unknown;
  from_unknown.observe(unknown(), Millis(0));
  from_unknown.observe(unhealthy(), Seconds(1));
  CHECK(from_unknown.state().called_bad_at == moment_at(Seconds(1)));
}

TEST_CASE("The boot in which the device was called bad stays that of its last turn to Unhealthy") {
  Tracked one;
  auto evidence = unhealthy();
  evidence.boot_id.clear();
  one.observe(evidence, Millis(0));
  evidence.boot_id = "boot-1";
  one.observe(evidence, Seconds(1));
  CHECK(one.state().boot_id == "boot-1");
  evidence.boot_id = "boot-2";
  one.observe(evidence, Seconds(2));
  CHECK(one.state().boot_id == "boot-1");
  one.observe(unknown(), Seconds(3));
  one.observe(evidence, Seconds(4));
  CHECK(one.state().boot_id == "boot-2");
  one.tracker.note_called_bad(gpu(), moment_at(Seconds(5)), "boot-3");
  CHECK(one.state().boot_id == "boot-3");
  CHECK(one.state().called_bad_at == moment_at(Seconds(5)));
}

TEST_CASE("An incident is of the holders that saw it, as long as they hold the device") {
  Tracked one;
  for (const auto* uid : {"c", "b"}) one.tracker.add_holder(gpu(), uid);
  CHECK(Uids(one.state().holders) == Uids{"a", "b", "c"});
  one.observe(unknown(), Millis(0));
  one.observe(unhealthy({"c"}), Seconds(1));
  one.observe(unhealthy({"a"}), Seconds(2));
  CHECK(Uids(one.state().witnesses) == Uids{"a", "c"});
  CHECK(!one.state().is_witness("b"));
  one.tracker.remove_holder(gpu(), "c", time_at(Seconds(3)));
  CHECK(Uids(one.state().witnesses) == Uids{"a"});
  one.tracker.add_holder(gpu(), "c");
  CHECK(!one.state().is_witness("c"));
}

TEST_CASE("Holders that come in any order, and twice, are the same holders") {
  Uids uids = {"a", "b", "c"};
  do {
    HealthTracker tracker;
    for (const auto& uid : uids) tracker.add_holder(gpu(), uid);
    tracker.add_holder(gpu(), "b");
    CHECK(Uids(tracker.find(gpu())->holders) == Uids{"a", "b", "c"});
  } while (std::ranges::next_permutation(uids).found);
}

TEST_CASE("A Healthy device without a holder is forgotten at once, a bad one within the hour") {
  Tracked well;
  well.observe(healthy(), Millis(0));
  well.tracker.remove_holder(gpu(), "a", time_at(Seconds(1)));
  CHECK(well.tracker.find(gpu()) == nullptr);
  CHECK(well.tracker.count_of("gpu.example.com") == 0);
  Tracked bad;
  bad.observe(unhealthy(), Millis(0));
  bad.observe(another_word("Retired"), Seconds(1));
  bad.tracker.remove_holder(gpu(), "a", time_at(Seconds(1)));
  (void)bad.tracker.forget(time_at(Seconds(1) + hours(1) - Millis(1)));
  CHECK(bad.state().unhealthy_since == moment_at(Millis(0)));
  CHECK(bad.tracker.count_of("gpu.example.com") == 1);
  (void)bad.tracker.forget(time_at(Seconds(1) + hours(1)));
  CHECK(bad.tracker.find(gpu()) == nullptr);
  CHECK(!bad.is_bad());
  CHECK(bad.tracker.other_words().empty());
  CHECK(bad.tracker.count_of("gpu.example.com") == 0);
}

TEST_CASE("A holder that comes within the hour finds the device's incident, and keeps it from being forgotten") {
  Tracked one;
  one.observe(unhealthy(), Millis(0));
  one.tracker.remove_holder(gpu(), "a", time_at(Seconds(1)));
  one.tracker.add_holder(gpu(), "b");
  (void)one.tracker.forget(time_at(hours(5)));
  CHECK(one.state().unhealthy_since == moment_at(Millis(0)));
  CHECK(!one.state().is_witness("b"));
  one.tracker.remove_holder(gpu(), "b", time_at(hours(5)));
  (void)one.tracker.forget(time_at(hours(6) - Millis(1)));
  CHECK(one.tracker.find(gpu()) != nullptr);
  (void)one.tracker.forget(time_at(hours(6)));
  CHECK(one.tracker.find(gpu()) == nullptr);
}

TEST_CASE("A device has recovered for five minutes after its incident, and one that was only Unknown has not") {
  Tracked one;
  one.observe(unhealthy(), Millis(0));
  one.observe(healthy(), Seconds(90));
  CHECK(one.state().recovered_at == moment_at(Seconds(90)));
  CHECK(one.state().last_incident == Seconds(90));
  CHECK(one.tracker.recovered().contains(gpu()));
  (void)one.tracker.forget(time_at(Seconds(90) + minutes(5) - Millis(1)));
  CHECK(one.tracker.recovered().contains(gpu()));
  (void)one.tracker.forget(time_at(Seconds(90) + minutes(5)));
  CHECK(!one.tracker.recovered().contains(gpu()));
  Tracked unsure;
  unsure.observe(unknown(), Millis(0));
  unsure.observe(healthy(), Seconds(90));
  CHECK(unsure.tracker.recovered().empty());
  CHECK(!unsure.state().recovered_at);
  Tracked gone;
  gone.observe(unhealthy(), Millis(0));
  gone.observe(healthy(), Seconds(1));
  gone.tracker.remove_holder(gpu(), "a", time_at(Seconds(2)));
  CHECK(gone.tracker.recovered().empty());
}

TEST_CASE("A word that is none of the three stands through less than fifteen minutes of silence") {
  for (const auto& [silent, goes_on] :
       {std::pair(kLongestUnknown - Millis(1), true), std::pair(kLongestUnknown, false)}) {
    Tracked one;
    one.observe(another_word("Retired"), Millis(0));
    one.observe(unknown(), Seconds(10));
    one.observe(unknown(), Seconds(20));
    REQUIRE(one.tracker.other_word_of(gpu()) != nullptr);
    CHECK(one.tracker.other_word_of(gpu())->silent_since == moment_at(Seconds(10)));
    one.observe(another_word("Retired"), Seconds(10) + silent);
    CHECK(one.tracker.other_word_of(gpu())->since == moment_at(goes_on ? Millis(0) : Seconds(10) + silent));
    CHECK(!one.tracker.other_word_of(gpu())->silent_since);
  }
}

TEST_CASE("Another word that is none of the three begins anew, and a Healthy ends it") {
  Tracked one;
  one.tracker.add_holder(gpu(), "b");
  one.observe(another_word("Retired", {"b"}), Millis(0));
  one.observe(another_word("Retired", {"a"}), Seconds(1));
  CHECK(Uids(one.tracker.other_word_of(gpu())->witnesses) == Uids{"a", "b"});
  CHECK(one.tracker.other_word_of(gpu())->message == "lost");
  one.tracker.remove_holder(gpu(), "b", time_at(Seconds(2)));
  CHECK(Uids(one.tracker.other_word_of(gpu())->witnesses) == Uids{"a"});
  one.observe(another_word("Failing", {}), Seconds(3));
  CHECK(one.tracker.other_word_of(gpu())->since == moment_at(Seconds(3)));
  CHECK(one.tracker.other_word_of(gpu())->witnesses.empty());
  one.observe(unhealthy(), Seconds(4));
  CHECK(one.tracker.other_words().size() == 1);
  one.observe(healthy(), Seconds(5));
  CHECK(one.tracker.other_words().empty());
}

TEST_CASE("A word that is none of the three is remembered from before, unless the device was Healthy since") {
  auto evidence = another_word("Retired");
  evidence.remembered = kStart - hours(1);
  Tracked one;
  one.observe(evidence, Millis(0));
  CHECK(one.tracker.other_word_of(gpu())->since == moment_at(-hours(1)));
  Tracked well;
  well.observe(healthy(), Millis(0));
  well.observe(evidence, Seconds(1));
  CHECK(well.tracker.other_word_of(gpu())->since == moment_at(Seconds(1)));
}

TEST_CASE("Devices of a DRA driver are counted once each, those of a plugin never") {
  HealthTracker tracker;
  tracker.add_holder(gpu("gpu-0"), "a");
  tracker.add_holder(gpu("gpu-0"), "b");
  tracker.add_holder(gpu("gpu-1"), "a");
  tracker.add_holder(DeviceKey::dra("nic.example.com", "node-a", "nic-0"), "a");
  tracker.add_holder(DeviceKey::plugin("node-a", "example.com/gpu", "0"), "a");
  CHECK(tracker.count_of("gpu.example.com") == 2);
  CHECK(tracker.count_of("nic.example.com") == 1);
  CHECK(tracker.count_of("example.com/gpu") == 0);
  tracker.remove_holder(gpu("gpu-0"), "a", time_at(Millis(0)));
  CHECK(tracker.count_of("gpu.example.com") == 2);
  tracker.remove_holder(gpu("gpu-0"), "b", time_at(Millis(0)));
  CHECK(tracker.count_of("gpu.example.com") == 1);
}

TEST_CASE("Of devices in places that may have others now those that nobody holds are forgotten") {
  HealthTracker tracker;
  for (const auto* name : {"gpu-0", "gpu-1", "gpu-2"}) {
    tracker.add_holder(gpu(name), "a");
    tracker.observe(gpu(name), unhealthy(), time_at(Millis(0)));
    tracker.observe(gpu(name), another_word("Retired"), time_at(Millis(1)));
  }
  tracker.remove_holder(gpu("gpu-0"), "a", time_at(Seconds(1)));
  tracker.remove_holder(gpu("gpu-1"), "a", time_at(Seconds(1)));
  tracker.forget_unheld([](const DeviceKey& key) { return key != gpu("gpu-1"); });
  CHECK(tracker.find(gpu("gpu-0")) == nullptr);
  CHECK(tracker.other_word_of(gpu("gpu-0")) == nullptr);
  CHECK(tracker.find(gpu("gpu-1")) != nullptr);
  CHECK(tracker.find(gpu("gpu-2")) != nullptr);
  CHECK(tracker.not_healthy() == std::set{gpu("gpu-1"), gpu("gpu-2")});
  CHECK(tracker.count_of("gpu.example.com") == 2);
}

}  // namespace dhc
