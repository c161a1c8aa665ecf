#include "reconcilers/notice/facts.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/cluster/node_subject.h"
#include "domain/cluster/workload.h"
#include "domain/contract/ground_names.h"
#include "domain/contract/names.h"
#include "domain/contract/operator_time.h"
#include "domain/findings/match_device.h"
#include "domain/incidents/suspect_watch.h"
#include "reconcilers/notice/grounds.h"
#include "reconcilers/notice/reporters.h"
#include "reconcilers/notice/unmatched.h"
#include "reconcilers/shared/hold_reasons.h"

namespace dhc::notice {

namespace {

/// **Source:** seen on 1.37.1: a dead plugin or a vanished device leaves the pod's field at Healthy, only the node's
/// numbers change.
void add_silences(const PlanInput& input, Planned<Verdict>& found, Wake& wake) {
  for (const auto& name : input.world.suspicious_nodes()) {
    for (const auto& [resource, entry] : input.world.books().at(name).resources()) {
      const auto add = [&](const std::optional<Moment>& since, Reason reason, std::string message) {
        if (!since) return;
        const MonoTime at = since->mono + kSilence;
        if (input.now.mono < at) return wake.note(at);
        found.verdicts.push_back({.subject = subject_of_node(input.world, name),
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

void add_trial(const PlanInput& input, const BrakeTrial& trial, Planned<Verdict>& found) {
  const auto* record = input.world.pod(trial.pod_uid);
  if (record == nullptr) return;
  found.verdicts.push_back(
      {.subject = subject_of(record->pod),
       .device = to_string(trial.key),
       .policy = {},
       .reason = Reason::BrakeTrial,
       .message = "the half-open brake permits the eviction of this pod, to learn whether another device serves "
                  "its owner better",
       .since = trial.chosen.wall,
       .next_at = std::nullopt});
}

/// Whether a policy in force names this driver or resource, whichever of the two it is.
bool is_named(const Policy& policy, const std::string& scope) {
  return std::ranges::any_of(policy.policies, [&](const DevicePolicy& one) {
    return effective_mode(&one, policy) != Mode::Off && (names_device(one.match, DeviceKey::plugin({}, scope, {})) ||
                                                         names_device(one.match, DeviceKey::dra(scope, {}, {})));
  });
}

/// Without a policy there is nothing to stop, but the fault has not gone with it.
std::string words_of_brake(const PlanInput& input, const BrakeScope& scope, const EngagedBrake& brake) {
  const auto what = to_string(scope, brake);
  if (is_named(input.policy, scope.scope)) {
    return fmt::format("{}: evictions, credits and new taints there stop; {}", what,
                       waits_for(brake, input.policy.limits, input.now));
  }
  return fmt::format(
      "{}: no policy in force names {} now, so there is nothing to stop; it holds for the next one until "
      "{} {}, or until it is released with the annotation {}",
      what, scope.scope, brake.most == 0 ? "none" : fmt::format("at most {}", brake.most), scope.nodes ? "do" : "are",
      kBrakeReleaseAnnotation);
}

Subject subject_of_brake(const PlanInput& input, const BrakeScope& scope) {
  if (!scope.workload.empty()) return subject_of_workload(scope.workload, input.world);
  return scope.node.empty() ? Subject{.kind = "Brake", .ns = {}, .name = scope.scope, .uid = {}}
                            : subject_of_node(input.world, scope.node);
}

void add_brakes(const PlanInput& input, Planned<Verdict>& found) {
  std::set<std::string> tried;  // by the brakes of node and cluster together
  for (const auto& [scope, brake] : input.brake.engaged()) {
    found.verdicts.push_back({.subject = subject_of_brake(input, scope),
                              .device = scope.scope,
                              .policy = {},
                              .reason = Reason::BrakeEngaged,
                              .message = words_of_brake(input, scope, brake),
                              .since = brake.since.wall,
                              .next_at = std::nullopt});
    if (brake.trial && tried.insert(brake.trial->pod_uid).second) add_trial(input, *brake.trial, found);
  }
}

/// A time ahead of the clock would switch the brake, or every acknowledgement, off for good.
void add_refused_annotations(const PlanInput& input, Planned<Verdict>& found, Wake& wake) {
  const auto look = [&](const Subject& subject, std::string_view annotation, std::string_view said) {
    const auto until = operator_time(said, input.now.wall);
    if (until) return;
    if (const auto at = parse_rfc3339(said)) {
      constexpr Millis kFar = std::chrono::hours(1);
      const auto ahead = *at - input.now.wall;
      if (ahead < kFar) wake.note(input.now.mono + std::chrono::ceil<Millis>(ahead));
    }
    found.verdicts.push_back({.subject = subject,
                              .device = std::string(annotation),
                              .policy = {},
                              .reason = Reason::AnnotationRefused,
                              .message = fmt::format("annotation {} has no effect: {}", annotation, until.error()),
                              .since = input.now.wall,
                              .next_at = std::nullopt});
  };
  for (const auto& name : input.world.annotated_nodes()) {
    for (const auto annotation : {kBrakeReleaseAnnotation, kCapReleaseAnnotation, kAcknowledgeAnnotation}) {
      const auto said = k8s::find(input.world.node(name)->meta.annotations, annotation);
      if (said) look(subject_of_node(input.world, name), annotation, *said);
    }
  }
  const Subject configuration{.kind = "Configuration", .ns = {}, .name = "configuration", .uid = {}};
  for (const auto& [annotation, said] : {std::pair(kBrakeReleaseAnnotation, &input.policy.brake_release),
                                         std::pair(kCapReleaseAnnotation, &input.policy.cap_release)}) {
    if (!said->empty()) look(configuration, annotation, *said);
  }
}

/// Said of the workload itself, whose owner reads that and not the verdicts of its pods.
void add_suspects(const PlanInput& input, Planned<Verdict>& found) {
  if (input.suspects == nullptr) return;
  std::set<OwnerInScope> told;
  for (const auto& [who, suspicion] : input.suspects->suspicions()) {
    const auto until = suspicion.clean_since ? std::optional(*suspicion.clean_since + Suspects::kClean) : std::nullopt;
    if (is_ground_name(who.first)) continue;
    auto workloads = workloads_behind(*input.suspects, who, input.world);
    if (workloads.empty()) workloads.push_back(who.first);
    for (const auto& workload : workloads) {
      // Of one that is suspected itself that is said.
      if (workload != who.first && input.suspects->find(workload, who.second) != nullptr) continue;
      if (!told.emplace(workload, who.second).second) continue;
      found.verdicts.push_back({.subject = subject_of_workload(workload, input.world),
                                .device = who.second,
                                .policy = {},
                                .reason = Reason::WorkloadSuspected,
                                .message = words_of_suspicion(who.first, suspicion),
                                .since = suspicion.since,
                                .next_at = until});
    }
  }
}

/// Whoever binds a pod to a node (a nodeSelector of its own, Kueue's topology assignment) is not told by a taint.
void add_storms(const PlanInput& input, Planned<Verdict>& found, Wake& wake) {
  for (const auto& [workload, storm] : input.world.lost_replacements().storms()) {
    if (!rages(storm, input.now)) continue;
    const auto count = storm.rounds.size();
    const auto until = storm.rounds[count - LostReplacements::kStorm].mono + LostReplacements::kWithin;
    wake.note(until);
    found.verdicts.push_back(
        {.subject = storm.last.owner,
         .device = storm.last.node,
         .policy = {},
         .reason = Reason::ReplacementStorm,
         .message =
             fmt::format("{} pods of {} have ended before they ran, in {} rounds since {}; the last, {}, was "
                         "bound to node {}, which has our taint: {}",
                         storm.pods, words_of_workload(workload), count, format_rfc3339(storm.rounds.front().wall),
                         storm.last.pod, storm.last.node, storm.last.words),
         .since = storm.rounds.front().wall,
         .next_at = wall_of(until, input.now)});
  }
}

/// Of one DaemonSet's several causes the one on most nodes.
void add_rollouts(const PlanInput& input, Planned<Verdict>& found) {
  if (input.rollouts == nullptr) return;
  std::map<std::pair<std::string, std::string>, const RolloutDamage*> worst;
  for (const auto& [cause, damage] : *input.rollouts) {
    auto& known = worst[{damage.rollout.owner.uid, damage.scope}];
    if (known == nullptr || known->nodes < damage.nodes) known = &damage;
  }
  for (const auto& [source, damage] : worst) {
    found.verdicts.push_back({.subject = subject_of(damage->rollout),
                              .device = damage->scope,
                              .policy = {},
                              .reason = Reason::DriverRolling,
                              .message = words_of(*damage),
                              .since = damage->since,
                              .next_at = std::nullopt});
  }
}

void add_contested(const PlanInput& input, Planned<Verdict>& found) {
  for (const auto* one : input.in_focus) {
    const auto& affected = *one;
    const auto* attempt = input.requests.condition(affected.pod().meta.uid);
    if (attempt == nullptr) continue;
    const bool is_refused = attempt->state == Attempt::State::Failed && attempt->error.kind == ErrorKind::Contested;
    if (!is_refused && !is_taken_away(*attempt, affected.pod())) continue;
    const auto again = input.requests.may_send_condition_at(affected.pod(), attempt->said);
    found.say(affected.key, {.subject = subject_of(affected.pod()),
                             .device = to_string(affected.key),
                             .policy = affected.policy->name,
                             .mode = to_string(affected.mode),
                             .reason = Reason::ConditionContested,
                             .message = is_refused ? attempt->error.message : std::string(kTakenAway),
                             .since = affected.since.wall,
                             .next_at = again ? std::optional(wall_of(*again, input.now)) : std::nullopt});
  }
}

/// A label of that name opts nobody out, and whoever wrote it believes that it does.
void add_opt_out_labels(const PlanInput& input, Planned<Verdict>& found) {
  for (const auto* one : input.in_focus) {
    const auto& affected = *one;
    const auto& pod = affected.pod();
    const auto* ns = input.world.namespace_of(pod.meta.ns);
    const bool on_pod = k8s::find(pod.meta.labels, kOptOutAnnotation) == std::string_view("true");
    const bool on_namespace = ns != nullptr && k8s::find(ns->labels, kOptOutAnnotation) == std::string_view("true");
    if (!on_pod && !on_namespace) continue;
    found.say(affected.key,
              {.subject = subject_of(pod),
               .device = to_string(affected.key),
               .policy = affected.policy->name,
               .mode = to_string(affected.mode),
               .reason = Reason::AnnotationRefused,
               .message = fmt::format("the label {} on {} has no effect: write it as an annotation", kOptOutAnnotation,
                                      on_pod ? std::string("the pod") : "Namespace " + pod.meta.ns),
               .since = affected.since.wall,
               .next_at = std::nullopt});
  }
}

/// The first few of the nodes, and how many there are besides.
std::string words_for(const std::set<std::string>& nodes) {
  constexpr std::size_t kMostNodes = 5;
  std::string words;
  std::size_t named = 0;
  for (const auto& node : nodes) {
    if (named++ == kMostNodes) break;
    words += (words.empty() ? "" : ", ") + (node.empty() ? "no node" : node);
  }
  return nodes.size() <= kMostNodes ? words : fmt::format("{} and {} others", words, nodes.size() - kMostNodes);
}

/// Whoever may publish slices of one node may do so under any pool's name: those that count for nothing are named.
void add_disputed_pools(const PlanInput& input, Planned<Verdict>& found) {
  constexpr std::size_t kMostPools = 500;
  const auto& inventory = input.world.inventory();
  const auto add = [&](const std::string& driver, const std::string& device, std::string message, WallTime since) {
    found.verdicts.push_back({.subject = {.kind = "Driver", .ns = {}, .name = driver, .uid = {}},
                              .device = device,
                              .policy = {},
                              .reason = Reason::PoolContested,
                              .message = std::move(message),
                              .since = since,
                              .next_at = std::nullopt});
  };
  const auto& disputed = input.world.disputed_pools();
  std::size_t shown = 0;
  for (const auto& [name, since] : disputed) {
    const auto& [driver, pool] = name;
    if (shown++ == kMostPools)
      return add(driver, {}, fmt::format("{} more pools", disputed.size() - kMostPools), since);
    const auto known = inventory.pools().find(name);
    if (known == inventory.pools().end()) continue;
    const auto& home = known->second;
    auto nodes = inventory.claimants_of(name);
    if (home.is_settled) nodes.erase(home.node);
    auto message =
        home.is_settled
            ? fmt::format("pool {} is {}: slices of {} are ignored", pool,
                          home.node.empty() ? std::string("of no node") : home.node + "'s", words_for(nodes))
            : fmt::format(
                  "pool {} is published by {}, and no running pod on its devices settles which node owns it: none of "
                  "their devices' taints and attributes is believed",
                  pool, words_for(nodes));
    add(driver, fmt::format("{}/{}", driver, pool), std::move(message), since);
  }
}

Reason reason_of(ReportDoubt::Kind kind) {
  switch (kind) {
    case ReportDoubt::Kind::ClaimBehind:
      return Reason::WaitingForClaim;
    case ReportDoubt::Kind::Observed:
      return Reason::DeviceAmbiguous;
    case ReportDoubt::Kind::Incomplete:
      return Reason::ReportIncomplete;
  }
  return Reason::DeviceAmbiguous;
}

/// Of a claim that is not known at all nobody knows the driver.
const DevicePolicy* policy_of_doubt(const PlanInput& input, const k8s::Pod& pod, const ReportDoubt& doubt) {
  if (!doubt.about.scope.empty()) return policy_for(input.world, input.policy, pod, doubt.about);
  return input.policy.policies.empty() ? nullptr : &input.policy.policies.front();
}

/// Reports that are laid on no device, as far as a policy asks about such devices.
void add_doubts(const PlanInput& input, Planned<Verdict>& found) {
  for (const auto& uid : input.world.with_doubts()) {
    const auto& record = *input.world.pod(uid);
    std::set<std::pair<std::string, ReportDoubt::Kind>> said;
    for (const auto& doubt : record.doubts) {
      const auto* policy = policy_of_doubt(input, record.pod, doubt);
      if (policy == nullptr || effective_mode(policy, input.policy) == Mode::Off) continue;
      if (!said.emplace(doubt.claim, doubt.kind).second) continue;
      found.verdicts.push_back({.subject = subject_of(record.pod),
                                .device = doubt.claim,
                                .policy = policy->name,
                                .reason = reason_of(doubt.kind),
                                .message = doubt.why,
                                .since = doubt.since.wall,
                                .next_at = std::nullopt});
    }
  }
}

}  // namespace

Planned<Verdict> find_facts(const PlanInput& input) {
  Planned<Verdict> found;
  Wake wake;
  add_silences(input, found, wake);
  add_brakes(input, found);
  add_suspects(input, found);
  add_storms(input, found, wake);
  add_rollouts(input, found);
  add_refused_annotations(input, found, wake);
  add_contested(input, found);
  add_opt_out_labels(input, found);
  add_disputed_pools(input, found);
  add_doubts(input, found);
  auto silent = find_silent_reporters(input);
  wake.note(silent.wake_at);
  std::ranges::move(silent.verdicts, std::back_inserter(found.verdicts));
  std::ranges::move(find_suspected_grounds(input), std::back_inserter(found.verdicts));
  std::ranges::move(find_other_words(input), std::back_inserter(found.verdicts));
  std::ranges::move(find_unmatched(input), std::back_inserter(found.verdicts));
  found.wake_at = wake.at();
  return found;
}

}  // namespace dhc::notice
