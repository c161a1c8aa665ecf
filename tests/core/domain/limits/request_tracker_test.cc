#include "domain/limits/request_tracker.h"

#include <array>
#include <chrono>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "domain/limits/cap_book.h"

namespace dhc {

namespace {

using std::chrono::hours;
using Uids = std::vector<std::string>;

const WallTime kBegin = std::chrono::sys_days(std::chrono::year(2026) / 11 / 20) + hours(12);

Now tick(Millis since) { return {.mono = MonoTime(hours(100)) + since, .wall = kBegin + since}; }

k8s::Pod replica(const std::string& name, const std::string& owner_uid = "uid-web", const std::string& ns = "default") {
  k8s::Pod pod;
  pod.meta.ns = ns;
  pod.meta.name = name;
  pod.meta.uid = "uid-" + name;
  pod.meta.resource_version = "1";
  pod.node_name = "node-a";
  pod.phase = k8s::PodPhase::Running;
  pod.requests = {{"example.com/gpu", 1}};
  if (!owner_uid.empty()) pod.meta.controller = k8s::OwnerRef{"apps/v1", "ReplicaSet", "web", owner_uid};
  return pod;
}

HeldDevice device(const std::string& name = "gpu-0") {
  HeldDevice held;
  held.key = DeviceKey::plugin("node-a", "example.com/gpu", name);
  return held;
}

/// A tracker with tokens to take, whose buckets stand still: one token a minute.
RequestTracker with_tokens() {
  RequestTracker tracker;
  tracker.tokens().set_rate(1, tick(-hours(1)).mono);
  tracker.attempt_tokens().set_rate(1, tick(-hours(1)).mono);
  return tracker;
}

struct Ending {
  ErrorKind kind;
  bool may_have_happened;
};
constexpr std::array<Ending, 17> kEndings = {{{ErrorKind::NotFound, false},
                                              {ErrorKind::Conflict, false},
                                              {ErrorKind::Contested, false},
                                              {ErrorKind::Gone, false},
                                              {ErrorKind::Blocked, false},
                                              {ErrorKind::TooManyRequests, false},
                                              {ErrorKind::Unauthorized, false},
                                              {ErrorKind::Forbidden, false},
                                              {ErrorKind::Invalid, false},
                                              {ErrorKind::Doubtful, true},
                                              {ErrorKind::Declined, false},
                                              {ErrorKind::Outdated, false},
                                              {ErrorKind::Unread, false},
                                              {ErrorKind::Unavailable, true},
                                              {ErrorKind::TimedOut, true},
                                              {ErrorKind::Cancelled, false},
                                              {ErrorKind::Malformed, false}}};

/// The pod as the Eviction API leaves it.
k8s::Pod evicted_pod(k8s::Pod pod, WallTime at) {
  pod.meta.resource_version = "2";
  pod.meta.deletion = at + Seconds(30);
  pod.meta.deletion_grace_seconds = 30;
  pod.allocated = {{"example.com/gpu", {{"gpu-0", k8s::Health::Unhealthy, ""}}}};
  pod.conditions = {{.type = "DisruptionTarget",
                     .status = "True",
                     .reason = "EvictionByEvictionAPI",
                     .message = {},
                     .last_transition = at}};
  return pod;
}

World world_of(std::vector<k8s::Object> objects, Millis at = Millis(0)) {
  World world;
  for (auto& object : objects) world.apply(k8s::Upsert{std::move(object)}, tick(at));
  world.refresh(tick(at));
  return world;
}

}  // namespace

TEST_CASE("An eviction that was accepted costs its owner the device for an hour, and no holder of that time") {
  RequestTracker tracker;
  const auto lost = replica("web-1");
  tracker.eviction_sent(lost, device(), {"uid-web-1", "uid-web-2"}, tick(Millis(0)));
  CHECK(tracker.eviction(lost.meta.uid)->state == Attempt::State::Sending);
  CHECK(!tracker.lost_recently(replica("web-3"), device(), tick(Millis(1))));
  tracker.eviction_done(lost.meta.uid, {}, "1", tick(Seconds(1)));
  CHECK(tracker.eviction(lost.meta.uid)->state == Attempt::State::Accepted);
  CHECK(tracker.lost_recently(replica("web-3"), device(), tick(Seconds(1))));
  CHECK(tracker.lost_recently(replica("web-3"), device(), tick(Seconds(1) + hours(1) - Millis(1))));
  CHECK(!tracker.lost_recently(replica("web-3"), device(), tick(Seconds(1) + hours(1))));
  CHECK(!tracker.lost_recently(replica("web-1"), device(), tick(Seconds(2))));
  CHECK(!tracker.lost_recently(replica("web-2"), device(), tick(Seconds(2))));
  CHECK(!tracker.lost_recently(replica("web-3"), device("gpu-1"), tick(Seconds(2))));
  CHECK(!tracker.lost_recently(replica("db-1", "uid-db"), device(), tick(Seconds(2))));
  CHECK(!tracker.lost_recently(replica("web-3", "uid-web", "mallory"), device(), tick(Seconds(2))));
}

TEST_CASE("A bare pod that is made anew is the same by its node and name") {
  RequestTracker tracker;
  auto bare = replica("solo", "");
  tracker.eviction_sent(bare, device(), {bare.meta.uid}, tick(Millis(0)));
  tracker.eviction_done(bare.meta.uid, {}, "1", tick(Millis(0)));
  bare.meta.uid = "uid-solo-again";
  CHECK(tracker.lost_recently(bare, device(), tick(Seconds(1))));
  CHECK(!tracker.lost_recently(replica("other", ""), device(), tick(Seconds(1))));
  bare.node_name = "node-b";
  CHECK(!tracker.lost_recently(bare, device(), tick(Seconds(1))));
}

TEST_CASE("An ambiguous device is lost as every one that it may be") {
  RequestTracker tracker;
  auto ambiguous = device("either");
  ambiguous.ambiguous = true;
  ambiguous.candidates = {device("gpu-0").key, device("gpu-1").key};
  tracker.eviction_sent(replica("web-1"), ambiguous, {"uid-web-1"}, tick(Millis(0)));
  tracker.eviction_done("uid-web-1", {}, "1", tick(Millis(0)));
  CHECK(tracker.lost_recently(replica("web-2"), device("gpu-0"), tick(Seconds(1))));
  CHECK(tracker.lost_recently(replica("web-2"), device("gpu-1"), tick(Seconds(1))));
  CHECK(tracker.lost_recently(replica("web-2"), ambiguous, tick(Seconds(1))));
  CHECK(!tracker.lost_recently(replica("web-2"), device("gpu-2"), tick(Seconds(1))));
}

TEST_CASE("Each way in which an eviction fails counts as a loss and uses its token only if it may have happened") {
  for (const auto& [kind, may_have_happened] : kEndings) {
    CAPTURE(to_string(kind));
    auto tracker = with_tokens();
    REQUIRE(tracker.tokens().available(tick(Millis(0)).mono) == 1);
    tracker.eviction_sent(replica("web-1"), device(), {"uid-web-1"}, tick(Millis(0)));
    CHECK(tracker.tokens().available(tick(Millis(0)).mono) == 0);
    CHECK(tracker.attempt_tokens().available(tick(Millis(0)).mono) == 0);
    tracker.eviction_done("uid-web-1", fail(kind, "no"), "7", tick(Millis(0)));
    const auto& attempt = *tracker.eviction("uid-web-1");
    CHECK(attempt.state == Attempt::State::Failed);
    CHECK(attempt.resource_version == "7");
    CHECK(tracker.lost_recently(replica("web-2"), device(), tick(Millis(0))) == may_have_happened);
    CHECK(tracker.tokens().available(tick(Millis(0)).mono) == (may_have_happened ? 0 : 1));
    CHECK(attempt.in_doubt == may_have_happened);
    CHECK(attempt.doubted_until.has_value() == may_have_happened);
    // Only what was never sent uses no attempt.
    const bool was_sent = kind != ErrorKind::Cancelled;
    CHECK(tracker.attempt_tokens().available(tick(Millis(0)).mono) == (was_sent ? 0 : 1));
    CHECK(attempt.tried_at == (was_sent ? tick(Millis(0)).mono : MonoTime::min()));
    CHECK(attempt.not_before >= tick(Millis(0)).mono);
    if (may_have_happened) CHECK(attempt.not_before >= tick(kUnseen).mono);
  }
}

TEST_CASE("A doubt holds the pod's slot once, however often the eviction is tried again") {
  RequestTracker tracker;
  for (const auto at : {Seconds(0), Seconds(40), Seconds(120)}) {
    tracker.eviction_sent(replica("web-1"), device(), {"uid-web-1"}, tick(at));
    tracker.eviction_done("uid-web-1", fail(ErrorKind::TimedOut, "no answer"), "1", tick(at));
    CHECK(tracker.eviction("uid-web-1")->doubted_until == tick(kUnseen).mono);
  }
  tracker.eviction_sent(replica("web-1"), device(), {}, tick(Seconds(300)));
  tracker.eviction_done("uid-web-1", fail(ErrorKind::Blocked, "budget"), "1", tick(Seconds(300)));
  CHECK(tracker.eviction("uid-web-1")->in_doubt);
}

TEST_CASE("An eviction that was accepted and is asked for again was in vain, and a failed one was not") {
  RequestTracker tracker;
  const auto ask = [&](const Status& status) {
    tracker.eviction_sent(replica("web-1"), device(), {}, tick(Millis(0)));
    tracker.eviction_done("uid-web-1", status, "1", tick(Millis(0)));
  };
  ask(fail(ErrorKind::Blocked, "budget"));
  ask({});
  CHECK(tracker.eviction("uid-web-1")->in_vain == 0);
  ask({});
  CHECK(tracker.eviction("uid-web-1")->in_vain == 1);
}

TEST_CASE("Answers to what was never asked change nothing") {
  auto tracker = with_tokens();
  tracker.eviction_done("uid-x", fail(ErrorKind::Blocked, "budget"), "1", tick(Millis(0)));
  tracker.condition_done("uid-x", {}, tick(Millis(0)));
  tracker.event_done("x", {}, tick(Millis(0)));
  tracker.write_done("x", {}, tick(Millis(0)));
  CHECK(tracker.evictions().empty());
  CHECK(tracker.losses().all().empty());
  CHECK(tracker.condition("uid-x") == nullptr);
  CHECK(tracker.write("x") == nullptr);
  CHECK(tracker.may_send_event("x", tick(Millis(0))));
  CHECK(tracker.tokens().available(tick(Millis(0)).mono) == 1);
}

TEST_CASE("A second loss within the hour keeps the holders of the first, a later one has its own") {
  const auto lose_twice = [](Millis between) {
    RequestTracker tracker;
    for (const auto& [name, at] : {std::pair("web-1", Millis(0)), std::pair("web-2", between)}) {
      tracker.eviction_sent(replica(name), device(), {std::string("uid-") + name}, tick(at));
      tracker.eviction_done(std::string("uid-") + name, {}, "1", tick(at));
    }
    return tracker;
  };
  const std::pair place("default/uid-web", device().key);
  CHECK(lose_twice(hours(1) - Millis(1)).losses().all().at(place).loss.holders == Uids{"uid-web-1"});
  CHECK(lose_twice(hours(1)).losses().all().at(place).loss.holders == Uids{"uid-web-2"});
  CHECK(lose_twice(hours(1) - Millis(1)).losses().all().at(place).at == tick(hours(1) - Millis(1)).mono);
}

TEST_CASE("Losses that were written down are recalled before or after our own, and none from the future") {
  DeviceRecords records;
  records[device().key].past.losses = {
      {.owner_uid = "default/uid-web", .at = kBegin - Seconds(10), .holders = {"uid-web-0"}}};
  for (const bool recalled_first : {true, false}) {
    RequestTracker tracker;
    if (recalled_first) tracker.recall_losses(records, tick(Millis(0)));
    tracker.eviction_sent(replica("web-1"), device(), {"uid-web-1"}, tick(Millis(0)));
    tracker.eviction_done("uid-web-1", {}, "1", tick(Millis(0)));
    if (!recalled_first) tracker.recall_losses(records, tick(Millis(0)));
    tracker.recall_losses(records, tick(Seconds(1)));
    const auto& known = tracker.losses().all().at({"default/uid-web", device().key});
    CHECK(known.at == tick(Millis(0)).mono);
    CHECK(known.loss.holders == Uids{"uid-web-0"});
  }
  RequestTracker tracker;
  records[device().key].past.losses.front().at = kBegin + hours(24);
  tracker.recall_losses(records, tick(Millis(0)));
  CHECK(tracker.lost_recently(replica("web-2"), device(), tick(hours(1) - Millis(1))));
  CHECK(!tracker.lost_recently(replica("web-2"), device(), tick(hours(1))));
}

TEST_CASE("A loss that was written with the owner's UID alone is found, but not for a bare pod") {
  DeviceRecords records;
  records[device().key].past.losses = {{.owner_uid = "uid-web", .at = kBegin, .holders = {}}};
  RequestTracker tracker;
  tracker.recall_losses(records, tick(Millis(0)));
  CHECK(tracker.lost_recently(replica("web-2"), device(), tick(Seconds(1))));
  CHECK(!tracker.lost_recently(replica("db-2", "uid-db"), device(), tick(Seconds(1))));
  CHECK(!tracker.lost_recently(replica("solo", ""), device(), tick(Seconds(1))));
}

TEST_CASE("A condition is sent again once the World has moved on, or has been silent for half a minute") {
  RequestTracker tracker;
  auto pod = replica("web-1");
  CHECK(tracker.may_send_condition(pod, PodWords(), tick(Millis(0))));
  tracker.condition_sent(pod, PodWords(), {}, tick(Millis(0)));
  CHECK(!tracker.may_send_condition(pod, PodWords(), tick(hours(24))));
  tracker.condition_done(pod.meta.uid, {}, tick(Seconds(1)));
  CHECK(!tracker.may_send_condition(pod, PodWords(), tick(Seconds(31) - Millis(1))));
  CHECK(tracker.may_send_condition(pod, PodWords(), tick(Seconds(31))));
  pod.meta.resource_version = "2";
  CHECK(tracker.may_send_condition(pod, PodWords(), tick(Seconds(1))));
  tracker.condition_sent(pod, PodWords(), {}, tick(Seconds(40)));
  tracker.condition_done(pod.meta.uid, fail(ErrorKind::Unavailable, "no"), tick(Seconds(40)));
  CHECK(!tracker.may_send_condition(pod, PodWords(), tick(Seconds(41) - Millis(1))));
  CHECK(tracker.may_send_condition(pod, PodWords(), tick(Seconds(41))));
  CHECK(tracker.condition(pod.meta.uid)->first_at == tick(Millis(0)).mono);
}

TEST_CASE("An Event is tried five times at most, and once where the server will never take it") {
  RequestTracker tracker;
  Millis at{0};
  int sent = 0;
  while (sent < 20 && tracker.may_send_event("e", tick(at))) {
    tracker.event_sent("e", tick(at));
    CHECK(!tracker.may_send_event("e", tick(at)));
    tracker.event_done("e", fail(ErrorKind::Unavailable, "no"), tick(at));
    CHECK(!tracker.may_send_event("e", tick(at)));
    ++sent;
    at += hours(1);
  }
  CHECK(sent == 5);
  for (const auto& [kind, unused] : kEndings) {
    CAPTURE(to_string(kind));
    tracker.event_sent("once", tick(Millis(0)));
    tracker.event_done("once", fail(kind, "no"), tick(Millis(0)));
    CHECK(tracker.may_send_event("once", tick(hours(1))) ==
          (kind != ErrorKind::Invalid && kind != ErrorKind::NotFound));
    tracker = RequestTracker();
  }
  tracker.event_sent("well", tick(Millis(0)));
  tracker.event_done("well", {}, tick(Millis(0)));
  CHECK(!tracker.may_send_event("well", tick(hours(24))));
}

TEST_CASE("A write waits for the World or half a minute, and a conflict ends with the next version") {
  RequestTracker tracker;
  CHECK(tracker.may_write("k", "1", tick(Millis(0))));
  CHECK(!tracker.may_write_at("k"));
  tracker.write_sent("k", "1", tick(Millis(0)));
  CHECK(!tracker.may_write("k", "2", tick(hours(1))));
  CHECK(!tracker.may_write_at("k"));
  tracker.write_done("k", {}, tick(Seconds(1)));
  CHECK(!tracker.may_write("k", "1", tick(Seconds(31) - Millis(1))));
  CHECK(tracker.may_write("k", "1", tick(Seconds(31))));
  CHECK(tracker.may_write_at("k") == tick(Seconds(31)).mono);
  CHECK(tracker.may_write("k", "2", tick(Seconds(1))));
  for (const auto& [kind, unused] : kEndings) {
    CAPTURE(to_string(kind));
    tracker = RequestTracker();
    tracker.write_sent("k", "1", tick(Millis(0)));
    tracker.write_done("k", fail(kind, "no"), tick(Millis(0)));
    const auto again = *tracker.may_write_at("k");
    CHECK(again == tracker.write("k")->not_before);
    CHECK(tracker.may_write("k", "1", {.mono = again, .wall = kBegin}));
    if (kind == ErrorKind::Cancelled) continue;
    CHECK(!tracker.may_write("k", "1", {.mono = again - Millis(1), .wall = kBegin}));
    const bool world_decides = kind == ErrorKind::Conflict || kind == ErrorKind::NotFound;
    CHECK(tracker.may_write("k", "2", tick(Millis(1))) == world_decides);
  }
}

TEST_CASE("Two writers of one object leave each other in peace for the rest of a minute") {
  RequestTracker tracker;
  for (int i = 0; i < kWritesAMinute; ++i) {
    const auto version = std::to_string(i);
    REQUIRE(tracker.may_write("k", version, tick(Seconds(i))));
    tracker.write_sent("k", version, tick(Seconds(i)));
    tracker.write_done("k", {}, tick(Seconds(i)));
  }
  CHECK(!tracker.may_write("k", "news", tick(Seconds(60) - Millis(1))));
  CHECK(tracker.may_write("k", "news", tick(Seconds(60))));
  CHECK(tracker.may_write_at("k") == tick(Seconds(60)).mono);
}

TEST_CASE("A namespace was served when a pod of it was last sent for eviction, for an hour") {
  RequestTracker tracker;
  CHECK(tracker.served_at("default") == MonoTime::min());
  tracker.eviction_sent(replica("web-1"), device(), {}, tick(Seconds(1)));
  CHECK(tracker.served_at("default") == tick(Seconds(1)).mono);
  CHECK(tracker.served_at("other") == MonoTime::min());
  tracker.forget({}, tick(Seconds(1) + hours(1) - Millis(1)));
  CHECK(tracker.served_at("default") == tick(Seconds(1)).mono);
  tracker.forget({}, tick(Seconds(1) + hours(1)));
  CHECK(tracker.served_at("default") == MonoTime::min());
}

TEST_CASE("Attempts on pods that are gone are forgotten, but not while they are on their way") {
  RequestTracker tracker;
  const auto world = world_of({replica("web-1")});
  for (const auto* name : {"web-1", "web-2", "web-3"}) {
    tracker.eviction_sent(replica(name), device(), {}, tick(Millis(0)));
    tracker.condition_sent(replica(name), PodWords(), {}, tick(Millis(0)));
    if (std::string_view(name) == "web-3") continue;
    tracker.eviction_done("uid-" + std::string(name), {}, "1", tick(Millis(0)));
    tracker.condition_done("uid-" + std::string(name), {}, tick(Millis(0)));
  }
  tracker.forget(world, tick(Seconds(1)));
  CHECK(tracker.eviction("uid-web-1") != nullptr);
  CHECK(tracker.condition("uid-web-1") != nullptr);
  CHECK(tracker.eviction("uid-web-2") == nullptr);
  CHECK(tracker.condition("uid-web-2") == nullptr);
  CHECK(tracker.eviction("uid-web-3") != nullptr);
  CHECK(tracker.condition("uid-web-3") != nullptr);
  CHECK(tracker.losses().all().size() == 1);
  tracker.forget(world, tick(hours(1) - Millis(1)));
  CHECK(tracker.losses().all().size() == 1);
  tracker.forget(world, tick(hours(1)));
  CHECK(tracker.losses().all().empty());
}

TEST_CASE("Events and writes are forgotten after an hour, but not while they are on their way") {
  RequestTracker tracker;
  for (const auto* name : {"done", "going"}) {
    tracker.event_sent(name, tick(Millis(0)));
    tracker.write_sent(name, "1", tick(Millis(0)));
  }
  tracker.event_done("done", {}, tick(Millis(0)));
  tracker.write_done("done", {}, tick(Millis(0)));
  tracker.forget({}, tick(hours(1) - Millis(1)));
  CHECK(!tracker.may_send_event("done", tick(hours(1))));
  CHECK(tracker.write("done") != nullptr);
  tracker.forget({}, tick(hours(1)));
  CHECK(tracker.may_send_event("done", tick(hours(1))));
  CHECK(tracker.write("done") == nullptr);
  CHECK(!tracker.may_send_event("going", tick(hours(1))));
  CHECK(tracker.write("going") != nullptr);
}

namespace {

HeldDevice shared_device() {
  HeldDevice held;
  held.key = DeviceKey::dra("gpu.example.com", "node-a", "gpu-0");
  held.claim = "default/shared";
  held.claim_uid = "uid-shared";
  held.shared = true;
  return held;
}

}  // namespace

TEST_CASE("A claim was emptied until it is deallocated") {
  k8s::ResourceClaim claim;
  claim.meta.ns = "default";
  claim.meta.name = "shared";
  claim.meta.uid = "uid-shared";
  claim.allocated = true;
  claim.results = {{.request = "gpu", .driver = "gpu.example.com", .pool = "node-a", .device = "gpu-0"}};
  RequestTracker tracker;
  tracker.eviction_sent(replica("web-1"), shared_device(), {"uid-web-1"}, tick(Millis(0)));
  tracker.eviction_done("uid-web-1", {}, "1", tick(Millis(0)));
  tracker.forget(world_of({claim}), tick(hours(24)));
  CHECK(tracker.eviction("uid-web-1") == nullptr);
  CHECK(tracker.was_emptied("uid-shared"));
  claim.allocated = false;
  claim.results.clear();
  tracker.forget(world_of({claim}), tick(hours(24)));
  CHECK(!tracker.was_emptied("uid-shared"));
}

TEST_CASE("A claim was emptied while an eviction of a holder is on its way, has happened or may have") {
  for (const auto& [kind, may_have_happened] : kEndings) {
    CAPTURE(to_string(kind));
    RequestTracker tracker;
    const auto send = [&](const std::string& name) {
      tracker.eviction_sent(replica(name), shared_device(), {"uid-web-1", "uid-web-2"}, tick(Millis(0)));
    };
    send("web-1");
    send("web-2");
    tracker.eviction_done("uid-web-1", fail(kind, "no"), "1", tick(Millis(1)));
    CHECK(tracker.was_emptied("uid-shared"));
    tracker.eviction_done("uid-web-2", fail(ErrorKind::Cancelled, "not sent"), "1", tick(Millis(1)));
    CHECK(tracker.was_emptied("uid-shared") == may_have_happened);
    send("web-1");
    CHECK(tracker.was_emptied("uid-shared"));
    tracker.eviction_done("uid-web-1", fail(ErrorKind::Cancelled, "not sent"), "1", tick(Millis(2)));
    CHECK(tracker.was_emptied("uid-shared") == may_have_happened);
  }
}

TEST_CASE("A pod that is seen to be evicted answers for an answer that never came, and for no refusal of long ago") {
  for (const auto& [kind, may_have_happened] : kEndings) {
    // What the server has declined it may still be at work on.
    for (const auto& [passed, is_fresh] : {std::pair(Seconds(2), true), {Seconds(30), false}}) {
      CAPTURE(to_string(kind));
      CAPTURE(is_fresh);
      RequestTracker tracker;
      tracker.eviction_sent(replica("web-1"), device(), {"uid-web-1"}, tick(Millis(0)));
      tracker.eviction_done("uid-web-1", fail(kind, "no"), "1", tick(Millis(0)));
      const auto world = world_of({evicted_pod(replica("web-1"), tick(Seconds(1)).wall)});
      tracker.learn(world, {}, tick(passed));
      const auto& attempt = *tracker.eviction("uid-web-1");
      const bool is_ours = may_have_happened || (kind == ErrorKind::Declined && is_fresh);
      CHECK((attempt.state == Attempt::State::Accepted) == is_ours);
      CHECK(attempt.shown == is_ours);
    }
  }
}

TEST_CASE("An eviction that was written down before we began is ours, and one that begins later is somebody else's") {
  const std::map<std::string, EvictionCharge> charges;
  DeviceRecords records;
  records[device().key].past.losses = {
      {.owner_uid = "default/uid-web", .at = kBegin - Seconds(5), .holders = {"uid-web-1"}}};
  const auto learned = [&](Millis began, bool recalls) {
    RequestTracker tracker;
    if (recalls) tracker.recall_losses(records, tick(Millis(0)));
    tracker.learn({}, charges, tick(Millis(0)));
    const auto world = world_of({evicted_pod(replica("web-1"), tick(began).wall)}, Seconds(10));
    tracker.learn(world, charges, tick(Seconds(10)));
    return tracker.eviction("uid-web-1") != nullptr;
  };
  CHECK(learned(-Seconds(5), true));
  CHECK(!learned(-Seconds(5), false));
  // The clocks of API server and controller, and the second to which the server's times are cut.
  CHECK(learned(Seconds(5), true));
  CHECK(!learned(Seconds(5) + Millis(1), true));
}

}  // namespace dhc
