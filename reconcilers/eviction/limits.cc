#include "reconcilers/eviction/limits.h"

#include <algorithm>

#include <fmt/format.h>

namespace dhc::eviction {

namespace {

/// A longer grace is not known apart from one without end: what is added to a time must not overflow it.
constexpr Millis kLongestGrace = std::chrono::years(10);

/// What the owner of a pod writes: any number at all.
Millis grace_of(const k8s::Pod& pod, Millis most) {
  const auto seconds = pod.meta.deletion_grace_seconds.value_or(pod.grace_period_seconds.value_or(30));
  return seconds >= most / Seconds(1) ? most : Millis(Seconds(std::max<std::int64_t>(seconds, 0)));
}

}  // namespace

MonoTime slot_until(const EvictionAttempt& attempt, const k8s::Pod& pod, const Limits& limits) {
  return attempt.at + grace_of(pod, std::min(limits.counted_grace, kLongestGrace)) + kSlotPatience;
}

MonoTime gone_by(const EvictionAttempt& attempt, const k8s::Pod& pod) {
  return attempt.at + grace_of(pod, kLongestGrace) + kSlotPatience;
}

bool accepted_in_vain(const EvictionAttempt& attempt, const k8s::Pod& pod, const PlanInput& input) {
  return attempt.state == Attempt::State::Accepted && !pod.meta.deletion &&
         input.now.mono >= slot_until(attempt, pod, input.policy.limits);
}

KeptSlots kept_slots(const AffectedPod& first, const Now& now) {
  const auto from = first.opens_at + kSlotsKeptAfter;
  if (now.mono < from) return {.now = false, .changes_at = from};
  const auto turn = now.mono - (now.mono - from) % kSlotsKeptEvery;
  if (now.mono < turn + kSlotsKeptFor) return {.now = true, .changes_at = turn + kSlotsKeptFor};
  return {.now = false, .changes_at = turn + kSlotsKeptEvery};
}

namespace {

/// Until when the attempt holds the pod's slot by what is known of it; none: it holds none. A request on its way holds
/// it until it is answered.
std::optional<MonoTime> holds_until(const EvictionAttempt& attempt, const k8s::Pod& pod, const Limits& limits) {
  switch (attempt.state) {
    case Attempt::State::Sending:
      return MonoTime::max();
    case Attempt::State::Accepted:
      return slot_until(attempt, pod, limits);
    case Attempt::State::Failed:
      // An answer that never came may have been a yes.
      return attempt.doubted_until;
  }
  return std::nullopt;
}

}  // namespace

Budget::Budget(const PlanInput& input)
    : input_(input),
      tokens_(input.requests.tokens().available(input.now.mono)),
      attempts_(input.requests.attempt_tokens().available(input.now.mono)) {
  for (const auto& [uid, attempt] : input.requests.evictions()) {
    const auto* record = input.world.pod(uid);
    if (record == nullptr) continue;
    const auto until = holds_until(attempt, record->pod, input.policy.limits);
    if (!until || input.now.mono >= *until) continue;
    if (*until != MonoTime::max()) next_free_.note(until);
    count(record->pod, attempt.owner, to_string(attempt.key), attempt.at);
  }
}

void Budget::count(const k8s::Pod& pod, const std::string& owner, const std::string& device, MonoTime at) {
  ++in_flight_;
  ++on_node_[pod.node_name];
  if (owner.empty()) return;
  auto& last = incidents_of_[owner].try_emplace(device, at).first->second;
  last = std::max(last, at);
}

/// Whether the affected pod belongs to an incident of its owner that is being handled: the same device, or another pod
/// of the same Job that was bad already when the first was evicted. The Job controller's back-off doubles with every
/// step: pacing a Job's pods one by one would cost hours (seen on 1.37.1).
bool Budget::is_counted(const AffectedPod& affected) const {
  const auto found = incidents_of_.find(affected.pod().meta.controller_identity());
  if (found == incidents_of_.end()) return false;
  if (found->second.contains(to_string(affected.key))) return true;
  return affected.pod().meta.controller->kind == "Job" &&
         std::ranges::any_of(found->second, [&](const auto& entry) { return entry.second >= affected.opens_at; });
}

std::optional<HoldReason> Budget::refuses_by_flight(std::int64_t size) const {
  const auto& limits = input_.policy.limits;
  // A unit larger than a limit would never fit: it goes alone.
  const auto taken = in_flight_ + reserved_;
  if (taken > 0 && taken + size > limits.max_in_flight) {
    return HoldReason{
        .reason = Reason::TooManyInFlight,
        .message = fmt::format(
            "{} evicted pods still exist, evictions.maxInFlight is {}{}", in_flight_, limits.max_in_flight,
            reserved_ == 0 ? std::string() : fmt::format(", and {} pods that go together come first", reserved_)),
        .until = next_free_.at()};
  }
  if (limits.max_in_flight == 0) {
    return HoldReason{.reason = Reason::TooManyInFlight, .message = "evictions.maxInFlight is 0", .until = {}};
  }
  return std::nullopt;
}

std::optional<HoldReason> Budget::refuses_all() const {
  auto hold = refuses_by_flight(1);
  return hold ? hold : refuses_by_rate(1);
}

std::optional<HoldReason> Budget::refuses(const Unit& unit) const {
  const auto size = static_cast<std::int64_t>(unit.affected_pods.size());
  if (auto hold = refuses_by_flight(size)) return hold;
  if (auto hold = refuses_by_share(unit)) return hold;
  return refuses_by_rate(size);
}

std::optional<HoldReason> Budget::refuses_by_share(const Unit& unit) const {
  const auto& limits = input_.policy.limits;
  std::map<std::string, std::int64_t> wanted;
  for (const auto* affected : unit.affected_pods) ++wanted[affected->pod().node_name];
  for (const auto& [node, more] : wanted) {
    const auto found = on_node_.find(node);
    const auto there = found == on_node_.end() ? 0 : found->second;
    if (limits.per_node == 0 || (there > 0 && there + more > limits.per_node)) {
      return HoldReason{.reason = Reason::NodeLimit,
                        .message = fmt::format("{} evicted pods of node {} still exist, evictions.perNode is {}", there,
                                               node, limits.per_node),
                        .until = next_free_.at()};
    }
  }
  for (const auto* affected : unit.affected_pods) {
    const auto owner = affected->pod().meta.controller_identity();
    if (owner.empty()) continue;
    const auto found = incidents_of_.find(owner);
    const auto handled = found == incidents_of_.end() ? 0 : static_cast<std::int64_t>(found->second.size());
    if (!is_counted(*affected) && handled >= limits.per_owner) {
      return HoldReason{.reason = Reason::OwnerLimit,
                        .message = fmt::format("{} incidents of {} {} are being handled, evictions.perOwner is {}",
                                               handled, affected->pod().meta.controller->kind,
                                               affected->pod().meta.controller->name, limits.per_owner),
                        .until = next_free_.at()};
    }
  }
  return std::nullopt;
}

std::optional<HoldReason> Budget::refuses_by_rate(std::int64_t size) const {
  const auto& limits = input_.policy.limits;
  const auto& past = input_.requests;
  if (tokens_ < std::min(size, limits.evictions_per_minute) || limits.evictions_per_minute == 0) {
    return HoldReason{.reason = Reason::RateLimited,
                      .message = fmt::format("evictions.perMinute is {}", limits.evictions_per_minute),
                      .until = enough_at(past.tokens(), size)};
  }
  const auto attempts = attempts_per_minute(limits);
  if (attempts_ < std::min(size, attempts)) {
    return HoldReason{
        .reason = Reason::RateLimited,
        .message = fmt::format("{} attempts a minute are made at evictions.perMinute {}, refused ones included",
                               attempts, limits.evictions_per_minute),
        .until = enough_at(past.attempt_tokens(), size)};
  }
  return std::nullopt;
}

/// None: there are enough now, and those who come first have yet to take theirs.
std::optional<MonoTime> Budget::enough_at(const TokenBucket& bucket, std::int64_t size) const {
  const auto at = bucket.ready_at(promised_ + size, input_.now.mono);
  return at && *at > input_.now.mono ? at : std::nullopt;
}

void Budget::promise(std::int64_t count) {
  promised_ += count;
  tokens_ -= count;
  attempts_ -= count;
}

void Budget::reserve(const Unit& unit, Reason refused) {
  const auto size = static_cast<std::int64_t>(unit.affected_pods.size());
  if (size == 1) return;
  if (refused == Reason::RateLimited) return promise(size);
  const bool keeps = kept_slots(*unit.affected_pods.front(), input_.now).now;
  if (refused == Reason::TooManyInFlight && keeps && !refuses_by_share(unit)) reserved_ += size;
}

void Budget::keep_for(const Unit& unit) {
  reserve(unit, Reason::RateLimited);
  reserve(unit, Reason::TooManyInFlight);
}

void Budget::take(const Unit& unit) {
  promise(static_cast<std::int64_t>(unit.affected_pods.size()));
  for (const auto* affected : unit.affected_pods)
    count(affected->pod(), affected->pod().meta.controller_identity(), to_string(affected->key), input_.now.mono);
}

}  // namespace dhc::eviction
