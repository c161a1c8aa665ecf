#include "domain/cluster/view_checks.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Kind;

namespace {

/// A stage with one pod on a claim, which the controller wants to evict; `turn` gives that order.
struct Watched {
  Watched() {
    stage.policy().after = Seconds(0);
    stage.policy().evict->after = Seconds(0);
    stage.node("node-a", 4);
    stage.slice("node-a", {"gpu-0", "gpu-1"});
    card = stage.claim("card", {"gpu-0"}, "train-1").meta;
    stage.pod({.name = "train-1", .owner = "ReplicaSet/t", .health = k8s::Health::Healthy, .claim = "card"});
    stage.answer_evictions([](const eviction::EvictPod&) { return fail(ErrorKind::Outdated, "as the test has it"); });
    stage.settle();
    stage.report("train-1", k8s::Health::Unhealthy);
    stage.settle();
  }

  [[nodiscard]] FreshRead held(Kind kind = Kind::Pod) {
    const auto& meta = kind == Kind::Pod ? stage.pod_named("train-1").meta : card;
    return {.kind = kind,
            .ns = meta.ns,
            .name = meta.name,
            .held_uid = meta.uid,
            .held_version = meta.resource_version,
            .uid = meta.uid,
            .version = meta.resource_version};
  }

  /// Hears of an attempt to evict that has read this.
  void hear(FreshRead read) {
    eviction::EvictPod evict;
    evict.uid = "uid-of-an-earlier-term";
    stage.deliver(Outcome{
        .action = evict, .status = fail(ErrorKind::Outdated, "as the test has it"), .reads = {std::move(read)}});
    stage.settle();
  }

  Stage stage;
  k8s::Meta card;
};

std::string later(const std::string& version, int by) { return std::to_string(std::stoi(version) + by); }

}  // namespace

TEST_CASE("a read that shows what the watch has delivered is no doubt, now or later") {
  Watched at;
  at.hear(at.held());
  at.stage.run_for(std::chrono::minutes(2));
  CHECK(at.stage.doubts().empty());
}

TEST_CASE("a read of an older object than was held when it was sent is a doubt at once, and one only") {
  Watched at;
  auto read = at.held();
  read.version = later(read.held_version, -1);
  at.hear(read);
  const auto doubts = at.stage.doubts();
  REQUIRE(doubts.size() == 1);
  CHECK(doubts.front().kind == Kind::Pod);
  CHECK(doubts.front().why == fmt::format("a read showed pod default/train-1 at resourceVersion {}, it was at {}",
                                          read.version, read.held_version));
  at.stage.run_for(std::chrono::minutes(2));
  CHECK(at.stage.doubts().empty());
}

TEST_CASE("what is held may have become newer since the read was sent") {
  Watched at;
  const auto read = at.held();
  at.stage.report("train-1", k8s::Health::Unhealthy, "later words");
  at.stage.settle();
  at.hear(read);
  at.stage.run_for(std::chrono::minutes(2));
  CHECK(at.stage.doubts().empty());
}

TEST_CASE("a watch that is behind a read has 30 s to show it") {
  Watched at;
  auto read = at.held();
  read.version = later(read.held_version, 1);
  const auto heard = at.stage.now().mono;
  at.hear(read);
  const auto until = [&](Millis age) { return heard + age - at.stage.now().mono; };
  SUBCASE("and does not") {
    at.stage.advance(until(ViewChecks::kCatchUp) - Millis(1));
    (void)at.stage.turn();
    CHECK(at.stage.doubts().empty());
    at.stage.advance(Millis(1));
    (void)at.stage.turn();
    const auto doubts = at.stage.doubts();
    REQUIRE(doubts.size() == 1);
    CHECK(doubts.front().why ==
          fmt::format("a read showed pod default/train-1 at resourceVersion {}, 30 s later the watch is still at an "
                      "older one",
                      read.version));
  }
  SUBCASE("and shows it in time") {
    at.stage.advance(until(ViewChecks::kCatchUp) - Millis(1));
    at.stage.upsert_pod("train-1");
    at.stage.run_for(std::chrono::minutes(1));
    CHECK(at.stage.doubts().empty());
  }
  SUBCASE("and shows that it is gone") {
    at.stage.remove_pod("train-1");
    at.stage.run_for(std::chrono::minutes(1));
    CHECK(at.stage.doubts().empty());
  }
}

