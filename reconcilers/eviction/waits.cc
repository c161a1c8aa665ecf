#include "reconcilers/eviction/waits.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "domain/contract/our_taint.h"
#include "domain/limits/write_keys.h"
#include "reconcilers/eviction/limits.h"
#include "reconcilers/shared/exclusions.h"
#include "reconcilers/shared/job_credit.h"
#include "reconcilers/shared/rulings.h"

namespace dhc::eviction {

namespace {

constexpr Millis kAllocatablePatience = Seconds(60);
constexpr Millis kSiblingPatience = Seconds(60);
constexpr Millis kConditionPatience = Seconds(30);

std::int64_t seconds_of(Millis time) { return std::chrono::ceil<Seconds>(time).count(); }

/// Whether the policy has this device tainted, as far as no person has said no.
bool will_be_tainted(const Exposure& exposure, const Scene& scene) {
  const auto& taint = exposure.policy->taint;
  const auto* record = scene.memory.find(exposure.key);
  if (!taint || (record != nullptr && record->open && record->acknowledged != Acknowledged::No)) return false;
  if (!needs_node_taint(scene.world, exposure.key)) {
    return taint->device != TaintRules::Device::Never && !exposure.holding->ambiguous;
  }
  const auto found = scene.node_cases.find({scene.world.node_of(exposure.key), exposure.key.scope});
  return found != scene.node_cases.end() && found->second.enough &&
         (found->second.mode == Mode::Enforce || exposure.mode != Mode::Enforce);
}

bool node_is_tainted(const Exposure& exposure, const Scene& scene) {
  const auto* node = scene.world.node(exposure.pod().node_name);
  return node != nullptr && std::ranges::find(node->taints, node_taint()) != node->taints.end();
}

/// A cap that stops the taint stops the eviction, which waits for it.
std::optional<Ruling> full_for_taint(const Exposure& exposure, const Scene& scene, bool by_node) {
  const auto& node = exposure.pod().node_name;
  return by_node ? scene.caps.refuses_node_taint(exposure.key.scope, node)
                 : scene.caps.refuses_taint(exposure.key, node);
}

/// Our condition on the pod, while it names this device, or more devices than it has room for.
const k8s::Condition* condition_of(const Exposure& exposure) {
  const auto& told = exposure.record->told;
  const bool names = told.cut || told.find(to_string(exposure.key)) != nullptr;
  return names ? our_condition(exposure.pod()) : nullptr;
}

/// When the cluster was first asked to get ready for the eviction: an incident may be much older than the policy that
/// enforces. A process before us may have asked: then the condition says when; if not in words that can be believed,
/// this process's own beginning does.
MonoTime asked_at(const Exposure& exposure, const Scene& scene) {
  if (exposure.mode != Mode::Enforce) return due_at(exposure);
  const auto* attempt = scene.ledger.condition(exposure.pod().meta.uid);
  if (attempt != nullptr) return std::max(due_at(exposure), attempt->first_at);
  const auto* condition = condition_of(exposure);
  if (condition == nullptr || !scene.ledger.began_at()) return std::max(due_at(exposure), scene.now.mono);
  auto at = scene.ledger.began_at()->mono;
  if (condition->last_transition) at = std::min(at, mono_of(scene.world.ours(*condition->last_transition), scene.now));
  return std::max(due_at(exposure), at);
}

/// What the node shows of the device's resource while it does not show the loss; null if it does or does not matter.
const ResourceBook* loss_unseen(const Exposure& exposure, const Scene& scene) {
  if (exposure.key.source != DeviceKey::Source::Plugin) return nullptr;
  const auto book = scene.world.books().find(exposure.key.place);
  if (book == scene.world.books().end()) return nullptr;
  const auto entry = book->second.resources().find(exposure.key.scope);
  if (entry == book->second.resources().end()) return nullptr;
  const auto unhealthy = std::max<std::int64_t>(entry->second.held.unhealthy, 1);
  return entry->second.allocatable <= entry->second.capacity - unhealthy ? nullptr : &entry->second;
}

/// Nobody is evicted from a device that reads Healthy, and nobody is told that it is.
Ruling reporter_restarted(const Exposure& exposure, const Scene& scene) {
  const auto* record = scene.memory.find(exposure.key);
  const auto why = record == nullptr ? std::nullopt : why_forgotten(*record);
  return {.reason = Reason::ReporterRestarted,
          .message = fmt::format("{}; nothing is done until it is Unhealthy again, the hold ends, or an operator "
                                 "acknowledges the incident",
                                 why.value_or("its driver or plugin has begun anew")),
          .until = {}};
}

}  // namespace

MonoTime due_at(const Exposure& exposure) {
  return exposure.opens_at + (exposure.policy->evict ? exposure.policy->evict->after : Millis::zero());
}

std::optional<Ruling> window_of(const Exposure& exposure, const Scene& scene) {
  if (!exposure.open && exposure.unknown_now && !exposure.forgotten) {
    return Ruling{.reason = Reason::WaitingWhileUnknown,
                  .message = "the device is Unknown just now; the incident does not open until it is Unhealthy again",
                  .until = {}};
  }
  if (!exposure.open) {
    return Ruling{.reason = Reason::WaitingForWindow,
                  .message = fmt::format("the incident opens after {} s in this state (policy {})",
                                         seconds_of(exposure.policy->after), exposure.policy->name),
                  .until = exposure.opens_at};
  }
  if (!exposure.policy->evict) {
    return Ruling{.reason = Reason::NoEvictionConfigured,
                  .message = fmt::format("policy {} has no evict section", exposure.policy->name),
                  .until = {}};
  }
  if (exposure.forgotten) return reporter_restarted(exposure, scene);
  if (exposure.unknown_now) {
    return Ruling{
        .reason = Reason::WaitingWhileUnknown,
        .message =
            "the device is Unknown just now; the incident stays open, nothing is done until it is Unhealthy again",
        .until = {}};
  }
  const MonoTime due = due_at(exposure);
  if (scene.now.mono < due) {
    return Ruling{.reason = Reason::WaitingForEvictAfter,
                  .message = fmt::format("evict.after of policy {} is {} s", exposure.policy->name,
                                         seconds_of(exposure.policy->evict->after)),
                  .until = due};
  }
  return std::nullopt;
}

std::optional<Ruling> same_device_again(const Exposure& exposure, const Scene& scene) {
  const auto& pod = exposure.pod();
  if (!scene.ledger.lost_recently(pod, *exposure.holding, scene.now)) return std::nullopt;
  const std::string device = exposure.holding->ambiguous ? "one of these devices" : "this device";
  const std::string on_it = exposure.holding->ambiguous ? "has it" : "is on it";
  const auto& controller = pod.meta.controller;
  return Ruling{
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

std::optional<Ruling> still_schedulable(const Exposure& exposure, const Scene& scene) {
  const bool dra = exposure.key.source == DeviceKey::Source::Dra;
  const bool by_node = needs_node_taint(scene.world, exposure.key);
  const auto& holding = *exposure.holding;
  const auto kept_off = [&](const DeviceKey& key) {
    return scene.world.inventory().unschedulable_because(key).has_value();
  };
  if (by_node && node_is_tainted(exposure, scene)) return std::nullopt;
  if (dra && (holding.ambiguous ? (!holding.candidates.empty() && std::ranges::all_of(holding.candidates, kept_off))
                                : kept_off(exposure.key))) {
    return std::nullopt;
  }
  if (will_be_tainted(exposure, scene)) {
    // Nothing is written in observe mode: what would be done next is said as if it were.
    if (exposure.mode != Mode::Enforce) return std::nullopt;
    // What stops the taint stops the eviction, and says so itself.
    if (scene.policy.limits.paused ||
        scene.brake.holding(exposure.key, exposure.pod().node_name, exposure.pod().meta.uid) != nullptr) {
      return std::nullopt;
    }
    if (auto full = full_for_taint(exposure, scene, by_node)) return full;
    const auto* attempt = scene.ledger.write(by_node ? node_write_key(exposure.pod().node_name)
                                                     : rule_write_key(rule_name(exposure.key)));
    const bool failed = attempt != nullptr && attempt->state == Attempt::State::Failed;
    return Ruling{.reason = Reason::WaitingForTaint,
                  .message = fmt::format("policy {} taints {} first, and the taint is not seen yet{}",
                                         exposure.policy->name, by_node ? "the node" : "the device",
                                         failed ? fmt::format(": {}", attempt->error.message) : ""),
                  .until = {}};
  }
  if (!dra || exposure.policy->evict->untainted) return std::nullopt;
  if (holding.ambiguous) {
    return Ruling{
        .reason = Reason::DeviceAmbiguous,
        .message = fmt::format("the claim has {} devices that the report may mean and not all of them are tainted; "
                               "evict.untainted: true evicts all the same",
                               holding.candidates.size()),
        .until = {}};
  }
  return Ruling{.reason = Reason::DeviceStillSchedulable,
                .message =
                    "no NoSchedule or NoExecute taint is seen on the device: the scheduler could hand it straight to "
                    "the replacement; "
                    "evict.untainted: true evicts all the same",
                .until = {}};
}

std::optional<Ruling> loss_not_shown(const Exposure& exposure, const Scene& scene) {
  const auto* resource = loss_unseen(exposure, scene);
  const MonoTime until = asked_at(exposure, scene) + kAllocatablePatience;
  if (resource == nullptr || scene.now.mono >= until) return std::nullopt;
  return Ruling{.reason = Reason::WaitingForAllocatable,
                .message = fmt::format(
                    "node {} shows {} of {} {} allocatable with {} Unhealthy: until that falls its kubelet would "
                    "reject the replacement; waits at most {} s",
                    exposure.key.place, resource->allocatable, resource->capacity, exposure.key.scope,
                    resource->held.unhealthy, seconds_of(kAllocatablePatience)),
                .until = until};
}

std::optional<Ruling> condition_not_shown(const Exposure& exposure, const Scene& scene) {
  if (exposure.mode != Mode::Enforce) return std::nullopt;
  if (condition_of(exposure) != nullptr) return std::nullopt;
  const auto* attempt = scene.ledger.condition(exposure.pod().meta.uid);
  if (attempt != nullptr && attempt->state == Attempt::State::Failed)
    return std::nullopt;  // said there; it holds no eviction
  const MonoTime until = asked_at(exposure, scene) + kConditionPatience;
  if (scene.now.mono >= until) return std::nullopt;
  return Ruling{
      .reason = Reason::WaitingForCondition,
      .message = "the condition DeviceUnhealthy is not seen on the pod yet; its Job's podFailurePolicy may look for it",
      .until = until};
}

std::optional<Ruling> waiting_for(const Exposure& exposure, const Scene& scene) {
  if (auto ruling = same_device_again(exposure, scene)) return ruling;
  if (auto ruling = still_schedulable(exposure, scene)) return ruling;
  if (auto ruling = held_for_credit(exposure, scene)) return ruling;
  if (auto ruling = loss_not_shown(exposure, scene)) return ruling;
  return condition_not_shown(exposure, scene);
}

std::optional<Ruling> waiting_for_siblings(const Exposure& exposure, const std::vector<const Exposure*>& siblings,
                                           const Scene& scene) {
  for (const auto* sibling : siblings) {
    const auto& pod = sibling->pod();
    const auto* attempt = scene.ledger.eviction(pod.meta.uid);
    const bool going = pod.meta.deletion || (attempt != nullptr && attempt->state != Attempt::State::Failed);
    if (pod.meta.uid == exposure.pod().meta.uid || sibling->mode != exposure.mode || !sibling->open || going) continue;
    if (excluded_because(*sibling, scene)) continue;
    auto ruling = window_of(*sibling, scene);
    if (!ruling) ruling = waiting_for(*sibling, scene);
    if (!ruling || !ruling->until || *ruling->until > scene.now.mono + kSiblingPatience) continue;
    return Ruling{
        .reason = Reason::WaitingForSiblings,
        .message = fmt::format("pod {} of the same Job is about to be evicted too: they go together", pod.meta.name),
        .until = ruling->until};
  }
  return std::nullopt;
}

std::optional<std::string> patience_ended(const Exposure& exposure, const Scene& scene) {
  if (loss_unseen(exposure, scene) == nullptr) return std::nullopt;
  return fmt::format("allocatable of node {} did not fall within {} s: its kubelet may reject the replacement",
                     exposure.key.place, seconds_of(kAllocatablePatience));
}

std::optional<Ruling> held_by_last_attempt(const k8s::Pod& pod, const Scene& scene) {
  const auto* attempt = scene.ledger.eviction(pod.meta.uid);
  if (attempt == nullptr) return std::nullopt;
  switch (attempt->state) {
    case Attempt::State::Sending:
      return Ruling{.reason = Reason::Evicting, .message = "the eviction request is on its way", .until = {}};
    case Attempt::State::Accepted:
      if (accepted_in_vain(*attempt, pod, scene)) return std::nullopt;
      return Ruling{.reason = Reason::Evicted, .message = "the API server accepted the eviction", .until = {}};
    case Attempt::State::Failed:
      break;
  }
  const auto kind = attempt->error.kind;
  // What may have happened, or hit another version, is looked at again as soon as the World shows a newer pod.
  const bool moved_on = attempt->resource_version != pod.meta.resource_version;
  const bool world_decides = kind == ErrorKind::TimedOut || kind == ErrorKind::Conflict || kind == ErrorKind::NotFound;
  if (scene.now.mono >= attempt->not_before || (world_decides && moved_on)) return std::nullopt;
  if (kind == ErrorKind::NotFound) {
    return Ruling{.reason = Reason::AlreadyTerminating,
                  .message = "the API server no longer has the pod; its removal is not seen yet",
                  .until = attempt->not_before};
  }
  return held_by_failure(*attempt);
}

}  // namespace dhc::eviction
