#include "reconcilers/eviction/waits.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "domain/cluster/node_departure.h"
#include "domain/contract/our_taint.h"
#include "domain/findings/pauses.h"
#include "domain/limits/write_keys.h"
#include "reconcilers/eviction/limits.h"
#include "reconcilers/eviction/notice_gate.h"
#include "reconcilers/shared/card_taints.h"
#include "reconcilers/shared/exclusions.h"
#include "reconcilers/shared/hold_reasons.h"
#include "reconcilers/shared/job_credit.h"
#include "reconcilers/shared/tolerations.h"

namespace dhc::eviction {

namespace {

/// How long a refused taint of another device of the card holds an eviction.
constexpr Millis kCardPatience = std::chrono::minutes(2);

constexpr Millis kAllocatablePatience = Seconds(60);
constexpr Millis kSiblingPatience = Seconds(60);
constexpr Millis kConditionPatience = Seconds(30);

std::int64_t seconds_of(Millis time) { return std::chrono::ceil<Seconds>(time).count(); }

/// A cap that stops the taint stops the eviction, which waits for it.
std::optional<HoldReason> full_for_taint(const AffectedPod& affected, const PlanInput& input, bool by_node) {
  const auto& node = affected.pod().node_name;
  return by_node ? input.caps.refuses_node_taint(affected.key.scope, node)
                 : input.caps.refuses_taint(affected.key, node);
}

/// Our condition on the pod, while it names this device, or more devices than it has room for.
const k8s::Condition* condition_of(const AffectedPod& affected) {
  const auto& record = *affected.record;
  const bool names = (record.told && record.told->cut) || record.word_of(to_string(affected.key)) != nullptr;
  return names ? our_condition(affected.pod()) : nullptr;
}

/// When the cluster was first asked to get ready for the eviction: an incident may be much older than the policy that
/// enforces. A process before us may have asked: then the condition says when; if not in words that can be believed,
/// this process's own beginning does.
MonoTime asked_at(const AffectedPod& affected, const PlanInput& input) {
  if (affected.mode != Mode::Enforce) return due_at(affected);
  const auto* attempt = input.requests.condition(affected.pod().meta.uid);
  if (attempt != nullptr) return std::max(due_at(affected), attempt->first_at);
  const auto* condition = condition_of(affected);
  if (condition == nullptr || !input.requests.began_at()) return std::max(due_at(affected), input.now.mono);
  auto at = input.requests.began_at()->mono;
  if (condition->last_transition) at = std::min(at, mono_of(input.world.ours(*condition->last_transition), input.now));
  return std::max(due_at(affected), at);
}

/// What the node shows of the device's resource while it does not show the loss; null if it does or does not matter.
const ResourceBook* loss_unseen(const AffectedPod& affected, const PlanInput& input) {
  if (affected.key.source != DeviceKey::Source::Plugin) return nullptr;
  const auto* book = input.world.resource_book(affected.key.place, affected.key.scope);
  if (book == nullptr) return nullptr;
  const auto unhealthy = std::max<std::int64_t>(book->held.unhealthy, 1);
  return book->allocatable <= book->capacity - unhealthy ? nullptr : book;
}

/// Nobody is evicted from a device that reads Healthy, and nobody is told that it is.
HoldReason reporter_restarted(const AffectedPod& affected, const PlanInput& input) {
  const auto* record = input.incidents.find(affected.key);
  const auto why = record == nullptr ? std::nullopt : why_forgotten(*record);
  return {.reason = Reason::ReporterRestarted,
          .message = fmt::format("{}; nothing is done until it is Unhealthy again, the hold ends, or an operator "
                                 "acknowledges the incident",
                                 why.value_or("its driver or plugin has restarted")),
          .until = {}};
}

/// What a driver or plugin says while it begins anew, or what is said of its devices meanwhile, may be its own fault.
HoldReason driver_rolling(const AffectedPod& affected, const PlanInput& input) {
  const auto rollout = input.world.rollout_of(affected.key);
  const auto words = !rollout              ? std::string("its driver or plugin has begun anew")
                     : rollout->is_leaving ? fmt::format("{} is being replaced", rollout->pod)
                                           : fmt::format("{} is new", rollout->pod);
  return {.reason = Reason::DriverRolling,
          .message = fmt::format("{}: what breaks there counts if it is still bad {} s after that", words,
                                 seconds_of(kRolloutHold)),
          .until = affected.opens_at};
}

}  // namespace

MonoTime due_at(const AffectedPod& affected) {
  return affected.opens_at + (affected.policy->evict ? affected.policy->evict->after : Millis::zero());
}

std::optional<HoldReason> window_of(const AffectedPod& affected, const PlanInput& input) {
  if (!affected.open && affected.unknown_now && !affected.forgotten) {
    return HoldReason{
        .reason = Reason::WaitingWhileUnknown,
        .message = "the device is Unknown just now; the incident does not open until it is Unhealthy again",
        .until = {}};
  }
  if (!affected.open && affected.rolls_until == affected.opens_at) return driver_rolling(affected, input);
  if (!affected.open) {
    return HoldReason{.reason = Reason::WaitingForWindow,
                      .message = fmt::format("the incident opens after {} s in this state (policy {})",
                                             seconds_of(affected.policy->after), affected.policy->name),
                      .until = affected.opens_at};
  }
  if (!affected.policy->evict) {
    return HoldReason{.reason = Reason::NoEvictionConfigured,
                      .message = fmt::format("policy {} has no evict section", affected.policy->name),
                      .until = {}};
  }
  if (affected.forgotten) return reporter_restarted(affected, input);
  if (affected.unknown_now) {
    return HoldReason{
        .reason = Reason::WaitingWhileUnknown,
        .message =
            "the device is Unknown just now; the incident stays open, nothing is done until it is Unhealthy again",
        .until = {}};
  }
  const MonoTime due = due_at(affected);
  if (input.now.mono < due) {
    return HoldReason{.reason = Reason::WaitingForEvictAfter,
                      .message = fmt::format("evict.after of policy {} is {} s", affected.policy->name,
                                             seconds_of(affected.policy->evict->after)),
                      .until = due};
  }
  return std::nullopt;
}

std::optional<HoldReason> node_cordoned(const AffectedPod& affected, const PlanInput& input) {
  const auto& name = affected.pod().node_name;
  const auto* node = input.world.node(name);
  if (node == nullptr || !node->unschedulable || !affected.policy->evict) return std::nullopt;
  MonoTime since = input.now.mono;
  if (const auto book = input.world.books().find(name); book != input.world.books().end())
    since = book->second.cordon_seen_at().value_or(moment_of(input.now)).mono;
  if (const auto at = cordoned_at(*node)) since = std::min(since, mono_of(input.world.ours(*at), input.now));
  const Millis wait = affected.policy->evict->cordon_wait;
  if (input.now.mono >= since + wait) return std::nullopt;
  return HoldReason{.reason = Reason::NodeCordoned,
                    .message = fmt::format("node {} is cordoned; evict.cordonWait of policy {} is {} s", name,
                                           affected.policy->name, seconds_of(wait)),
                    .until = since + wait};
}

std::optional<HoldReason> held_by_itself(const AffectedPod& affected, const PlanInput& input) {
  for (const auto holds : {excluded_because, tolerated, window_of, node_cordoned}) {
    if (auto hold = holds(affected, input)) return hold;
  }
  return std::nullopt;
}

std::optional<HoldReason> same_device_again(const AffectedPod& affected, const PlanInput& input) {
  const auto& pod = affected.pod();
  if (!input.requests.lost_recently(pod, *affected.held_device, input.now)) return std::nullopt;
  const std::string device = affected.held_device->ambiguous ? "one of these devices" : "this device";
  const std::string on_it = affected.held_device->ambiguous ? "has it" : "is on it";
  const auto& controller = pod.meta.controller;
  return HoldReason{
      .reason = Reason::ReplacementOnSameDevice,
      .message = controller
                     ? fmt::format("{} {} lost a pod to {} within the hour and its replacement {} again: not evicted "
                                   "again",
                                   controller->kind, controller->name, device, on_it)
                     : fmt::format("pod {}/{} was evicted from node {} because of {} within the hour and {} again: not "
                                   "evicted again",
                                   pod.meta.ns, pod.meta.name, pod.node_name, device, on_it),
      .until = {}};
}

/// The replacement must not get another partition of the card that is bad. The device itself is tainted: a card that
/// the API server lets nobody taint whole does not hold its pods for ever.
std::optional<HoldReason> rest_of_card(const AffectedPod& affected, const PlanInput& input) {
  if (affected.mode != Mode::Enforce || affected.held_device->ambiguous) return std::nullopt;
  for (const auto& other : open_on_card(input, affected.key)) {
    const auto* attempt = input.requests.write(rule_write_key(card_rule_name(other)));
    const bool failed = attempt != nullptr && attempt->state == Attempt::State::Failed;
    const auto until = failed ? std::optional(attempt->first_at + kCardPatience) : std::nullopt;
    if (until && input.now.mono >= *until) continue;
    return HoldReason{
        .reason = Reason::WaitingForTaint,
        .message =
            fmt::format("policy {} taints the other devices of the card first, and the taint of {} is not seen yet{}",
                        affected.policy->name, other.device, failed ? fmt::format(": {}", attempt->error.message) : ""),
        .until = until};
  }
  return std::nullopt;
}

std::optional<HoldReason> still_schedulable(const AffectedPod& affected, const PlanInput& input) {
  const bool dra = affected.key.source == DeviceKey::Source::Dra;
  const bool by_node = needs_node_taint(input.world, affected.key);
  const auto& held_device = *affected.held_device;
  const bool comes_back = tolerates_ours(affected, input.world);
  if (by_node && node_is_tainted(affected, input.world) && !comes_back) return std::nullopt;
  // What stops a taint stops the eviction, and says so itself.
  const auto is_stopped = [&] {
    return pause_for(input.world, input.policy, input.now.wall, affected.pod(), affected.key) ||
           input.brake.holding(affected.key, affected.pod().node_name, affected.pod().meta.uid) != nullptr;
  };
  if (dra && is_kept_off(affected, input)) return is_stopped() ? std::nullopt : rest_of_card(affected, input);
  if (will_be_tainted(affected, input) && !comes_back) {
    // Nothing is written in observe mode: what would be done next is said as if it were.
    if (affected.mode != Mode::Enforce) return std::nullopt;
    if (is_stopped()) return std::nullopt;
    if (auto full = full_for_taint(affected, input, by_node)) return full;
    const auto* attempt =
        input.requests.write(by_node ? node_write_key(affected.pod().node_name)
                                     : rule_write_key(input.world.inventory().rule_name_for(affected.key)));
    const bool failed = attempt != nullptr && attempt->state == Attempt::State::Failed;
    return HoldReason{.reason = Reason::WaitingForTaint,
                      .message = fmt::format("policy {} taints {} first, and the taint is not seen yet{}",
                                             affected.policy->name, by_node ? "the node" : "the device",
                                             failed ? fmt::format(": {}", attempt->error.message) : ""),
                      .until = {}};
  }
  if (!dra || affected.policy->evict->untainted) return std::nullopt;
  if (held_device.ambiguous) {
    return HoldReason{
        .reason = Reason::DeviceAmbiguous,
        .message = fmt::format("the claim has {} devices that the report may mean and not all of them are tainted; "
                               "evict.untainted: true evicts all the same",
                               held_device.candidates.size()),
        .until = {}};
  }
  return HoldReason{
      .reason = Reason::DeviceStillSchedulable,
      .message =
          "no NoSchedule or NoExecute taint is seen on the device: the scheduler could hand it straight to "
          "the replacement; "
          "evict.untainted: true evicts all the same",
      .until = {}};
}

std::optional<HoldReason> loss_not_shown(const AffectedPod& affected, const PlanInput& input) {
  const auto* resource = loss_unseen(affected, input);
  const MonoTime until = asked_at(affected, input) + kAllocatablePatience;
  if (resource == nullptr || input.now.mono >= until) return std::nullopt;
  return HoldReason{.reason = Reason::WaitingForAllocatable,
                    .message = fmt::format(
                        "node {} shows {} of {} {} allocatable with {} Unhealthy: until that falls its kubelet would "
                        "reject the replacement; waits at most {} s",
                        affected.key.place, resource->allocatable, resource->capacity, affected.key.scope,
                        resource->held.unhealthy, seconds_of(kAllocatablePatience)),
                    .until = until};
}

std::optional<HoldReason> condition_not_shown(const AffectedPod& affected, const PlanInput& input) {
  if (affected.mode != Mode::Enforce) return std::nullopt;
  if (condition_of(affected) != nullptr) return std::nullopt;
  const auto* attempt = input.requests.condition(affected.pod().meta.uid);
  if (attempt != nullptr && attempt->state == Attempt::State::Failed)
    return std::nullopt;  // said there; it holds no eviction
  const MonoTime until = asked_at(affected, input) + kConditionPatience;
  if (input.now.mono >= until) return std::nullopt;
  return HoldReason{
      .reason = Reason::WaitingForCondition,
      .message = "the condition DeviceUnhealthy is not seen on the pod yet; its Job's podFailurePolicy may look for it",
      .until = until};
}

std::optional<HoldReason> waiting_for(const AffectedPod& affected, const PlanInput& input) {
  if (auto hold = same_device_again(affected, input)) return hold;
  if (auto hold = still_schedulable(affected, input)) return hold;
  if (auto hold = held_for_credit(affected, input)) return hold;
  return loss_not_shown(affected, input);
}

Followers followers_of(const std::vector<const AffectedPod*>& siblings, const PlanInput& input) {
  Followers found;
  for (const auto* sibling : siblings) {
    const auto& pod = sibling->pod();
    const auto* attempt = input.requests.eviction(pod.meta.uid);
    const bool going = pod.meta.deletion || (attempt != nullptr && attempt->state != Attempt::State::Failed);
    if (!sibling->open || going || excluded_because(*sibling, input) || tolerated(*sibling, input)) continue;
    auto hold = window_of(*sibling, input);
    if (!hold) hold = waiting_for(*sibling, input);
    if (!hold) hold = has_time_left(*sibling, input);
    auto& followers = hold ? found.waiting : found.unshown;
    if (!hold) hold = condition_not_shown(*sibling, input);
    if (!hold || !hold->until) continue;
    if (*hold->until > input.now.mono + kSiblingPatience) {
      const MonoTime near_at = *hold->until - kSiblingPatience;
      found.more_at = std::min(found.more_at.value_or(near_at), near_at);
      continue;
    }
    followers.push_back({.affected = sibling, .ready_at = *hold->until});
  }
  return found;
}

std::optional<HoldReason> waiting_for_siblings(const AffectedPod& affected, const std::vector<Follower>& followers) {
  const auto& uid = affected.pod().meta.uid;
  const auto found = std::ranges::find_if(followers, [&](const Follower& one) {
    return one.affected->pod().meta.uid != uid && one.affected->mode == affected.mode;
  });
  if (found == followers.end()) return std::nullopt;
  return HoldReason{.reason = Reason::WaitingForSiblings,
                    .message = fmt::format("pod {} of the same Job is about to be evicted too: they go together",
                                           found->affected->pod().meta.name),
                    .until = found->ready_at};
}

std::optional<std::string> patience_ended(const AffectedPod& affected, const PlanInput& input) {
  if (loss_unseen(affected, input) == nullptr) return std::nullopt;
  return fmt::format("allocatable of node {} did not fall within {} s: its kubelet may reject the replacement",
                     affected.key.place, seconds_of(kAllocatablePatience));
}

std::optional<HoldReason> held_by_last_attempt(const k8s::Pod& pod, const PlanInput& input) {
  const auto* attempt = input.requests.eviction(pod.meta.uid);
  if (attempt == nullptr) return std::nullopt;
  switch (attempt->state) {
    case Attempt::State::Sending:
      return HoldReason{.reason = Reason::Evicting, .message = "the eviction request is on its way", .until = {}};
    case Attempt::State::Accepted:
      if (accepted_in_vain(*attempt, pod, input)) return std::nullopt;
      return HoldReason{.reason = Reason::Evicted, .message = "the API server accepted the eviction", .until = {}};
    case Attempt::State::Failed:
      break;
  }
  const auto kind = attempt->error.kind;
  // What may have happened, or hit another version, is looked at again as soon as the World shows a newer pod.
  const bool moved_on = attempt->resource_version != pod.meta.resource_version;
  const bool world_decides = kind == ErrorKind::TimedOut || kind == ErrorKind::Conflict || kind == ErrorKind::NotFound;
  if (input.now.mono >= attempt->not_before || (world_decides && moved_on)) return std::nullopt;
  if (kind == ErrorKind::NotFound) {
    return HoldReason{.reason = Reason::AlreadyTerminating,
                      .message = "the API server no longer has the pod; its removal is not seen yet",
                      .until = attempt->not_before};
  }
  return held_by_failure(*attempt);
}

}  // namespace dhc::eviction
