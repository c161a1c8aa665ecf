// Random schedules of crashes, conflicts, lost answers, lag and reordered events around Jobs that lose pods to
// hardware.
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "tests/support/core/job_world.h"
#include "tests/support/core/schedules.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::Dice;
using dhc::test::job_shape;
using dhc::test::JobWorld;
using dhc::test::run_schedules;

namespace {

class Schedule {
 public:
  /// `length`: how long each of the Job's pods works; 0: without end.
  explicit Schedule(unsigned seed, Millis length = Millis::zero())
      : dice_(seed), world_(shape_of(length), seed + 1), most_(1 + below(4)) {
    world_.policy().job_retry->max_per_job = most_;
    world_.send_policy();
    auto& lags = world_.cluster.lags();
    lags.job_cache = Millis(below(9'000));
    lags.job_pod_cache = Millis(below(5'000));
    lags.node_status = Millis(below(10'000));
  }

  void run() {
    for (int step = 0; step < 12; ++step) {
      befall();
      world_.run_for(Millis(500 + below(20'000)));
      check_limit();
    }
    world_.cluster.faults().clear();
    world_.run_for(std::chrono::minutes(25));
    check_limit();
    check_end();
  }

  /// The same with work that has an end: on good hardware every pod ends well, and so does the Job.
  void run_to_the_end() {
    for (int step = 0; step < 12; ++step) {
      befall();
      world_.run_for(Millis(500 + below(20'000)));
      check_limit();
    }
    world_.cluster.faults().clear();
    // All of this is before the first pod is done. A Job controller that is behind on what it has counted itself makes
    // pods too many at a Job's end, on good hardware too.
    world_.cluster.lags().job_cache = Millis::zero();
    world_.cluster.lags().job_pod_cache = Millis::zero();
    world_.run_for(std::chrono::minutes(60));
    check_limit();
    CHECK(world_.is_complete());
    CHECK(!world_.has_failed());
    CHECK(number(world_.job(), {"status", "succeeded"}) == world_.pods_wanted);
    const auto lost = evicted();
    CHECK(world_.failed() == static_cast<std::int64_t>(lost.size()));
    for (const auto& name : lost) CHECK_MESSAGE(broken_.contains(name), name);
  }

 private:
  JobShape shape_of(Millis length) {
    auto shape = job_shape(below(3), 1 + below(4));
    shape.shape.run_for = length;
    return shape;
  }

  int below(int end) { return dice_.below(end); }

  void befall() {
    auto& faults = world_.cluster.faults();
    const auto patch = k8s::Method::Patch;
    switch (below(9)) {
      case 0:
      case 1:
        if (auto pod = world_.break_device(); !pod.empty()) broken_.insert(std::move(pod));
        break;
      case 2:
        world_.restart_controller();
        break;
      case 3:
        faults.add({.method = patch, .path_contains = "/jobs/", .count = 1 + below(4), .status = 409});
        break;
      case 4:
        faults.add({.method = patch, .path_contains = "/jobs/", .count = 1, .status = 504, .handled_first = true});
        break;
      case 5:
        faults.add({.method = k8s::Method::Post,
                    .path_contains = "/eviction",
                    .count = 1,
                    .status = 500,
                    .handled_first = below(2) == 0});
        break;
      case 6:
        faults.add({.path_contains = "/jobs?", .count = 3, .duplicate = below(2) == 0, .reorder = below(2) == 0});
        world_.restart_controller();
        break;
      case 7:
        faults.add({.path_contains = "/pods?", .count = 2, .cut_after = static_cast<std::size_t>(500 + below(5'000))});
        world_.restart_controller();
        break;
      case 8:
        // Somebody else writes the Job all the time.
        world_.cluster.store().edit(Res::Jobs, {"default", "train"}, [&](Json& job) {
          job["metadata"]["annotations"]["team.example.com/note"] = std::to_string(below(1'000'000));
        });
        break;
      default:
        break;
    }
  }

  void check_limit() {
    const auto limit = world_.limit();
    CHECK(limit >= limit_);
    limit_ = limit;
    const auto credits = world_.credits();
    CHECK(limit == world_.first_limit + static_cast<std::int64_t>(credits.credits.size()));
    CHECK(static_cast<std::int64_t>(credits.credits.size()) <= most_);
  }

  /// The pods that were evicted and are gone, also those whose eviction's answer was lost.
  std::set<std::string> evicted() const {
    std::set<std::string> names;
    for (const auto& request : world_.cluster.requests()) {
      const auto end = request.target.find("/eviction");
      if (end == std::string::npos) continue;
      const auto begin = request.target.rfind('/', end - 1) + 1;
      auto name = request.target.substr(begin, end - begin);
      if (world_.pod(name).is_null()) names.insert(std::move(name));
    }
    return names;
  }

  void check_end() {
    CHECK(!world_.has_failed());
    const auto lost = evicted();
    const auto credits = world_.credits();
    // Every pod lost was lost to hardware and has its credit, unless maxPerJob was used up: then the Job has paid with
    // a retry that it had to spare. A credit whose pod lives waits for its loss.
    CHECK(world_.failed() == static_cast<std::int64_t>(lost.size()));
    const auto is_used_up = static_cast<std::int64_t>(credits.credits.size()) == most_;
    std::int64_t without = 0;
    for (const auto& name : lost) {
      if (std::ranges::find(credits.credits, name, &RetryCredit::pod) == credits.credits.end()) {
        CHECK_MESSAGE(is_used_up, name);
        ++without;
      }
      CHECK_MESSAGE(broken_.contains(name), name);
    }
    CHECK(without <= world_.first_limit);
    for (const auto& credit : credits.credits) {
      CHECK((lost.contains(credit.pod) || !world_.pod(credit.pod).is_null()));
      CHECK_MESSAGE(broken_.contains(credit.pod), credit.pod);
    }
    CHECK(world_.live("train-").size() == static_cast<std::size_t>(world_.pods_wanted));
  }

  Dice dice_;
  JobWorld world_;
  std::int64_t most_;
  std::int64_t limit_ = 0;
  std::set<std::string> broken_;  // the pods whose devices we have broken: no other may be credited or lost
};

}  // namespace

TEST_CASE(
    "in any schedule credits are the pods lost to hardware, bounded, the limit never falls, no healthy pod dies") {
  run_schedules("jobs", [](unsigned seed) { Schedule(seed).run(); });
}

TEST_CASE("in any schedule a Job on failing hardware ends as it would have on good hardware") {
  run_schedules("jobs-to-the-end", [](unsigned seed) { Schedule(seed, std::chrono::minutes(6)).run_to_the_end(); });
}
