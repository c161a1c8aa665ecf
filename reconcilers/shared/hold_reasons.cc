#include "reconcilers/shared/hold_reasons.h"

#include <utility>

#include <fmt/format.h>

#include "base/rfc3339.h"

namespace dhc {

namespace {

Reason reason_of_failure(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Blocked:
      return Reason::BlockedByBudget;
    case ErrorKind::Contested:
    case ErrorKind::Altered:
      return Reason::ChangedByOther;
    case ErrorKind::Forbidden:
    case ErrorKind::Invalid:
    case ErrorKind::Declined:
      return Reason::Refused;
    case ErrorKind::Outdated:
      return Reason::SignalGone;
    case ErrorKind::NotFound:
    case ErrorKind::Conflict:
    case ErrorKind::Gone:
    case ErrorKind::TooManyRequests:
    case ErrorKind::Unauthorized:
    case ErrorKind::Doubtful:
    case ErrorKind::Unread:
    case ErrorKind::Unavailable:
    case ErrorKind::TimedOut:
    case ErrorKind::Cancelled:
    case ErrorKind::Malformed:
      return Reason::BackingOff;
  }
  return Reason::BackingOff;
}

}  // namespace

std::optional<HoldReason> held_by_brake(const PlanInput& input, const DeviceKey& key, const std::string& node,
                                        std::string_view stopped, std::string_view pod_uid) {
  const auto* brake = input.brake.holding(key, node, pod_uid);
  if (brake == nullptr) return std::nullopt;
  const auto& [scope, engaged] = *brake;
  return HoldReason{
      .reason = Reason::Braked,
      .message = fmt::format("{}: suspect {}{}; the brake is {}", to_string(scope, engaged), suspect_of(scope), stopped,
                             waits_for(engaged, input.policy.limits, input.now)),
      .until = {}};
}

std::optional<HoldReason> held_by_view(const PlanInput& input, const DeviceKey& key, KindSet kinds) {
  if (input.views_asked != nullptr) (*input.views_asked)[key] |= kinds;
  const auto old = input.world.views().too_old(kinds, input.now);
  if (!old) return std::nullopt;
  const auto kind = k8s::to_string(old->kind);
  auto message =
      old->doubted ? fmt::format("the watch of {} is interrupted, or what it said is not what the API server has", kind)
                   : fmt::format("the watch of {} has said nothing since {}; a view older than {} s is not acted on",
                                 kind, format_rfc3339(wall_of(old->heard_at, input.now)),
                                 std::chrono::duration_cast<Seconds>(kOldestView).count());
  return HoldReason{.reason = Reason::ViewTooOld, .message = std::move(message), .until = {}};
}

std::string words_of_failure(const Attempt& failed) {
  return fmt::format("{}: {}; attempt {}", to_string(failed.error.kind), failed.error.message, failed.failures);
}

HoldReason held_by_failure(const Attempt& failed) {
  return {
      .reason = reason_of_failure(failed.error.kind), .message = words_of_failure(failed), .until = failed.not_before};
}

std::optional<HoldReason> held_by_write(const PlanInput& input, const std::string& key, const std::string& seen_version,
                                        Reason waiting, std::string_view asks) {
  if (input.requests.may_write(key, seen_version, input.now, asks)) return std::nullopt;
  const auto* attempt = input.requests.write(key);
  if (attempt->state == Attempt::State::Failed) return held_by_failure(*attempt);
  if (input.requests.is_taken_away(key, asks)) {
    return HoldReason{.reason = Reason::ChangedByOther,
                      .message = std::string(kTakenAway),
                      .until = input.requests.may_write_at(key, asks)};
  }
  return HoldReason{.reason = waiting,
                    .message = "the request is on its way, or its effect is not seen yet",
                    .until = input.requests.may_write_at(key, asks)};
}

bool is_called_unknown(const World& world, const DeviceRecord& record) {
  const auto* state = world.tracker().find(record.key);
  const bool is_drivers = record.is_open() && is_drivers_own(record.incident.facts()->source);
  return !is_drivers && state != nullptr && !state->holders.empty() && state->has_source &&
         state->health == k8s::Health::Unknown && !state->forgotten;
}

bool calls_bad(const AffectedPod& affected, const DeviceKey& key) {
  return affected.key == key && affected.open && !affected.unknown_now;
}

Verdict verdict_of(About about, HoldReason hold, const Now& now) {
  return {.subject = std::move(about.subject),
          .device = std::move(about.device),
          .policy = std::move(about.policy),
          .mode = about.mode,
          .gate = about.gate,
          .reason = hold.reason,
          .message = std::move(hold.message),
          .since = about.since,
          .next_at = hold.until ? std::optional(wall_of(*hold.until, now)) : std::nullopt};
}

}  // namespace dhc
