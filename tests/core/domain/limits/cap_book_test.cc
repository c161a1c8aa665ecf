// What becomes of a charge against the caps when the answer to its eviction is lost.
#include "domain/limits/cap_book.h"

#include <chrono>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "domain/limits/request_tracker.h"

namespace dhc::cap_book_test {

namespace {

using std::chrono::hours;

const std::string kScope = "example.com/gpu";

Now tick(Millis since) {
  const WallTime begin = std::chrono::sys_days(std::chrono::year(2026) / 11 / 20) + hours(12);
  return {.mono = MonoTime(hours(100)) + since, .wall = begin + since};
}

k8s::Pod replica(const std::string& name = "web-1") {
  k8s::Pod pod;
  pod.meta.ns = "default";
  pod.meta.name = name;
  pod.meta.uid = "uid-" + name;
  pod.meta.resource_version = "1";
  pod.node_name = "node-a";
  pod.phase = k8s::PodPhase::Running;
  pod.allocated = {{kScope, {{"gpu-0", k8s::Health::Unhealthy, ""}}}};
  return pod;
}

HeldDevice device() {
  HeldDevice held;
  held.key = DeviceKey::plugin("node-a", kScope, "gpu-0");
  return held;
}

World world_of(const std::vector<k8s::Pod>& pods) {
  World world;
  for (const auto& pod : pods) world.apply(k8s::Upsert{pod}, tick(Millis(0)));
  world.refresh(tick(Millis(0)));
  return world;
}

EvictionCharge charge_of(const k8s::Pod& pod) {
  return {.pod_uid = pod.meta.uid, .key = device().key, .node = "node-a", .at = tick(Millis(0)).wall};
}

void try_eviction(RequestTracker& requests, const k8s::Pod& pod, const Status& status, Millis at) {
  requests.eviction_sent(pod, device(), {pod.meta.uid}, tick(at));
  requests.eviction_done(pod.meta.uid, status, "1", tick(at));
}

std::int64_t counted(const CapBook& book) {
  const auto found = book.evictions().find(kScope);
  return found == book.evictions().end() ? 0 : found->second.front().count;
}

}  // namespace

TEST_CASE("An eviction whose answer was lost counts when its pod is gone, whatever became of the next attempt") {
  for (const auto kind : {ErrorKind::Cancelled, ErrorKind::Blocked, ErrorKind::TooManyRequests, ErrorKind::NotFound,
                          ErrorKind::Outdated}) {
    CAPTURE(to_string(kind));
    RequestTracker requests;
    CapBook book;
    book.charge(charge_of(replica()));
    try_eviction(requests, replica(), fail(ErrorKind::TimedOut, "no answer"), Seconds(0));
    const auto slot = requests.eviction("uid-web-1")->doubted_until;
    try_eviction(requests, replica(), fail(kind, "no"), Seconds(40));
    CHECK(requests.eviction("uid-web-1")->doubted_until == slot);
    CHECK(may_stand(requests.eviction("uid-web-1"), tick(Seconds(41))));
    CHECK(!book.settle(world_of({replica()}), requests, tick(Seconds(41))));
    CHECK(book.charges().size() == 1);
    CHECK(book.settle(world_of({}), requests, tick(Seconds(42))));
    CHECK(book.charges().empty());
    CHECK(counted(book) == 1);
  }
}

TEST_CASE("An eviction takes out of service the device that its pod was evicted from, whichever it was charged for") {
  RequestTracker requests;
  CapBook book;
  auto charge = charge_of(replica());
  charge.key = DeviceKey::plugin("node-a", kScope, "gpu-1");
  book.charge(charge);
  try_eviction(requests, replica(), {}, Seconds(0));
  CHECK(book.settle(world_of({}), requests, tick(Seconds(1))));
  CHECK(counted(book) == 1);
  CHECK(book.out().contains(device().key));
  CHECK_FALSE(book.out().contains(charge.key));
}

TEST_CASE("An eviction that was refused or recalled, and never in doubt, uses up nothing when its pod is gone") {
  for (const auto kind : {ErrorKind::Cancelled, ErrorKind::Blocked, ErrorKind::NotFound}) {
    CAPTURE(to_string(kind));
    RequestTracker requests;
    CapBook book;
    book.charge(charge_of(replica()));
    try_eviction(requests, replica(), fail(kind, "no"), Seconds(0));
    CHECK_FALSE(may_stand(requests.eviction("uid-web-1"), tick(Seconds(1))));
    CHECK(book.settle(world_of({}), requests, tick(Seconds(1))));
    CHECK(counted(book) == 0);
  }
}

TEST_CASE("What a process before us may have sent counts, also where our own attempt was recalled or found no pod") {
  for (const auto& [kind, counts] : {std::pair(ErrorKind::Cancelled, 1),
                                     {ErrorKind::NotFound, 1},
                                     {ErrorKind::Outdated, 1},
                                     {ErrorKind::Blocked, 0}}) {
    CAPTURE(to_string(kind));
    RequestTracker requests;
    CapBook book;
    book.recall(charge_of(replica()));
    try_eviction(requests, replica(), fail(kind, "no"), Seconds(0));
    CHECK(book.settle(world_of({}), requests, tick(Seconds(1))));
    CHECK(counted(book) == counts);
  }
}

TEST_CASE("A pod in doubt that another client deletes counts, also after a refusal") {
  RequestTracker requests;
  CapBook book;
  book.charge(charge_of(replica()));
  try_eviction(requests, replica(), fail(ErrorKind::TimedOut, "no answer"), Seconds(0));
  try_eviction(requests, replica(), fail(ErrorKind::Blocked, "budget"), Seconds(40));
  auto deleted = replica();
  deleted.meta.deletion = tick(Seconds(60)).wall;
  CHECK(book.settle(world_of({deleted}), requests, tick(Seconds(42))));
  CHECK(counted(book) == 1);
}

TEST_CASE("A charge in doubt stays for an hour after the last attempt, to the millisecond") {
  RequestTracker requests;
  CapBook book;
  book.charge(charge_of(replica()));
  const auto last = std::chrono::minutes(59);
  try_eviction(requests, replica(), fail(ErrorKind::TimedOut, "no answer"), last - Seconds(40));
  try_eviction(requests, replica(), fail(ErrorKind::Cancelled, "recalled"), last - Seconds(1));
  const auto world = world_of({replica()});
  CHECK(!book.settle(world, requests, tick(last - Seconds(40) + hours(1) - Millis(1))));
  CHECK(book.charges().size() == 1);
  CHECK(book.settle(world, requests, tick(last - Seconds(40) + hours(1))));
  CHECK(book.charges().empty());
  CHECK(counted(book) == 0);
}

TEST_CASE("A pod that stood for an hour after a lost answer goes for another reason, whatever was tried since") {
  for (const auto& [age, counts] : {std::pair(hours(1) - Millis(1), 1), {Millis(hours(1)), 0}}) {
    CAPTURE(counts);
    RequestTracker requests;
    CapBook book;
    book.charge(charge_of(replica()));
    try_eviction(requests, replica(), fail(ErrorKind::TimedOut, "no answer"), Seconds(0));
    try_eviction(requests, replica(), fail(ErrorKind::Blocked, "budget"), age - Seconds(1));
    auto deleted = replica();
    deleted.meta.deletion = tick(age).wall;
    CHECK(book.settle(world_of({deleted}), requests, tick(age)));
    CHECK(counted(book) == counts);
  }
}

TEST_CASE("When too many pods are charged, those whose eviction may have happened keep their charges") {
  RequestTracker requests;
  CapBook book;
  std::vector<k8s::Pod> pods;
  for (int i = 0; i <= static_cast<int>(CapBook::kMostCharges); ++i) {
    pods.push_back(replica("web-" + std::to_string(i)));
    auto charge = charge_of(pods.back());
    charge.at += Seconds(i);
    book.charge(std::move(charge));
  }
  try_eviction(requests, pods[0], fail(ErrorKind::TimedOut, "no answer"), Seconds(0));
  try_eviction(requests, pods[0], fail(ErrorKind::Cancelled, "recalled"), Seconds(40));
  CHECK(book.settle(world_of(pods), requests, tick(std::chrono::minutes(20))));
  CHECK(book.charges().size() == CapBook::kMostCharges);
  CHECK(book.charges().contains("uid-web-0"));
  CHECK_FALSE(book.charges().contains("uid-web-1"));
}

TEST_CASE("A pod that is refused again and again gives its place among the charges to one that was never tried") {
  RequestTracker requests;
  CapBook book;
  std::vector<k8s::Pod> pods;
  for (int i = 0; i <= static_cast<int>(CapBook::kMostCharges); ++i) {
    pods.push_back(replica("web-" + std::to_string(i)));
    book.charge(charge_of(pods.back()));
  }
  const auto refused = static_cast<std::size_t>(CapBook::kMostCharges);
  try_eviction(requests, pods[refused], fail(ErrorKind::Blocked, "budget"), Seconds(1));
  CHECK(book.places_taken(requests, tick(Seconds(30))) == CapBook::kMostCharges);
  CHECK(book.settle(world_of(pods), requests, tick(Seconds(30))));
  CHECK(book.charges().size() == CapBook::kMostCharges);
  CHECK_FALSE(book.charges().contains(pods[refused].meta.uid));
}

TEST_CASE("A charge that was not used within a minute gives way") {
  RequestTracker requests;
  CapBook book;
  book.charge(charge_of(replica("web-0")));
  auto later = charge_of(replica("web-1"));
  later.at += Seconds(1);
  book.charge(std::move(later));
  CHECK(book.places_taken(requests, tick(Seconds(60) - Millis(1))) == 2);
  CHECK(book.places_taken(requests, tick(Seconds(60))) == 1);
  requests.eviction_sent(replica("web-0"), device(), {}, tick(Seconds(60)));
  CHECK(book.places_taken(requests, tick(std::chrono::minutes(10))) == 1);
}

TEST_CASE("A pod that stays although its eviction was accepted takes no place from others") {
  RequestTracker requests;
  CapBook book;
  auto charge = charge_of(replica());
  charge.counted = true;
  book.charge(std::move(charge));
  try_eviction(requests, replica(), {}, Seconds(0));
  CHECK(book.places_taken(requests, tick(Seconds(30))) == 0);
}

TEST_CASE("What the leader before may have sent does not give way before it must have shown") {
  const World world = world_of({});
  RequestTracker requests;
  CapBook book;
  book.recall(charge_of(replica()));
  const auto term = std::chrono::minutes(20);
  CHECK(book.places_taken(requests, tick(term)) == 1);
  requests.learn(world, book.charges(), tick(term));
  CHECK(book.places_taken(requests, tick(term + Seconds(60) - Millis(1))) == 1);
  CHECK(book.places_taken(requests, tick(term + Seconds(60))) == 0);
}

}  // namespace dhc::cap_book_test
