#include "bench/fleet_year/year.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <time.h>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "bench/fleet_year/ours.h"
#include "bench/fleet_year/rivals.h"

namespace dhc::year {
namespace {

constexpr int kMaxRounds = 2000;

/// Of this thread.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double hours(Millis time) { return std::chrono::duration<double, std::ratio<3600>>(time).count(); }

/// A fault's beginning or end.
struct Turning {
  MonoTime at;
  bool begins = false;
  const Fault* fault = nullptr;
};

std::vector<Turning> turnings_of(const std::vector<Fault>& faults, MonoTime start) {
  std::vector<Turning> turnings;
  for (const auto& fault : faults) {
    turnings.push_back({start + fault.from, true, &fault});
    turnings.push_back({start + fault.to, false, &fault});
  }
  // What ends makes way for what begins at the same moment.
  std::ranges::sort(turnings, {}, [](const Turning& one) { return std::tuple(one.at, one.begins, one.fault); });
  return turnings;
}

void settle(Fleet& fleet, Contender& contender) {
  for (int round = 0; round < kMaxRounds; ++round) {
    const auto before = fleet.cluster.store().rv();
    fleet.cluster.step(fleet.now);
    const bool wrote = fleet.observe();
    const bool acted = contender.act();
    if (!wrote && !acted && fleet.cluster.store().rv() == before) return;
  }
  throw std::runtime_error(fmt::format("the fleet does not come to rest {} ms after the beginning",
                                       fleet.now.mono.time_since_epoch().count()));
}

}  // namespace

Year play(const Run& run, const FaultTrace& trace, const Demand& demand,
          const std::function<std::unique_ptr<Contender>(Fleet&)>& make) {
  const double cpu = cpu_seconds();
  const auto faults = spread(trace, run.spread, run.seed);
  Fleet fleet(run.shape, demand, run.seed);
  const auto contender = make(fleet);
  const auto start = fleet.now.mono;
  const auto end = start + (run.spread.length > Millis::zero() ? run.spread.length : trace.length);
  const auto turnings = turnings_of(faults, start);
  auto turning = turnings.begin();
  Year year;
  while (true) {
    ++year.moments;
    for (; turning != turnings.end() && turning->at <= fleet.now.mono; ++turning) {
      const auto changed = turning->begins ? fleet.begin(*turning->fault) : fleet.end(*turning->fault);
      for (const auto device : changed) contender->reported(device, turning->begins);
    }
    settle(fleet, *contender);
    if (fleet.now.mono >= end) break;
    auto next = end;
    const auto note = [&](std::optional<MonoTime> when) {
      if (when) next = std::min(next, *when);
    };
    note(fleet.cluster.next_wake());
    note(contender->next_due());
    note(fleet.next_due());
    if (turning != turnings.end()) note(turning->at);
    next = std::max(next, fleet.now.mono + Millis(1));
    fleet.now = {next, fleet.now.wall + (next - fleet.now.mono)};
  }
  fleet.close();
  year.counts = fleet.counts();
  year.effort = contender->effort();
  for (std::size_t use = 0; use < kUses; ++use) {
    for (std::size_t cause = 0; cause < kCauses; ++cause) {
      year.hours[use][cause] = hours(fleet.ledger().of(static_cast<Use>(use), static_cast<Cause>(cause)));
    }
  }
  year.all_hours = hours((end - start) * run.shape.nodes * run.shape.devices);
  if (fleet.ledger().sum() != (end - start) * run.shape.nodes * run.shape.devices) {
    throw std::runtime_error("the account does not add up to the devices times the time");
  }
  year.seconds = cpu_seconds() - cpu;
  return year;
}

Year play(const Run& run, const FaultTrace& trace, Kind contender) {
  const auto demand = demand_for(run.shape.nodes, run.shape.devices, run.filled);
  return play(run, trace, demand, [&](Fleet& fleet) -> std::unique_ptr<Contender> {
    switch (contender) {
      case Kind::Nobody:
        return make_nobody(fleet, run.noticed_after);
      case Kind::Drain:
        return make_drain(fleet);
      case Kind::NoExecute:
        return make_no_execute(fleet);
      case Kind::Ours:
        break;
    }
    return make_ours(fleet.cluster, default_policy());
  });
}

}  // namespace dhc::year
