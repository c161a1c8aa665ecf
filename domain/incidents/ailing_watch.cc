#include "domain/incidents/ailing_watch.h"

#include <algorithm>
#include <map>
#include <utility>

#include "domain/cluster/disruption.h"

namespace dhc {

namespace {

using Found = std::map<std::string, AilingPod>;  // by UID

bool gives_back(const DevicePolicy* policy) {
  return policy != nullptr && policy->mode != Mode::Off && policy->job_retry && policy->job_retry->credit;
}

bool is_of_known_job(const k8s::Pod& pod, const World& world) {
  return pod.meta.controller && pod.meta.controller->kind == "Job" && world.job_of(pod.meta) != nullptr;
}

AilingPod& entry_of(const k8s::Pod& pod, Found& found) {
  auto& entry = found[pod.meta.uid];
  entry.ns = pod.meta.ns;
  entry.uid = pod.meta.uid;
  entry.job_uid = pod.meta.controller->uid;
  return entry;
}

/// What is said of the pod's device, in the form in which the end of the pod would remember it; none: nothing that
/// counts once it has ended.
std::optional<AilingPod::Device> word_about(const AffectedPod& affected, const World& world) {
  AilingPod::Device device{.key = affected.key, .source = affected.source, .word = {}, .said = affected.said};
  if (affected.source == SignalSource::Taint) return device;
  if (affected.source == SignalSource::Claim) return std::nullopt;
  const auto& uid = affected.pod().meta.uid;
  if (const auto* state = world.tracker().find(affected.key); state != nullptr && state->is_witness(uid)) {
    device.said = state->message;
    return device;
  }
  const auto* other = world.tracker().other_word_of(affected.key);
  if (other == nullptr || !std::ranges::binary_search(other->witnesses, uid)) return std::nullopt;
  device.word = other->word;
  device.said = other->message;
  return device;
}

void add_running(const std::vector<AffectedPod>& affected_pods, const World& world, const Now& now, Found& found) {
  for (const auto& affected : affected_pods) {
    if (!gives_back(affected.policy) || !is_of_known_job(affected.pod(), world)) continue;
    auto device = word_about(affected, world);
    if (!device) continue;
    auto& entry = entry_of(affected.pod(), found);
    entry.seen = now.wall;
    entry.devices.push_back(*std::move(device));
  }
}

void add_ended(const World& world, const Policy& policy, Found& found) {
  for (const auto& [uid, ending] : world.endings()) {
    const auto& pod = ending.pod;
    if (pod.phase != k8s::PodPhase::Failed || was_rejected(pod) || was_taken_otherwise(pod)) continue;
    if (!is_of_known_job(pod, world)) continue;
    // Nothing more comes of it.
    if (!ending.told.empty() && world.pod(uid) == nullptr) continue;
    for (const auto& device : ending.devices) {
      const bool is_reported = device.was_unhealthy || !device.other_word.empty();
      if (!is_reported && device.taints.empty()) continue;
      if (!std::ranges::any_of(policies_for(world, policy, pod, device.key), gives_back)) continue;
      auto& entry = entry_of(pod, found);
      entry.seen = ending.at.wall;
      entry.ended = true;
      entry.devices.push_back({.key = device.key,
                               .source = is_reported ? SignalSource::Report : SignalSource::Taint,
                               .word = device.was_unhealthy ? std::string() : device.other_word,
                               .said = device.was_unhealthy ? device.message : device.other_message});
    }
  }
}

}  // namespace

AilingPods::AilingPods(const std::vector<AilingPod>& written, const Now& now) : written_at_(now.mono) {
  for (const auto& pod : written) {
    if (!pod.ended) written_at_ = std::min(written_at_, mono_of(pod.seen, now));
    for (const auto& device : pod.devices) written_.emplace(pod.uid, device.key);
  }
}

bool AilingPods::look(const std::vector<AffectedPod>& affected_pods, const World& world, const Policy& policy,
                      const Now& now) {
  Found found;
  add_running(affected_pods, world, now, found);
  add_ended(world, policy, found);
  // Of what nobody has said anything since, the earlier word stands, as old as it is.
  for (const auto& [uid, noted] : world.noted_ailing()) found.try_emplace(uid, noted);
  all_.clear();
  Places places;
  for (auto& [uid, pod] : found) {
    for (const auto& device : pod.devices) places.emplace(uid, device.key);
    all_.push_back(std::move(pod));
  }
  if (std::ranges::includes(places, written_)) {
    stale_since_.reset();
  } else if (!stale_since_) {
    stale_since_ = now.mono;
  }
  const bool is_news = !std::ranges::includes(written_, places);
  const bool is_stale = stale_since_ && now.mono - *stale_since_ >= kAilingLinger;
  const bool is_old = !places.empty() && now.mono - written_at_ >= kAilingRenewal;
  if (!is_news && !is_stale && !is_old) return false;
  written_ = std::move(places);
  written_at_ = now.mono;
  stale_since_.reset();
  return true;
}

std::optional<MonoTime> AilingPods::next_change_at() const {
  return stale_since_ ? std::optional(*stale_since_ + kAilingLinger) : std::nullopt;
}

}  // namespace dhc
