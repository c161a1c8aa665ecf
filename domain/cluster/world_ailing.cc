// The part of World that takes over which Jobs' pods were on a bad device when a process before us last looked.
#include <algorithm>
#include <utility>

#include "domain/cluster/disruption.h"
#include "domain/cluster/world.h"

namespace dhc {

namespace {

/// A word of yesterday, as in a state that was restored, says nothing about today; nor does one from the future.
bool still_counts(const AilingPod& ailing, const Now& now) {
  const auto age = now.wall - ailing.seen;
  return age < kEndingMemory && age > -kEndingMemory;
}

bool is_same_pod(const AilingPod& ailing, const k8s::Pod& pod) {
  const auto& owner = pod.meta.controller;
  return pod.meta.ns == ailing.ns && owner && owner->kind == "Job" && owner->uid == ailing.job_uid;
}

}  // namespace

void World::note_ailing(std::vector<AilingPod> pods) {
  ailing_.clear();
  for (auto& pod : pods) {
    const std::string uid = pod.uid;
    ailing_.insert_or_assign(uid, std::move(pod));
  }
  ailing_due_ = !ailing_.empty();
}

void World::follow_ailing(const Now& now) {
  ailing_due_ = false;
  for (auto at = ailing_.begin(); at != ailing_.end();) {
    const auto* record = pod(at->first);
    const bool stands = record != nullptr && still_counts(at->second, now) && is_same_pod(at->second, record->pod);
    if (stands && is_live(record->pod)) {
      // Whoever calls the device healthy, and is believed, takes the word back.
      std::erase_if(at->second.devices, [&](const AilingPod::Device& device) {
        const auto* state = tracker_.find(device.key);
        return state != nullptr && state->health == k8s::Health::Healthy;
      });
      if (!at->second.devices.empty()) {
        ++at;
        continue;
      }
    } else if (stands) {
      recall_ending(*record, at->second, now);
    }
    at = ailing_.erase(at);
  }
}

/// The end of a pod that failed while nobody looked.
void World::recall_ending(const PodRecord& record, const AilingPod& ailing, const Now& now) {
  const auto& pod = record.pod;
  if (pod.phase != k8s::PodPhase::Failed || was_rejected(pod) || endings_.contains(pod.meta.uid)) return;
  auto last_words = ailing;
  if (!ailing.ended) {
    // **Source:** seen on 1.37.1: a plugin's device keeps the last word of its kubelet on the pod that has ended.
    const auto resolved = resolve_held_devices(
        pod, [this](std::string_view ns, std::string_view name) { return claim(claim_key(ns, name)); });
    std::erase_if(last_words.devices, [&](const AilingPod::Device& device) {
      const auto* held = find_held_device(resolved.held_devices, device.key);
      return held != nullptr && held->reported == k8s::Health::Healthy;
    });
  }
  if (last_words.devices.empty()) return;
  // By the node's clock; it was alive when it was last seen so.
  const auto ended_at = ailing.ended ? ailing.seen : std::max(pod.last_start.value_or(now.wall), ailing.seen);
  PodEnding ending{.pod = pod, .devices = {}, .at = moment_of(ended_at, now), .told = told_of(pod)};
  add_ailing(last_words, ending);
  touch(pod);
  keep_ending(std::move(ending));
}

/// What is known of its devices by that word alone.
void World::add_ailing(const AilingPod& ailing, PodEnding& ending) const {
  for (const auto& device : ailing.devices) {
    auto at = std::ranges::find(ending.devices, device.key, &PodEnding::Device::key);
    if (at == ending.devices.end()) {
      ending.devices.push_back({.key = device.key, .message = {}, .taints = {}, .other_word = {}, .other_message = {}});
      at = std::prev(ending.devices.end());
    }
    if (device.source == SignalSource::Taint) {
      at->taints = driver_taints_.standing(device.key);
    } else if (!device.word.empty()) {
      if (at->other_word.empty()) at->other_message = device.said;
      if (at->other_word.empty()) at->other_word = device.word;
    } else if (!at->was_unhealthy) {
      at->was_unhealthy = true;
      at->message = device.said;
    }
  }
}

}  // namespace dhc
