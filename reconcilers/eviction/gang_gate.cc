#include "reconcilers/eviction/gang_gate.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "domain/findings/match_device.h"
#include "reconcilers/eviction/going.h"
#include "reconcilers/eviction/waits.h"
#include "reconcilers/shared/exclusions.h"
#include "reconcilers/shared/job_credit.h"

namespace dhc::eviction {

namespace {

HoldReason gang_hold(Reason reason, std::string message) {
  return {.reason = reason, .message = std::move(message), .until = {}};
}

std::optional<HoldReason> is_too_large(const GangUnit& unit, const PlanInput& input) {
  if (unit.size > kMostInGang) {
    return gang_hold(Reason::GangTooLarge, fmt::format("{} has {} pods, and at most {} go together", unit.gang.words,
                                                       unit.size, kMostInGang));
  }
  const auto& scope = unit.members.front()->key.scope;
  const auto size = static_cast<std::int64_t>(unit.members.size());
  const auto most = input.caps.most_a_day(scope);
  if (size <= most) return std::nullopt;
  return gang_hold(Reason::GangTooLarge,
                   fmt::format("{} has {} pods, and caps.perDay allows {} evictions a day on devices of {}: none of "
                               "them goes before it allows all",
                               unit.gang.words, size, most, scope));
}

std::optional<HoldReason> is_not_covered(const GangUnit& unit, const PlanInput& input) {
  const auto& asking = *unit.members.front();
  for (const auto* member : unit.members) {
    if (member->goes_with == nullptr) continue;
    const auto misfit = selector_misfit(asking.policy->match, input.world, member->pod(), asking.key);
    if (!misfit) continue;
    const auto* const which = *misfit == MatchPart::Node        ? "nodeSelector"
                              : *misfit == MatchPart::Namespace ? "namespaceSelector"
                                                                : "podSelector";
    return gang_hold(Reason::GangNotCovered,
                     fmt::format("the {} of policy {} does not fit pod {} of {}", which, asking.policy->name,
                                 member->pod().meta.name, unit.gang.words));
  }
  return std::nullopt;
}

/// With one pod the whole of it is tried: if that one is refused, nobody has gone.
std::optional<HoldReason> is_begun_with_another(const GangUnit& unit, const PlanInput& input) {
  for (const auto* member : unit.members) {
    if (member == unit.members.front() || !is_under_way(member->pod(), input)) continue;
    return gang_hold(Reason::GangHeld,
                     fmt::format("pod {} of {} goes first", member->pod().meta.name, unit.gang.words));
  }
  return std::nullopt;
}

}  // namespace

HalfGangs half_gangs(const PlanInput& input) {
  HalfGangs half;
  for (const auto& [uid, charge] : input.incidents.caps().charges()) {
    const auto* record = input.world.pod(uid);
    if (!charge.half_since || record == nullptr || !is_live(record->pod) || record->pod.meta.deletion) continue;
    // One that was accepted goes, unless it has had all its time.
    const auto* attempt = input.requests.eviction(uid);
    const bool failed = attempt != nullptr && attempt->state != Attempt::State::Accepted;
    const bool in_vain = attempt != nullptr && accepted_in_vain(*attempt, record->pod, input);
    if (charge.counted && !failed && !in_vain) continue;
    // Whoever has left the gang goes for nobody's device.
    const auto gang = gang_of(record->pod);
    if (gang && gang->key == charge.gang) half[charge.gang].push_back(&charge);
  }
  return half;
}

std::optional<HoldReason> held_by_gang(const GangUnit& unit, const HalfGangs& half, const PlanInput& input) {
  if (auto hold = is_too_large(unit, input)) return hold;
  if (const auto found = half.find(unit.gang.key); found != half.end()) {
    return gang_hold(Reason::GangHeld, fmt::format("{} pods of an earlier round of {} are still to go",
                                                   found->second.size(), unit.gang.words));
  }
  if (auto hold = is_begun_with_another(unit, input)) return hold;
  return is_not_covered(unit, input);
}

std::optional<HoldReason> splits_pod_group(const Unit& unit, const GangUnit* gang, const World& world) {
  std::set<std::string_view> going;
  std::map<std::string_view, const AffectedPod*> groups;  // a unit is of one namespace
  for (const auto* member : unit.affected_pods) {
    going.insert(member->pod().meta.uid);
    if (world.is_indivisible(member->pod())) groups.try_emplace(member->pod().pod_group, member);
  }
  for (const auto& [name, member] : groups) {
    std::size_t size = 0;
    std::size_t of_them = 0;
    for (const auto& uid : world.pod_group_of(member->pod())) {
      if (!can_be_evicted(world.pod(uid))) continue;
      ++size;
      of_them += going.contains(uid) ? 1U : 0U;
    }
    if (of_them == size) continue;
    const auto why = gang == nullptr ? fmt::format("policy {} says evict.groups: {}", member->policy->name,
                                                   member->policy->evict->groups_together ? "Together" : "Each")
                                     : fmt::format("{} is not all of it", gang->gang.words);
    return gang_hold(
        Reason::GroupIndivisible,
        fmt::format("PodGroup {} is disrupted only as a whole (disruptionMode: all), and {} of its {} pods "
                    "would go: {}",
                    name, of_them, size, why));
  }
  return std::nullopt;
}

std::optional<HoldReason> held_by_budgets(const GangUnit& unit, const World& world) {
  struct Asked {
    std::int64_t spent = 0;
    std::int64_t selected = 0;
  };
  std::map<const k8s::DisruptionBudget*, Asked> asked;
  const auto budgets = world.budgets_in(unit.members.front()->pod().meta.ns);
  for (const auto* member : unit.members) {
    const auto& pod = member->pod();
    if (!k8s::asks_budgets(pod)) continue;
    const k8s::DisruptionBudget* first = nullptr;
    for (const auto* budget : budgets) {
      if (!k8s::selects(*budget, pod)) continue;
      if (first != nullptr) {
        return gang_hold(Reason::BlockedByBudget,
                         fmt::format("PodDisruptionBudgets {} and {} both select pod {} of {}: the API server refuses "
                                     "its eviction until one of them does not",
                                     first->meta.name, budget->meta.name, pod.meta.name, unit.gang.words));
      }
      first = budget;
      auto& one = asked[budget];
      ++one.selected;
      one.spent += k8s::spends(*budget, pod) ? 1 : 0;
    }
  }
  for (const auto* budget : budgets) {  // in the order of their names
    const auto found = asked.find(budget);
    if (found == asked.end() || found->second.spent == 0) continue;
    if (budget->observed_generation < budget->generation) {
      return gang_hold(
          Reason::BlockedByBudget,
          fmt::format("PodDisruptionBudget {} has changed, and its status does not show it yet", budget->meta.name));
    }
    if (found->second.spent <= budget->disruptions_allowed) continue;
    return gang_hold(Reason::BlockedByBudget,
                     fmt::format("PodDisruptionBudget {} allows {} disruptions, and the {} pods of {} that it selects "
                                 "need {}: none of them goes before it allows all",
                                 budget->meta.name, budget->disruptions_allowed, found->second.selected,
                                 unit.gang.words, found->second.spent));
  }
  return std::nullopt;
}

std::optional<HoldReason> holds_member(const AffectedPod& member, const PlanInput& input) {
  if (auto hold = excluded_because(member, input)) return hold;
  if (auto hold = node_cordoned(member, input)) return hold;
  return held_for_credit(member, input);
}

}  // namespace dhc::eviction
