#include "domain/history/card_penalty.h"

#include <algorithm>
#include <vector>

namespace dhc {

namespace {

/// What is less cannot be told from what rounding leaves.
constexpr double kLeastRest = 0.1;

/// One incident that still counts, of one device of a card.
struct Break {
  WallTime at;
  double weight = 0;
  bool is_own = false;
};

/// What is left of one penalty.
double decayed(WallTime since, const RecoverRules& rules, WallTime at) {
  DeviceHistory one;
  one.penalty = 1;
  one.penalty_at = since;
  return penalty_of(one, rules, at);
}

/// What the device's penalty is made of, the newest first: what is older than it has been paid. Returns what its
/// incidents, of which ten are remembered, do not explain. Replicas have one history: of a card that counts once.
double add_breaks(std::vector<Break>& breaks, const DeviceHistory& past, const RecoverRules& rules, WallTime at,
                  bool is_own) {
  double left = penalty_of(past, rules, at);
  for (auto incident = past.incidents.rbegin(); incident != past.incidents.rend(); ++incident) {
    if (incident->without_penalty) continue;
    const double weight = decayed(incident->at, rules, at);
    if (left < weight / 2) return 0;
    breaks.push_back({.at = incident->at, .weight = std::min(weight, left), .is_own = is_own});
    left -= breaks.back().weight;
  }
  return left < kLeastRest ? 0 : left;
}

/// What took one device of a card or several at about the same time.
struct Fault {
  WallTime began;
  double by_others = 0;
  bool is_own = false;
};

/// In their order.
std::vector<Fault> faults_of(std::vector<Break> breaks, const RecoverRules& rules) {
  std::ranges::sort(breaks, {}, &Break::at);
  std::vector<Fault> faults;
  for (const auto& one : breaks) {
    if (faults.empty() || one.at - faults.back().began >= rules.healthy_for) faults.push_back({.began = one.at});
    auto& fault = faults.back();
    if (one.is_own) {
      fault.is_own = true;
    } else {
      fault.by_others = std::max(fault.by_others, one.weight);
    }
  }
  return faults;
}

}  // namespace

double card_penalty(const DeviceHistory& own, std::span<const DeviceHistory* const> others, const RecoverRules& rules,
                    WallTime at) {
  double sum = penalty_of(own, rules, at);
  if (others.empty()) return sum;
  std::vector<Break> breaks;
  const double rest = add_breaks(breaks, own, rules, at, true);
  double rest_of_others = 0;
  for (const auto* other : others)
    rest_of_others = std::max(rest_of_others, add_breaks(breaks, *other, rules, at, false));
  sum += std::max(0.0, rest_of_others - rest);
  for (const auto& fault : faults_of(std::move(breaks), rules)) {
    if (!fault.is_own) sum += fault.by_others;
  }
  return sum;
}

double penalty_after(const DeviceHistory& past, const RecoverRules& rules, WallTime vouched_until, WallTime at) {
  std::vector<Break> breaks;
  add_breaks(breaks, past, rules, at, true);
  double sum = 0;
  for (const auto& one : breaks) {
    // Of one that a clock opened that was ahead its penalty's time was set right.
    if (std::min(one.at, past.penalty_at) > vouched_until) sum += one.weight;
  }
  return sum;
}

double highest_card_penalty(const DeviceHistory& own, std::span<const DeviceHistory* const> others,
                            const RecoverRules& rules, WallTime at) {
  std::vector<Break> breaks;
  double more = add_breaks(breaks, own, rules, at, true);
  for (const auto* other : others) more = std::max(more, add_breaks(breaks, *other, rules, at, false));
  const auto faults = faults_of(std::move(breaks), rules);
  double highest = more;
  for (const auto& last : faults) {
    double then = more;
    for (const auto& fault : faults) {
      if (fault.began <= last.began) then += decayed(fault.began, rules, last.began);
    }
    highest = std::max(highest, then);
  }
  return highest;
}

bool is_fault_of_another(const DeviceHistory& own, std::span<const DeviceHistory* const> others,
                         const RecoverRules& rules, WallTime now) {
  if (others.empty()) return false;
  std::vector<Break> breaks;
  add_breaks(breaks, own, rules, now, true);
  for (const auto* other : others) add_breaks(breaks, *other, rules, now, false);
  const auto faults = faults_of(std::move(breaks), rules);
  return !faults.empty() && faults.back().by_others > 0 && now - faults.back().began < rules.healthy_for;
}

}  // namespace dhc
