#include "reconcilers/eviction/signal.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/cluster/owner_chain.h"
#include "domain/cluster/resolution.h"

namespace dhc::eviction {

namespace {

bool accepts(const Signal& signal, k8s::Health health) {
  return std::ranges::find(signal.health, health) != signal.health.end();
}

/// A device that nobody reports is Unknown.
bool supports(const Signal& signal, const HeldDevice& held_device) {
  const auto health = held_device.reported.value_or(k8s::Health::Unknown);
  const bool is_named = std::ranges::find(signal.health_words, held_device.other_word) != signal.health_words.end();
  if (is_named && !held_device.other_word.empty())
    return !signal.message || signal.message->matches(held_device.message);
  // Unknown comes without words: those of the last Unhealthy report have matched already.
  return accepts(signal, health) &&
         (health != k8s::Health::Unhealthy || !signal.message || signal.message->matches(held_device.message));
}

/// Another living holder whose report says it, where the pod's own does not.
const PodRecord* witness_of(const AffectedPod& affected, const Signal& signal, const World& world) {
  if (supports(signal, *affected.held_device)) return nullptr;
  const auto* state = world.tracker().find(affected.key);
  if (state == nullptr) return nullptr;
  for (const auto& uid : state->holders) {
    const auto* record = world.pod(uid);
    if (record == nullptr || !record->readable || !is_live(record->pod)) continue;
    const auto* held_device = find_held_device(record->held_devices, affected.key);
    if (held_device != nullptr && held_device->reported && supports(signal, *held_device)) return record;
  }
  return nullptr;
}

std::string fresh_health_text(const HeldDevice& held_device) {
  if (!held_device.other_word.empty()) return held_device.other_word;
  const auto health = held_device.reported.value_or(k8s::Health::Unknown);
  return fmt::format("{}{}", to_string(health),
                     health == k8s::Health::Unhealthy ? " with other words of the driver" : "");
}

std::unexpected<Error> outdated(const EvictPod& action, std::string_view found) {
  return fail(ErrorKind::Outdated,
              fmt::format("a fresh read shows that {}: pod {} was not evicted", found, action.name));
}

bool allocates(const k8s::ResourceClaim& claim, const DeviceKey& key) {
  return std::ranges::any_of(claim.results, [&](const k8s::AllocationResult& result) {
    return !result.admin_access && DeviceKey::dra(result.driver, result.pool, result.device) == key;
  });
}

/// The slice is found by name: what it says is compared, not which one it is.
Status judge_taint(const EvictPod& action, const JudgedObjects& fresh) {
  const auto& key = action.key;
  const auto* claim = fresh.claim ? &*fresh.claim : nullptr;
  const auto& slice = fresh.slice;
  if (claim == nullptr || !allocates(*claim, key)) {
    return outdated(action,
                    fmt::format("claim {} does not hold {} any more", action.signal.claim_name, to_string(key)));
  }
  const bool is_at_home = slice && slice->node_name == action.signal.slice_node;
  if (is_at_home && slice->driver == key.scope && slice->pool == key.place) {
    const auto device = std::ranges::find(slice->devices, key.device, &k8s::SliceDevice::name);
    const auto is_named = [&](const k8s::Taint& taint) { return fits_any(action.signal.device_taints, taint); };
    if (device != slice->devices.end() && std::ranges::any_of(device->taints, is_named)) return {};
  }
  return outdated(action, fmt::format("the driver's taint on {} is gone", to_string(key)));
}

/// An answer may come after the plan has looked. By the plan's time: what it asks for ends, however often it is asked.
Status judge_answer(const EvictPod& action, const k8s::Pod& fresh) {
  if (!action.notice) return {};
  const auto found = answered(*action.notice, fresh, action.decided_at);
  if (found.state != AnsweredNotice::State::Waits) return {};
  return outdated(action, fmt::format("by its answer now it has until {}", format_rfc3339(found.until)));
}

}  // namespace

Signal signal_of(const AffectedPod& affected, const World& world) {
  const auto& match = affected.policy->match;
  Signal signal;
  if (!affected.held_device->claim.empty()) {
    signal.claim_name = affected.held_device->claim.substr(affected.held_device->claim.find('/') + 1);
    signal.claim_uid = affected.held_device->claim_uid;
    if (const auto* claim = world.claim(affected.held_device->claim))
      signal.claim_version = claim->meta.resource_version;
  }
  switch (affected.source) {
    case SignalSource::Claim:
      signal.claim_conditions = match.claim_conditions;
      return signal;
    case SignalSource::Taint:
      signal.device_taints = match.device_taints;
      if (const auto* slice = world.inventory().slice_of(affected.key)) {
        signal.slice_name = slice->meta.name;
        signal.slice_uid = slice->meta.uid;
        signal.slice_version = slice->meta.resource_version;
        signal.slice_node = slice->node_name;
      }
      return signal;
    case SignalSource::Report:
      break;
  }
  signal.health = match.health;
  signal.health_words = match.health_words;
  signal.message = match.message;
  if (const auto* witness = witness_of(affected, signal, world)) {
    signal.witness_ns = witness->pod.meta.ns;
    signal.witness_name = witness->pod.meta.name;
    signal.witness_uid = witness->pod.meta.uid;
    signal.witness_version = witness->pod.meta.resource_version;
  }
  return signal;
}

Status judge_pod(const EvictPod& action, const k8s::Pod& fresh) {
  if (fresh.meta.uid != action.uid) {
    return fail(ErrorKind::NotFound, fmt::format("pod {} has gone, another one has its name", action.name));
  }
  if (fresh.meta.deletion) return outdated(action, "it is terminating already");
  if (fresh.phase == k8s::PodPhase::Succeeded || fresh.phase == k8s::PodPhase::Failed) {
    return outdated(action, "it has ended");
  }
  if (says_opt_out(fresh.meta)) return outdated(action, "it has opted out");
  return judge_answer(action, fresh);
}

Status judge_signal(const EvictPod& action, const JudgedObjects& fresh) {
  const auto& signal = action.signal;
  const auto* claim = fresh.claim ? &*fresh.claim : nullptr;
  if (claim != nullptr && claim->meta.uid != signal.claim_uid) {
    return outdated(action, fmt::format("claim {} is another one now", signal.claim_name));
  }
  if (!signal.claim_conditions.empty()) {
    if (claim != nullptr && find_claim_condition(signal.claim_conditions, *claim, action.key) != nullptr) return {};
    return outdated(action, fmt::format("no condition of claim {} mentions {} any longer", signal.claim_name,
                                        to_string(action.key)));
  }
  if (!signal.device_taints.empty()) return judge_taint(action, fresh);
  if (signal.health.empty() && signal.health_words.empty()) return {};
  const auto& reporter = fresh.reporter;
  if (!is_live(reporter))
    return outdated(action, fmt::format("pod {}, which reports the device, has ended", reporter.meta.name));
  const auto resolution = resolve_held_devices(reporter, [&](std::string_view ns, std::string_view name) {
    return claim != nullptr && claim->meta.ns == ns && claim->meta.name == name ? claim : nullptr;
  });
  const auto* held_device = find_held_device(resolution.held_devices, action.key);
  if (held_device == nullptr) {
    return outdated(action, fmt::format("pod {} does not hold {} any more", reporter.meta.name, to_string(action.key)));
  }
  if (supports(signal, *held_device)) return {};
  return outdated(action, fmt::format("{} is {} now", to_string(action.key), fresh_health_text(*held_device)));
}

}  // namespace dhc::eviction
