#include "reconcilers/notice/facts.h"

#include <string>

#include <fmt/format.h>

namespace dhc::notice {

namespace {

/// **Source:** seen on 1.37.1: a dead plugin or a vanished device leaves the pod's field at Healthy, only the node's
/// numbers change.
void add_silences(const Scene& scene, Planned<Verdict>& found, Wake& wake) {
  for (const auto& name : scene.world.suspicious_nodes()) {
    for (const auto& [resource, entry] : scene.world.books().at(name).resources()) {
      const auto add = [&](const std::optional<Moment>& since, Reason reason, std::string message) {
        if (!since) return;
        const MonoTime at = since->mono + kSilence;
        if (scene.now.mono < at) return wake.note(at);
        found.verdicts.push_back({.subject = subject_of_node(scene.world, name),
                                  .device = resource,
                                  .policy = {},
                                  .reason = reason,
                                  .message = std::move(message),
                                  .since = since->wall,
                                  .next_at = std::nullopt});
      };
      add(entry.silent_since, Reason::SilentPlugin,
          fmt::format("running pods hold {} {} of which {} are reported Unhealthy, and only {} are allocatable: the "
                      "plugin is silent, its Healthy means nothing",
                      entry.held.total, resource, entry.held.unhealthy, entry.allocatable));
      add(entry.vanished_since, Reason::DeviceVanished,
          fmt::format("capacity of {} is {}, it was {} since the node's last boot: a device has vanished from the "
                      "plugin's list",
                      resource, entry.capacity, entry.largest_capacity));
    }
  }
}

void add_brakes(const Scene& scene, Planned<Verdict>& found) {
  for (const auto& [scope, brake] : scene.brake.engaged()) {
    const MonoTime until = brake.last_onset.mono + scene.policy.limits.brake_within;
    Subject subject = scope.node.empty() ? Subject{.kind = "Brake", .ns = {}, .name = scope.scope, .uid = {}}
                                         : subject_of_node(scene.world, scope.node);
    found.verdicts.push_back(
        {.subject = std::move(subject),
         .device = scope.scope,
         .policy = {},
         .reason = Reason::BrakeEngaged,
         .message = fmt::format("{} within {} s: new evictions there stop", to_string(scope, brake),
                                std::chrono::ceil<Seconds>(scene.policy.limits.brake_within).count()),
         .since = brake.since.wall,
         .next_at = wall_of(until, scene.now)});
  }
}

void add_contested(const Scene& scene, Planned<Verdict>& found) {
  for (const auto& exposure : scene.exposures) {
    const auto* attempt = scene.ledger.condition(exposure.pod().meta.uid);
    if (attempt == nullptr || attempt->state != Attempt::State::Failed || attempt->error.kind != ErrorKind::Contested)
      continue;
    found.verdicts.push_back({.subject = subject_of(exposure.pod()),
                              .device = to_string(exposure.key),
                              .policy = exposure.policy->name,
                              .reason = Reason::ConditionContested,
                              .message = attempt->error.message,
                              .since = exposure.since.wall,
                              .next_at = wall_of(attempt->not_before, scene.now)});
  }
}

}  // namespace

Planned<Verdict> find_facts(const Scene& scene) {
  Planned<Verdict> found;
  Wake wake;
  add_silences(scene, found, wake);
  add_brakes(scene, found);
  add_contested(scene, found);
  found.wake_at = wake.at();
  return found;
}

}  // namespace dhc::notice
