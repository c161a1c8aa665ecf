#include "reconcilers/eviction/charging.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "domain/cluster/workload.h"
#include "domain/contract/names.h"
#include "domain/contract/state_names.h"
#include "domain/incidents/state_caps.h"
#include "domain/limits/write_keys.h"
#include "reconcilers/shared/hold_reasons.h"

namespace dhc::eviction {

std::size_t Charging::places_taken() {
  if (!places_taken_) places_taken_ = input_.incidents.caps().places_taken(input_.requests, input_.now);
  return *places_taken_;
}

bool Charging::is_full() { return places_taken() >= CapBook::kMostCharges; }

bool Charging::is_ahead() { return std::cmp_greater_equal(places_taken(), input_.policy.limits.max_in_flight); }

std::optional<HoldReason> Charging::record(const Unit& unit) {
  for (const auto* member : unit.affected_pods) {
    if (auto hold = record(*member, unit)) return hold;
  }
  return std::nullopt;
}

/// A pod that holds several bad devices goes once, and is charged once: for the device that it goes for, as whoever
/// leads next must know. One that was charged for another device may have gone for that. Who comes first in a turn says
/// for which it goes.
std::optional<HoldReason> Charging::record(const AffectedPod& member, const Unit& unit) {
  const auto& book = input_.incidents.caps();
  const auto& uid = member.pod().meta.uid;
  const auto [goes_for, is_first] = goes_for_.try_emplace(uid, member.key);
  if (goes_for->second != member.key) {
    return HoldReason{.reason = Reason::WaitingForCharge,
                      .message = fmt::format("the pod is charged for {} first", to_string(goes_for->second)),
                      .until = {}};
  }
  const auto known = book.charges().find(uid);
  const bool is_known = known != book.charges().end();
  const bool is_same = is_known && known->second.key == member.key && known->second.gang == unit.gang;
  if (!is_first || is_same) return std::nullopt;
  const bool goes_with = member.goes_with != nullptr;
  const auto& holder = goes_with ? member.goes_with->pod() : member.pod();
  EvictionCharge charge{.pod_uid = uid,
                        .key = member.key,
                        .node = holder.node_name,
                        .at = input_.now.wall,
                        .loser = goes_with ? std::string() : loss_owner(member.pod()),
                        .may_be = member.held_device->candidates,
                        .workload = workload_of(holder, input_.world),
                        .gang = unit.gang,
                        .gang_size = unit.gang.empty() ? 0 : static_cast<std::int64_t>(unit.affected_pods.size()),
                        .half_since = {},
                        .counted = false,
                        .revision = 0,
                        .recalled = false};
  if (!is_known) {
    if (auto hold = has_no_place(charge)) return hold;
  }
  if (is_known && known->second.key != charge.key) follow_charge(charge, known->second);
  if (is_known) {
    charge.counted = known->second.counted;
    charge.recalled = known->second.recalled;
  }
  charged_.insert(uid);
  charges_.push_back(std::move(charge));
  return std::nullopt;
}

/// Takes one, if there is any.
std::optional<HoldReason> Charging::has_no_place(const EvictionCharge& charge) {
  if (is_full()) {
    return HoldReason{
        .reason = Reason::WaitingForCharge,
        .message = fmt::format("{} evictions are recorded at a time: others come first", CapBook::kMostCharges),
        .until = {}};
  }
  if (!size_) {
    size_.emplace(input_.incidents.caps());
    for (const auto& [uid, known] : input_.incidents.caps().charges()) {
      if (may_give_way(known, input_.requests, input_.now)) size_->drop(known);
    }
  }
  size_->add(charge);
  if (size_->bytes() > kCapsLimit) {
    size_->drop(charge);
    return HoldReason{.reason = Reason::CapReached,
                      .message = fmt::format("ConfigMap {} has no room left for what is out of service on our account",
                                             kIncidentsName),
                      .until = {}};
  }
  ++*places_taken_;
  return std::nullopt;
}

std::optional<HoldReason> Charging::not_saved(const Unit& unit) const {
  if (input_.policy.own_namespace.empty()) return std::nullopt;
  const auto& charges = input_.incidents.caps().charges();
  const bool all_saved = std::ranges::all_of(unit.affected_pods, [&](const AffectedPod* member) {
    const auto& uid = member->pod().meta.uid;
    const auto found = charges.find(uid);
    return found != charges.end() && !charged_.contains(uid) && input_.saved_revision &&
           found->second.revision <= *input_.saved_revision;
  });
  if (all_saved) return std::nullopt;
  const auto* attempt = input_.requests.write(std::string(kStateKey));
  const bool failed = attempt != nullptr && attempt->state == Attempt::State::Failed;
  return HoldReason{
      .reason = Reason::WaitingForCharge,
      .message = fmt::format("it is written down in ConfigMap {} first, which counts against the caps{}",
                             kIncidentsName, failed ? fmt::format(": {}", words_of_failure(*attempt)) : ""),
      .until = {}};
}

}  // namespace dhc::eviction
