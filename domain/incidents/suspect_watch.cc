#include "domain/incidents/suspect_watch.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "domain/cluster/node_departure.h"
#include "domain/cluster/workload.h"
#include "domain/contract/names.h"
#include "domain/limits/caps.h"

namespace dhc {

namespace {

/// Workloads against which anything speaks.
std::set<std::string> known_workloads(const Suspects& suspects) {
  std::set<std::string> known;
  for (const auto& onset : suspects.onsets()) {
    for (const auto& [workload, share] : onset.workloads) known.insert(workload);
  }
  for (const auto& [who, suspicion] : suspects.suspicions()) known.insert(who.first);
  return known;
}

}  // namespace

void note_onsets(Suspects& suspects, const std::set<DeviceKey>& opened, const IncidentStore& incidents,
                 const World& world) {
  for (const auto& key : opened) {
    const auto* record = incidents.find(key);
    const auto* facts = record == nullptr ? nullptr : record->incident.facts();
    if (facts == nullptr || !key.is_device()) continue;
    // Whoever works on the node makes devices look bad.
    const auto* node = world.node_under(key);
    const auto workloads = workloads_on(key, world);
    if (workloads.empty() || (node != nullptr && why_leaving(*node))) continue;
    DeviceOnset onset{.card = world.card_of(key),
                      .node = world.node_of(key),
                      .at = facts->opened_at,
                      .since = facts->since,
                      .well = well_beside(key, workloads, world),
                      .workloads = {}};
    for (const auto& workload : workloads) onset.workloads.emplace(workload, share_of(workload, key, world));
    suspects.note(std::move(onset));
  }
}

SuspectHearing hearing_of(const Suspects& suspects, const std::vector<AffectedPod>& affected_pods, const World& world,
                          const Policy& policy, const Now& now) {
  SuspectHearing hearing{.least = static_cast<std::size_t>(policy.limits.suspect_after),
                         .on_bad = {},
                         .acknowledged = {},
                         .released = cap_release(policy.cap_release, now),
                         .now = now};
  const auto hear = [&](const std::string& workload, const k8s::Pod& pod) {
    if (const auto until = vouched_until(pod, world, now.wall)) {
      auto& latest = hearing.acknowledged.try_emplace(workload, *until).first->second;
      latest = std::max(latest, *until);
    }
  };
  // Whoever looks at a suspect may have repaired its device before.
  for (const auto& [who, suspicion] : suspects.suspicions()) {
    for (const auto* record : pods_of_workload(who.first, world)) hear(who.first, record->pod);
  }
  if (affected_pods.empty()) return hearing;
  const auto known = known_workloads(suspects);
  if (known.empty()) return hearing;
  for (const auto& affected : affected_pods) {
    const auto workload = workload_of(affected.pod(), world);
    if (!known.contains(workload)) continue;
    if (!affected.unknown_now) hearing.on_bad.emplace(workload, affected.key.scope);
    hear(workload, affected.pod());
  }
  return hearing;
}

bool is_with_suspects(const Suspects& suspects, const DeviceKey& key, const World& world) {
  if (suspects.suspicions().empty()) return false;
  const auto workloads = workloads_on(key, world);
  return !workloads.empty() && std::ranges::all_of(workloads, [&](const std::string& workload) {
    return suspects.find(workload, key.scope) != nullptr;
  });
}

std::string words_of_suspicion(const std::string& workload, const Suspicion& suspicion) {
  return fmt::format(
      "{} is suspected of breaking the devices that it holds: {}; its pods are not moved and their devices not blamed, "
      "until it has held no bad device for 24 h, or the annotation {} on it or on one of its pods says when it was "
      "looked at",
      words_of_workload(workload), suspicion.evidence, kAcknowledgeAnnotation);
}

}  // namespace dhc
