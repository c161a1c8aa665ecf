#include "cli/demo_play.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace dhc::cli {

namespace {
// First the cluster alone, so that the controller finds it as one that has been there; then the controller, whose
// bucket of evictions has something in it after this.
constexpr Millis kAlone = Seconds(60);
constexpr Millis kWarmUp = Seconds(60);

void append(std::vector<DemoLine>& lines, std::vector<DemoLine> more) {
  std::ranges::move(more, std::back_inserter(lines));
}
}  // namespace

Now demo_beginning() {
  using std::chrono::hours;
  const auto day = std::chrono::sys_days(std::chrono::year(2027) / 1 / 4);
  return {.mono = MonoTime(hours(1)), .wall = day + hours(9) - kWarmUp - kAlone};
}

DemoPlay::DemoPlay(const DemoAct& act, std::uint64_t seed, DemoPlace place, Policy policy)
    : act_(act), place_(place), lockstep_(std::move(place), std::move(policy)), scene_{.random = seed, .targets = {}} {
  place_.with_cluster([&](sim::Cluster& cluster) { act_.set_up(cluster); });
  warm_up();
  begun_ = place_.clock().mono + kWarmUp;
  end_ = begun_;  // of the warm-up, in which nothing is to be told
  while (place_.clock().mono < begun_) (void)next();
  end_ = begun_ + act_.length;
}

void DemoPlay::pass_to(MonoTime mono) {
  const auto before = place_.clock();
  place_.clock.set({.mono = mono, .wall = before.wall + (mono - before.mono)});
}

void DemoPlay::warm_up() {
  const auto end = place_.clock().mono + kAlone;
  while (place_.clock().mono < end) {
    place_.with_cluster([&](sim::Cluster& cluster) {
      cluster.step(place_.clock());
      const auto now = cluster.now().mono;
      pass_to(std::clamp(cluster.next_wake().value_or(end), now + Millis(1), end));
    });
  }
}

MonoTime DemoPlay::next_moment() const {
  const auto now = place_.clock().mono;
  auto next = std::min(lockstep_.next_moment().value_or(end_), end_);
  if (steps_done_ < act_.steps.size()) next = std::min(next, begun_ + act_.steps[steps_done_].at);
  return std::max(next, now + Millis(1));
}

std::vector<DemoLine> DemoPlay::next() {
  pass_to(next_moment());
  return settle();
}

std::vector<DemoLine> DemoPlay::settle() {
  const auto now = place_.clock();
  std::vector<DemoLine> lines;
  place_.with_cluster([&](sim::Cluster& cluster) {
    cluster.step(now);
    while (steps_done_ < act_.steps.size() && begun_ + act_.steps[steps_done_].at <= now.mono) {
      for (const auto& event : act_.steps[steps_done_].run(cluster, scene_)) {
        ledger_.befell(event);
        append(lines, lines_of(event, now.wall));
      }
      ++steps_done_;
    }
    cluster.step(now);
  });
  append(lines, lines_of(lockstep_.settle(), now.wall));
  place_.with_cluster([&](sim::Cluster& cluster) {
    for (const auto& replaced : ledger_.look(cluster)) lines.push_back(line_of(replaced, now.wall));
  });
  return lines;
}

}  // namespace dhc::cli
