#include "reconcilers/notice/grounds.h"

#include <optional>
#include <string>
#include <utility>

#include "domain/cluster/node_subject.h"
#include "domain/contract/ground_names.h"
#include "domain/incidents/suspect_watch.h"

namespace dhc::notice {

namespace {

/// By its name alone while none of its pods is known.
Subject subject_of_release(const ReleaseName& release, const World& world) {
  std::string ns(release.ns);
  std::string name(release.name);
  const auto found = world.daemon_set(ns, name);
  if (!found) return {.kind = "Workload", .ns = {}, .name = ns + "/DaemonSet/" + name, .uid = {}};
  return {.kind = "DaemonSet", .ns = std::move(ns), .name = std::move(name), .uid = found->uid};
}

}  // namespace

std::vector<Verdict> find_suspected_grounds(const PlanInput& input) {
  std::vector<Verdict> found;
  if (input.suspects == nullptr) return found;
  for (const auto& [who, suspicion] : input.suspects->suspicions()) {
    const auto& [ground, scope] = who;
    const auto node = node_of_ground(ground);
    const auto release = release_of_ground(ground);
    if (!node && !release) continue;
    if (node && is_full_of_suspects(*input.suspects, *node, scope, input.world)) continue;
    found.push_back(
        {.subject = node ? subject_of_node(input.world, *node) : subject_of_release(*release, input.world),
         .device = scope,
         .policy = {},
         .reason = node ? Reason::NodeSuspected : Reason::DriverSuspected,
         .message = words_of_suspicion(ground, suspicion),
         .since = suspicion.since,
         .next_at = suspicion.clean_since ? std::optional(*suspicion.clean_since + Suspects::kClean) : std::nullopt});
  }
  return found;
}

}  // namespace dhc::notice
