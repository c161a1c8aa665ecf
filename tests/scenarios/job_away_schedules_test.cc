// Random schedules of pods that die on good and bad devices, with and without a controller that looks.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

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

class AwaySchedule {
 public:
  explicit AwaySchedule(unsigned seed) : dice_(seed), world_(job_shape(100, 4), seed + 1) {
    world_.whole_policy().own_namespace = "device-health-system";
    world_.policy().after = std::chrono::hours(5);  // what is credited has died first
    world_.policy().job_retry->max_per_job = 1000;
    world_.restart_controller();
    world_.run_for(Seconds(20));
  }

  void run() {
    for (int step = 0; step < 20; ++step) befall();
    world_.run_for(std::chrono::minutes(12));
    std::set<std::string> credited;
    for (const auto& credit : world_.credits().credits) credited.insert(credit.pod);
    CHECK(std::ranges::includes(credited, died_));
    for (const auto& pod : credited) CHECK_MESSAGE((died_.contains(pod) || told_on_.contains(pod)), pod);
    CHECK(world_.limit() == world_.first_limit + static_cast<std::int64_t>(credited.size()));
    CHECK(!world_.has_failed());
  }

 private:
  void befall() {
    switch (dice_.below(6)) {
      case 0:
      case 1:
        if (auto pod = world_.break_device(); !pod.empty()) {
          world_.run_for(Seconds(10));  // it is reported, and written down
          // Who died on it a moment before is told on by its next holder, if somebody listens.
          for (const auto& [name, last] : crashed_) {
            if (last.first == place_of(pod) && world_.now.mono - last.second < std::chrono::minutes(10))
              told_on_.insert(name);
          }
          bad_.insert(std::move(pod));
        }
        break;
      case 2:
        crash(true);
        break;
      case 3:
        crash(false);
        break;
      case 4:
        world_.restart_controller();
        break;
      default:
        break;
    }
    world_.run_for(Millis(500 + dice_.below(60'000)));
  }

  /// One of the Job's pods; `looks`: there is a controller meanwhile.
  void crash(bool looks) {
    const auto names = world_.live("train-");
    if (names.empty()) return;
    const auto& name = names[static_cast<std::size_t>(dice_.below(static_cast<int>(names.size())))];
    // What has not been heard of yet nobody can know.
    if ((world_.health(name) == "Unhealthy") != bad_.contains(name)) return;
    const auto place = place_of(name);
    const Millis away(1 + dice_.below(20 * 60'000));
    world_.cluster.crash_pod("default", name, 1);
    if (bad_.erase(name) > 0) {
      died_.insert(name);
    } else {
      crashed_[name] = {place, world_.now.mono};
    }
    if (looks) return world_.run_for(Seconds(5));
    world_.Lab::run_for(away);
    world_.restart_controller();
  }

  [[nodiscard]] std::string place_of(const std::string& name) const {
    return text(world_.pod(name), {"spec", "nodeName"}) + "/" + world_.plugin_device(name);
  }

  Dice dice_;
  JobWorld world_;
  std::set<std::string> bad_;   // pods that run on a device that they know to be bad
  std::set<std::string> died_;  // of these
  std::map<std::string, std::pair<std::string, MonoTime>> crashed_;  // on a good device, and when
  std::set<std::string> told_on_;                                    // of these
};

}  // namespace

TEST_CASE("in any schedule the pods that died on their bad devices are credited, whoever looked, and no others") {
  run_schedules("jobs-away", [](unsigned seed) { AwaySchedule(seed).run(); });
}
