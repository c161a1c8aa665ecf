#include "reconcilers/taint/speech.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "domain/cluster/node_subject.h"
#include "domain/contract/our_taint.h"
#include "domain/findings/enforcement.h"
#include "domain/findings/pauses.h"
#include "reconcilers/shared/hold_reasons.h"

namespace dhc::taint {

namespace {

Subject subject_of(const DeviceRecord& record, const PlanInput& input) {
  const auto node = input.world.node_of(record.key);
  if (node.empty()) {
    return {.kind = "DeviceTaintRule",
            .ns = {},
            .name = input.world.inventory().rule_name_for(record.key),
            .uid = record.ours.rule.uid()};
  }
  return subject_of_node(input.world, node);
}

WallTime since_of(const Incident& incident) {
  if (const auto* facts = incident.facts()) return facts->since;
  return incident.end() == nullptr ? WallTime() : incident.end()->at;
}

}  // namespace

Mode mode_of(const DeviceRecord& record, const PlanInput& input) {
  const auto* policy = policy_of(record, input.policy);
  // What stands ends where it stands, as it does everywhere.
  return record.ours.any() ? effective_mode(policy, input.policy)
                           : mode_on(policy, input.policy, input.world, record.key);
}

MonoTime mono_at(WallTime when, const Now& now) {
  return now.mono + std::chrono::duration_cast<Millis>(when - now.wall);
}

void Speech::say(const DeviceRecord& record, HoldReason hold) {
  planned_.wake(record.key, hold.until);
  planned_.say(record.key, verdict_of({.subject = subject_of(record, input_),
                                       .device = to_string(record.key),
                                       .policy = record.past.policy,
                                       .mode = to_string(mode_of(record, input_)),
                                       .since = since_of(record.incident)},
                                      std::move(hold), input_.now));
}

std::optional<HoldReason> Speech::held_back(const std::string& key, const std::string& seen_version,
                                            std::string_view asks) const {
  return held_by_write(input_, key, seen_version, Reason::Tainting, asks);
}

std::optional<HoldReason> Speech::not_now(const DeviceRecord& record) const {
  if (auto pause = pause_on(input_.world, input_.policy, input_.now.wall, record.key)) {
    const auto until = end_of(*pause, input_.now);
    return HoldReason{.reason = Reason::Paused, .message = std::move(pause->why) + ": no new taint", .until = until};
  }
  if (auto hold = held_by_brake(input_, record.key, input_.world.node_of(record.key), ", no new taint")) {
    return hold;
  }
  if (auto hold = held_by_view(input_, record.key, views_of_taint(record.key))) return hold;
  const auto is_speaking = [&](const AffectedPod* affected) { return calls_bad(*affected, record.key); };
  if (!is_called_unknown(input_.world, record) || std::ranges::any_of(input_.in_focus, is_speaking))
    return std::nullopt;
  return HoldReason{.reason = Reason::WaitingWhileUnknown,
                    .message = "the device is Unknown just now; no new taint until it is Unhealthy again",
                    .until = {}};
}

std::optional<HoldReason> Speech::takes_from_caps(const DeviceRecord& record) {
  ask_again(record);
  const auto node = input_.world.node_of(record.key);
  if (auto full = caps_.refuses_taint(record.key, node)) return full;
  caps_.take_taint(record.key, node);
  return std::nullopt;
}

std::optional<HoldReason> Speech::takes_node_from_caps(const std::string& scope, const std::string& node) {
  if (auto full = caps_.refuses_node_taint(scope, node)) return full;
  caps_.take_node_taint(scope, node);
  return std::nullopt;
}

std::optional<HoldReason> Speech::takes_taint() {
  const auto now = input_.now.mono;
  if (taint_tokens_.available(now) > 0) {
    taint_tokens_.take(1, now);
    return std::nullopt;
  }
  return HoldReason{
      .reason = Reason::RateLimited,
      .message = fmt::format("taints.perMinute is {}, and they are used up", input_.policy.limits.taints_per_minute),
      .until = taint_tokens_.ready_at(1, now)};
}

std::optional<HoldReason> Speech::comes_out_otherwise() const {
  const auto& altered = input_.requests.altered_rules();
  if (!altered.again_at()) return std::nullopt;
  if (!tries_ && *altered.again_at() <= input_.now.mono) return std::nullopt;
  return HoldReason{.reason = Reason::ChangedByOther,
                    .message = altered.why() + "; what it changed is taken back, and one rule is tried an hour",
                    .until = tries_ ? input_.now.mono + AlteredRules::kPause : *altered.again_at()};
}

std::optional<HoldReason> Speech::takes_trial() {
  auto hold = comes_out_otherwise();
  if (!hold) tries_ = input_.requests.altered_rules().again_at().has_value();
  return hold;
}

std::optional<HoldReason> Speech::unsaved(const DeviceRecord& record) {
  ask_again(record);
  if (input_.saved_revision && *input_.saved_revision >= record.ours.noted_by) return std::nullopt;
  return HoldReason{.reason = Reason::Untainting,
                    .message = "waits until the end of the incident is written in the state ConfigMap",
                    .until = {}};
}

void Speech::say_ended(const DeviceRecord& record) {
  constexpr Millis kShown = std::chrono::minutes(10);
  if (const auto until = record.incident.probation_until()) {
    say(record, {.reason = Reason::OnProbation,
                 .message = "untainted without evidence of health: one Unhealthy report doubles the hold",
                 .until = mono_at(*until, input_.now)});
  }
  const auto* end = record.incident.end();
  if (end != nullptr && input_.now.wall - end->at < kShown) {
    say(record, {.reason = Reason::Untainted, .message = end->why, .until = mono_at(end->at + kShown, input_.now)});
  }
}

HoldReason until_recovered(const DeviceRecord& record, const PlanInput& input, Reason reason, std::string_view before) {
  const auto recovery = recovery_of(record, rules_of(record, input.policy), input.now);
  HoldReason hold{.reason = reason, .message = fmt::format("{}; {}", before, recovery.why), .until = {}};
  if (recovery.at) hold.until = mono_at(*recovery.at, input.now);
  return hold;
}

std::size_t holders_of(const PlanInput& input, const DeviceKey& key) {
  const auto* state = input.world.tracker().find(key);
  return state == nullptr ? 0 : state->holders.size();
}

}  // namespace dhc::taint
