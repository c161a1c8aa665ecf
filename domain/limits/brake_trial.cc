// The half of Brake that tries, one pod at a time, whether what has been bad for long is bad indeed.
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/cluster/disruption.h"
#include "domain/limits/brake.h"

namespace dhc {

namespace {

constexpr Millis kLongestWait = std::chrono::hours(24);
/// How long a pod may take to go; then another one is tried.
constexpr Millis kGoing = std::chrono::minutes(10);
constexpr Millis kNotAgain = std::chrono::hours(1);
/// How long a later pod may take to run well.
constexpr Millis kVoidAfter = std::chrono::minutes(30);
/// Pods of an owner are looked for in all pods of the cluster: not at every turn.
constexpr Millis kLookInterval = Seconds(5);

bool is_later(const k8s::Pod& pod, const BrakeTrial& trial) {
  return pod.meta.ns == trial.ns && pod.meta.controller && pod.meta.controller->uid == trial.owner_uid &&
         pod.meta.uid != trial.pod_uid && is_live(pod) && !pod.meta.deletion && pod.meta.creation &&
         *pod.meta.creation >= trial.evicted->wall;
}

/// The pod of the same owner that came after the trial's; the oldest of several.
const PodRecord* find_later(const World& world, const BrakeTrial& trial) {
  const PodRecord* found = nullptr;
  for (const auto& [uid, record] : world.pods()) {
    if (!is_later(record.pod, trial)) continue;
    const auto age = [](const PodRecord& one) { return std::pair(*one.pod.meta.creation, one.pod.meta.uid); };
    if (found == nullptr || age(record) < age(*found)) found = &record;
  }
  return found;
}

bool runs_well(const PodRecord& record, const World& world) {
  if (record.pod.phase != k8s::PodPhase::Running || record.held_devices.empty()) return false;
  return std::ranges::none_of(record.held_devices, [&](const HeldDevice& held_device) {
    const auto* state = world.tracker().find(held_device.key);
    return state != nullptr && state->health == k8s::Health::Unhealthy;
  });
}

/// Why no later pod can come; none: one may.
std::optional<std::string> is_void(const BrakeTrial& trial, const World& world, const Now& now) {
  const auto* job = world.job(trial.ns, trial.owner_uid);
  if (job != nullptr && k8s::is_finished(job->job)) return "its Job is over";
  if (trial.owner_is_watched && world.owner(trial.ns, trial.owner_uid) == nullptr) return "its owner is gone";
  if (!trial.well_since && now.mono - trial.evicted->mono >= kVoidAfter) {
    return fmt::format("no later pod of its owner ran well within {} min", kVoidAfter / std::chrono::minutes(1));
  }
  return std::nullopt;
}

struct Step {
  bool over = false;
  std::string how;
};

/// Takes the trial one step further. `affected_uids`: of the affected pods.
Step follow(BrakeTrial& trial, const BrakeSighting& seen, const std::set<std::string_view>& affected_uids) {
  const auto& world = seen.world;
  const auto& now = seen.now;
  if (!trial.evicted) {
    const auto* record = world.pod(trial.pod_uid);
    if (record == nullptr || record->pod.meta.deletion || !is_live(record->pod)) {
      // What comes after it has times of the server's clock.
      const bool is_told = record != nullptr && record->pod.meta.deletion;
      trial.evicted = {
          .mono = now.mono,
          .wall = is_told ? std::chrono::floor<Seconds>(asked_to_end_at(record->pod)) : server_now(world, now)};
    }
    return {};
  }
  const auto* later = trial.later_uid.empty() ? nullptr : world.pod(trial.later_uid);
  if (later == nullptr || !is_later(later->pod, trial)) {
    if (!trial.later_uid.empty() || now.mono - trial.looked_at >= kLookInterval) {
      trial.looked_at = now.mono;
      later = find_later(world, trial);
    } else {
      later = nullptr;
    }
    trial.later_uid = later == nullptr ? SharedText() : later->pod.meta.uid;
    trial.well_since.reset();
  }
  if (later != nullptr && affected_uids.contains(later->pod.meta.uid)) {
    return {.over = true, .how = fmt::format("failed: its later pod {} is on a bad device too", later->pod.meta.name)};
  }
  if (later == nullptr || !runs_well(*later, world)) {
    trial.well_since.reset();
  } else if (!trial.well_since) {
    trial.well_since = now.mono;
  }
  if (trial.well_since && now.mono - *trial.well_since >= seen.policy.limits.brake_trial_runs) {
    return {.over = true, .how = fmt::format("passed: its later pod {} runs well", later->pod.meta.name)};
  }
  if (auto why = is_void(trial, world, now)) return {.over = true, .how = "void: " + *why};
  return {};
}

}  // namespace

MonoTime next_trial_at(const EngagedBrake& brake, const Limits& limits) {
  Millis wait = limits.brake_trial_after;
  for (std::int64_t i = 0; i < brake.trials && wait < kLongestWait; ++i) wait = std::min(wait * 2, kLongestWait);
  return brake.waits_from.mono + wait;
}

MonoTime next_step_at(const BrakeTrial& trial, const Limits& limits) {
  if (!trial.evicted) return trial.chosen.mono + kGoing;
  if (trial.well_since) return *trial.well_since + limits.brake_trial_runs;
  const MonoTime end = trial.evicted->mono + kVoidAfter;
  return trial.later_uid.empty() ? std::min(end, trial.looked_at + kLookInterval) : end;
}

void Brake::follow_trials(const BrakeSighting& seen) {
  std::set<std::string_view> affected_uids;
  for (const auto& affected : seen.affected_pods) affected_uids.insert(affected.pod().meta.uid);
  for (auto& [scope, brake] : engaged_) {
    std::erase_if(brake.not_again, [&](const auto& entry) { return entry.second <= seen.now.mono; });
    if (!brake.trial) continue;
    auto& trial = *brake.trial;
    trial.is_written = trial.is_written || (seen.saved_revision && *seen.saved_revision >= trial.revision);
    const bool was_evicted = trial.evicted.has_value();
    const auto step = follow(trial, seen, affected_uids);
    if (trial.evicted && !was_evicted) {
      ++brake.trials;
      ++revision_;
    }
    const bool is_refused = !trial.evicted && seen.now.mono - trial.chosen.mono >= kGoing;
    if (!step.over && !is_refused) continue;
    if (is_refused) brake.not_again[trial.pod_uid] = seen.now.mono + kNotAgain;
    brake.last_trial = is_refused
                           ? fmt::format("{}/{} on {} could not be evicted", trial.ns, trial.pod, to_string(trial.key))
                           : fmt::format("{}/{} on {} {}", trial.ns, trial.pod, to_string(trial.key), step.how);
    if (step.over) brake.waits_from = moment_of(seen.now);
    brake.trial.reset();
    ++revision_;
  }
}

bool Brake::may_try(const DeviceKey& key, const std::string& node, const std::string& pod_uid, const Limits& limits,
                    const Now& now) const {
  bool any = false;
  for (const auto& scope : scopes_on(key, node)) {
    const auto found = engaged_.find(scope);
    if (found == engaged_.end()) continue;
    const auto& brake = found->second;
    // Where nodes reject whatever they are given a trial proves nothing.
    if (scope.nodes || brake.trial || brake.low_since || brake.not_again.contains(pod_uid)) return false;
    if (now.mono < next_trial_at(brake, limits)) return false;
    any = true;
  }
  return any;
}

std::size_t Brake::count_half_open(const Limits& limits, const Now& now) const {
  return static_cast<std::size_t>(std::ranges::count_if(engaged_, [&](const auto& entry) {
    return entry.second.trial || now.mono >= next_trial_at(entry.second, limits);
  }));
}

void Brake::begin_trial(const BrakeTrial& trial, const std::string& node) {
  for (const auto& scope : scopes_on(trial.key, node)) {
    const auto found = engaged_.find(scope);
    if (found != engaged_.end()) found->second.trial = trial;
  }
  ++revision_;
}

std::string waits_for(const EngagedBrake& brake, const Limits& limits, const Now& now) {
  std::string words =
      brake.most == 0 ? "released when none is" : fmt::format("released when at most {} are", brake.most);
  if (brake.low_since) return words + fmt::format(" for {} s", kReleaseSettle / Seconds(1));
  if (brake.trial) {
    words += fmt::format("; half-open: {}/{} on {} is tried, ", brake.trial->ns, brake.trial->pod,
                         to_string(brake.trial->key));
    return words + (brake.trial->evicted ? fmt::format("a later pod of its owner must run well for {} s",
                                                       std::chrono::ceil<Seconds>(limits.brake_trial_runs).count())
                                         : "it is to be evicted");
  }
  const MonoTime at = next_trial_at(brake, limits);
  words += now.mono < at ? fmt::format("; half-open from {}", format_rfc3339(wall_of(at, now)))
                         : "; half-open: no pod with room under the caps and a known place outside can be tried now";
  if (!brake.last_trial.empty()) words += "; the last trial, " + brake.last_trial;
  return words;
}

}  // namespace dhc
