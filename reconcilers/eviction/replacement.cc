#include "reconcilers/eviction/replacement.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "reconcilers/eviction/waits.h"

namespace dhc::eviction {

namespace {

std::vector<const k8s::Pod*> pods_of(const Unit& unit) {
  std::vector<const k8s::Pod*> pods;
  for (const auto* affected : unit.affected_pods) {
    if (std::ranges::find(pods, &affected->pod()) == pods.end()) pods.push_back(&affected->pod());
  }
  return pods;
}

/// As an operator writes it: `10m`, `90s`.
std::string words_of(Millis time) {
  const auto seconds = std::chrono::ceil<Seconds>(time).count();
  return seconds > 0 && seconds % 60 == 0 ? fmt::format("{}m", seconds / 60) : fmt::format("{}s", seconds);
}

}  // namespace

MonoTime ReplacementGate::waits_until(const Unit& unit) const {
  MonoTime until{};
  for (const auto* affected : unit.affected_pods) {
    until = std::max(until, due_at(*affected) + affected->policy->evict->no_replacement_wait);
  }
  return until;
}

bool ReplacementGate::is_held_for_ever(const Unit& unit) const {
  return std::ranges::any_of(unit.affected_pods,
                             [](const auto* affected) { return affected->policy->evict->hold_without_replacement; });
}

bool ReplacementGate::is_braked(const Unit& unit) const {
  return std::ranges::any_of(unit.affected_pods, [&](const auto* affected) {
    // Also of a trial's device, which the half-open brake itself does not hold.
    return input_.brake.covers(affected->key, affected->pod().node_name);
  });
}

bool ReplacementGate::holds(const Unit& unit) const {
  return is_held_for_ever(unit) || is_braked(unit) || input_.now.mono < waits_until(unit);
}

std::optional<HoldReason> ReplacementGate::lacking(const Unit& unit) {
  const auto place = search_.places().find(pods_of(unit));
  found_on_ = place.value_or(std::string());
  if (place) return std::nullopt;
  const auto wait = words_of(unit.affected_pods.front()->policy->evict->no_replacement_wait);
  const auto hold = [&](const std::string& what, std::optional<MonoTime> until = std::nullopt) {
    return HoldReason{.reason = Reason::NoReplacementDevice, .message = place.error() + ": " + what, .until = until};
  };
  if (is_held_for_ever(unit)) return hold("the pod is not evicted without one (evict.whenNoReplacement.then: Hold)");
  if (is_braked(unit)) return hold("while the brake is engaged the pod is not evicted without one");
  const MonoTime until = waits_until(unit);
  if (input_.now.mono < until) {
    return hold(fmt::format("the eviction waits for one, at most {} from when it is due "
                            "(evict.whenNoReplacement.wait)",
                            wait),
                until);
  }
  return hold(
      fmt::format("evict.whenNoReplacement.wait ({}) has passed, the pod is evicted all the same: its "
                  "replacement stays Pending until there is one",
                  wait));
}

void ReplacementGate::take(const Unit& unit) { search_.places().take(pods_of(unit)); }

}  // namespace dhc::eviction