TEST_CASE("an object that a read did not find, or found made anew, is to leave the view within 30 s") {
  for (const auto kind : {Kind::Pod, Kind::ResourceClaim}) {
    for (const char* uid : {"", "uid-of-another"}) {
      CAPTURE(static_cast<int>(kind));
      CAPTURE(uid);
      Watched at;
      auto read = at.held(kind);
      read.uid = uid;
      read.version = *uid == '\0' ? "" : "5";
      at.hear(read);
      at.stage.run_for(Seconds(29));
      CHECK(at.stage.doubts().empty());
      at.stage.advance(Seconds(1));
      (void)at.stage.turn();
      const auto doubts = at.stage.doubts();
      REQUIRE(doubts.size() == 1);
      CHECK(doubts.front().kind == kind);
      CHECK(doubts.front().why ==
            fmt::format("a read showed that {} is gone, 30 s later the watch has not delivered it",
                        kind == Kind::Pod ? "pod default/train-1" : "claim default/card"));
    }
  }
}

TEST_CASE("an object whose end the watch tells in time is no doubt") {
  Watched at;
  auto read = at.held(Kind::ResourceClaim);
  read.uid.clear();
  at.hear(read);
  at.stage.advance(Seconds(29));
  at.stage.remove(Kind::ResourceClaim, "card");  // its pod lives on: what it held is still known
  at.stage.run_for(std::chrono::minutes(1));
  CHECK(at.stage.doubts().empty());
}

TEST_CASE("a server whose versions cannot be compared is not doubted for them") {
  Watched at;
  auto read = at.held();
  read.version = "opaque-7";
  at.hear(read);
  at.stage.run_for(std::chrono::minutes(1));
  CHECK(at.stage.doubts().empty());
}

TEST_CASE("at most so many reads wait for their watch") {
  const Now now{.mono = MonoTime(Seconds(1)), .wall = {}};
  ViewChecks checks;
  for (std::size_t i = 0; i < ViewChecks::kMostWaiting + 5; ++i) {
    checks.note({.kind = Kind::Pod,
                 .ns = "a",
                 .name = "b",
                 .held_uid = std::to_string(i),
                 .held_version = "5",
                 .uid = std::to_string(i),
                 .version = "7"},
                now);
  }
  CHECK(checks.waiting() == ViewChecks::kMostWaiting);
  CHECK(checks.next_change_at() == now.mono + ViewChecks::kCatchUp);
}

TEST_CASE("a read that shows a Job older than it was held is a doubt about the watch of Jobs") {
  Watched at;
  at.hear({.kind = Kind::Job,
           .ns = "default",
           .name = "train",
           .held_uid = "uid-train",
           .held_version = "9",
           .uid = "uid-train",
           .version = "5"});
  const auto doubts = at.stage.doubts();
  REQUIRE(doubts.size() == 1);
  CHECK(doubts.front().kind == Kind::Job);
  CHECK(doubts.front().why == "a read showed Job default/train at resourceVersion 5, it was at 9");
}

TEST_CASE("a watch of Jobs that is behind a read has 30 s to show it") {
  Watched at;
  at.stage.pod({.name = "train-0", .owner = "Job/train", .health = k8s::Health::Healthy});
  at.stage.settle();
  const auto& meta = at.stage.job_named("train").meta;
  at.hear({.kind = Kind::Job,
           .ns = meta.ns,
           .name = meta.name,
           .held_uid = meta.uid,
           .held_version = meta.resource_version,
           .uid = meta.uid,
           .version = later(meta.resource_version, 1)});
  CHECK(at.stage.doubts().empty());
  at.stage.run_for(ViewChecks::kCatchUp);
  const auto doubts = at.stage.doubts();
  REQUIRE(doubts.size() == 1);
  CHECK(doubts.front().kind == Kind::Job);
}

}  // namespace dhc::test
