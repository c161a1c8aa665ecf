#include "reconcilers/taint/speech.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "domain/cluster/node_subject.h"
#include "domain/contract/our_taint.h"
#include "reconcilers/shared/rulings.h"

namespace dhc::taint {

namespace {

Subject subject_of(const DeviceRecord& record, const Scene& scene) {
  const auto node = scene.world.node_of(record.key);
  if (node.empty()) {
    return {.kind = "DeviceTaintRule", .ns = {}, .name = rule_name(record.key), .uid = record.rule_uid};
  }
  return subject_of_node(scene.world, node);
}

}  // namespace

MonoTime mono_at(WallTime when, const Now& now) {
  return now.mono + std::chrono::duration_cast<Millis>(when - now.wall);
}

void Speech::say(const DeviceRecord& record, Ruling ruling) {
  wake_.note(ruling.until);
  planned_.verdicts.push_back(
      verdict_of({.subject = subject_of(record, scene_),
                  .device = to_string(record.key),
                  .policy = record.policy,
                  .since = record.open ? record.since : record.closed_at.value_or(record.since)},
                 std::move(ruling), scene_.now));
}

std::optional<Ruling> Speech::held_back(const std::string& key, const std::string& seen_version) const {
  if (scene_.ledger.may_write(key, seen_version, scene_.now)) return std::nullopt;
  const auto* attempt = scene_.ledger.write(key);
  if (attempt->state != Attempt::State::Failed) {
    return Ruling{.reason = Reason::Tainting,
                  .message = "the request is on its way, or its effect is not seen yet",
                  .until = scene_.ledger.may_write_at(key)};
  }
  return held_by_failure(*attempt);
}

std::optional<Ruling> Speech::not_now(const DeviceRecord& record) const {
  if (scene_.policy.limits.paused) {
    return Ruling{.reason = Reason::Paused, .message = "ControllerLimits says paused: true: no new taint", .until = {}};
  }
  if (auto ruling = held_by_view(scene_, views_of_taint(record.key))) return ruling;
  if (auto ruling = held_by_brake(scene_, record.key, scene_.world.node_of(record.key), ", no new taint")) {
    return ruling;
  }
  const auto* state = scene_.world.tracker().find(record.key);
  // Where the driver itself has said so, a kubelet that knows nothing takes nothing back.
  const bool unknown = !is_drivers_own(record.source) && state != nullptr && !state->holders.empty() &&
                       state->has_source && state->health == k8s::Health::Unknown && !state->forgotten;
  // Unknown may be what a policy asks for.
  const auto speaks = [&](const Exposure& exposure) {
    return exposure.key == record.key && exposure.open && !exposure.unknown_now;
  };
  if (!unknown || std::ranges::any_of(scene_.exposures, speaks)) return std::nullopt;
  return Ruling{.reason = Reason::WaitingWhileUnknown,
                .message = "the device is Unknown just now; no new taint until it is Unhealthy again",
                .until = {}};
}

std::optional<Ruling> Speech::takes_from_caps(const DeviceRecord& record) {
  const auto node = scene_.world.node_of(record.key);
  if (auto full = caps_.refuses_taint(record.key, node)) return full;
  caps_.take_taint(record.key, node);
  return std::nullopt;
}

std::optional<Ruling> Speech::takes_node_from_caps(const std::string& scope, const std::string& node) {
  if (auto full = caps_.refuses_node_taint(scope, node)) return full;
  caps_.take_node_taint(scope, node);
  return std::nullopt;
}

std::optional<Ruling> Speech::takes_taint() {
  if (taints_left_ > 0) {
    --taints_left_;
    return std::nullopt;
  }
  return Ruling{
      .reason = Reason::RateLimited,
      .message = fmt::format("taints.perMinute is {}, and they are used up", scene_.policy.limits.taints_per_minute),
      .until = scene_.ledger.taint_tokens().ready_at(1, scene_.now.mono)};
}

std::optional<Ruling> Speech::unsaved(const DeviceRecord& record) const {
  if (scene_.saved_revision && *scene_.saved_revision >= record.closed_revision) return std::nullopt;
  return Ruling{.reason = Reason::Untainting,
                .message = "waits until the end of the incident is written in the state ConfigMap",
                .until = {}};
}

void Speech::say_ended(const DeviceRecord& record) {
  constexpr Millis kShown = std::chrono::minutes(10);
  if (record.probation_until) {
    say(record, {.reason = Reason::OnProbation,
                 .message = "untainted without evidence of health: one Unhealthy report doubles the hold",
                 .until = mono_at(*record.probation_until, scene_.now)});
  }
  if (record.closed_at && scene_.now.wall - *record.closed_at < kShown) {
    say(record, {.reason = Reason::Untainted,
                 .message = record.closed_because,
                 .until = mono_at(*record.closed_at + kShown, scene_.now)});
  }
}

TaintPlan Speech::done() {
  planned_.wake_at = wake_.at();
  return std::move(planned_);
}

Ruling recovery_ruling(const DeviceRecord& record, const Scene& scene, Reason reason, std::string_view before) {
  const auto recovery = recovery_of(record, rules_of(record, scene.policy), scene.now);
  Ruling ruling{.reason = reason, .message = fmt::format("{}; {}", before, recovery.why), .until = {}};
  if (recovery.at) ruling.until = mono_at(*recovery.at, scene.now);
  return ruling;
}

std::size_t holders_of(const Scene& scene, const DeviceKey& key) {
  const auto* state = scene.world.tracker().find(key);
  return state == nullptr ? 0 : state->holders.size();
}

}  // namespace dhc::taint
