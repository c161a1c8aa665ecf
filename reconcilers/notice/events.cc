#include "reconcilers/notice/events.h"

#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/hash.h"
#include "base/rfc3339.h"

namespace dhc::notice {

namespace {

/// Whether a verdict is worth an Event. Waits and limits are not: they come and go, and are read at /verdicts.
bool is_news(Reason reason) {
  switch (reason) {
    case Reason::Evicted:
    case Reason::WouldEvict:
    case Reason::BlockedByBudget:
    case Reason::Refused:
    case Reason::SignalGone:
    case Reason::DeviceStillSchedulable:
    case Reason::MirrorPod:
    case Reason::DaemonSetPod:
    case Reason::StuckTerminating:
    case Reason::NotTerminating:
    case Reason::OptedOut:
    case Reason::BarePod:
    case Reason::SharedClaim:
    case Reason::ClaimStillPinned:
    case Reason::ReplacementOnSameDevice:
    case Reason::DeviceAmbiguous:
    case Reason::ReporterRestarted:
    case Reason::SilentPlugin:
    case Reason::DeviceVanished:
    case Reason::NoReplacementDevice:
    case Reason::BrakeEngaged:
    case Reason::BrakeTrial:
    case Reason::AnnotationRefused:
    case Reason::ConditionContested:
    case Reason::Tainted:
    case Reason::WouldTaint:
    case Reason::Untainted:
    case Reason::OnProbation:
    case Reason::TaintUnsupported:
    case Reason::ChangedByOther:
    case Reason::Acknowledged:
    case Reason::Quarantined:
    case Reason::StateDamaged:
    case Reason::StateNotRead:
    case Reason::StateNotSaved:
    case Reason::StateFull:
    case Reason::StateFromNewerVersion:
    case Reason::CapReached:
    case Reason::Credited:
    case Reason::NotCreditable:
    case Reason::WouldEndJob:
    case Reason::CreditReverted:
    case Reason::DiedOfDevice:
    case Reason::ProbablyDiedOfDevice:
    case Reason::RejectedByKubelet:
    case Reason::JobDiedOfDevice:
    case Reason::EvictedPodSucceeded:
    case Reason::BlackHoleNode:
      return true;
    default:
      return false;
  }
}

/// A brake of the whole cluster, a configuration from a file, a driver and a resource cannot carry an Event.
bool is_object(const Subject& subject) {
  return subject.kind != "Brake" && subject.kind != "Configuration" && subject.kind != "Driver" &&
         subject.kind != "Resource";
}

/// Said of a node or rule, and about one device.
bool is_about_taint(const Verdict& verdict) {
  return (verdict.subject.kind == "Node" || verdict.subject.kind == "DeviceTaintRule") && !verdict.policy.empty();
}

/// Read from the Job's own annotation: its Event was made when that was written, perhaps a month ago.
bool is_retold(const Verdict& verdict) {
  const bool is_loss = verdict.reason == Reason::EvictedPodSucceeded || verdict.reason == Reason::JobDiedOfDevice;
  return is_loss && verdict.policy.empty();
}

bool is_good_news(Reason reason) {
  return reason == Reason::Untainted || reason == Reason::Acknowledged || reason == Reason::Credited;
}

std::string action_of(Reason reason) {
  switch (reason) {
    case Reason::Evicted:
      return "Evict";
    case Reason::WouldEvict:
      return "Observe";
    case Reason::Tainted:
      return "Taint";
    case Reason::Untainted:
    case Reason::OnProbation:
      return "Untaint";
    case Reason::WouldTaint:
      return "Observe";
    case Reason::Credited:
      return "Credit";
    case Reason::DeviceUnhealthy:
    case Reason::Recovered:
    case Reason::DiedOfDevice:
    case Reason::ProbablyDiedOfDevice:
    case Reason::RejectedByKubelet:
    case Reason::JobDiedOfDevice:
    case Reason::EvictedPodSucceeded:
    case Reason::BlackHoleNode:
      return "Notice";
    default:
      return "Hold";
  }
}

class EventPlanner {
 public:
  explicit EventPlanner(const Scene& scene) : scene_(scene) {}

  void add_openings() {
    for (const auto& exposure : scene_.exposures) {
      if (!exposure.open) continue;
      const auto device = to_string(exposure.key);
      open_.insert({exposure.pod().meta.uid, device});
      emit(subject_of(exposure.pod()), Reason::DeviceUnhealthy, device, exposure.since.wall,
           fmt::format("{} unhealthy since {} (policy {}, mode {}){}{}", device, format_rfc3339(exposure.since.wall),
                       exposure.policy->name, to_string(exposure.mode), exposure.said.empty() ? "" : ": ",
                       exposure.said));
    }
  }

  void add_verdicts(std::span<const Verdict> verdicts) {
    for (const auto& verdict : verdicts) {
      if (!is_news(verdict.reason) || !is_object(verdict.subject) || is_retold(verdict)) continue;
      const bool about_pod = verdict.subject.kind == "Pod";
      if (about_pod && !open_.contains({verdict.subject.uid, verdict.device}))
        continue;  // not before the incident is open
      const auto subject =
          verdict.reason == Reason::ReplacementOnSameDevice ? owner_of(verdict.subject) : verdict.subject;
      emit(subject, verdict.reason, verdict.device, verdict.since,
           about_pod || is_about_taint(verdict)
               ? fmt::format("{}: {} (policy {})", verdict.device, verdict.message, verdict.policy)
               : verdict.message,
           !is_good_news(verdict.reason));
    }
  }

  void add_recoveries() {
    for (const auto& key : scene_.world.tracker().recovered()) {
      const auto* state = scene_.world.tracker().find(key);
      for (const auto& uid : state->relieved) {
        const auto* record = scene_.world.pod(uid);
        if (record == nullptr || !is_live(record->pod)) continue;
        const auto* policy = policy_for(scene_.world, scene_.policy, record->pod, key);
        const bool was_open = policy != nullptr && policy->mode != Mode::Off && state->last_incident >= policy->after;
        if (!was_open) continue;
        const auto device = to_string(key);
        emit(subject_of(record->pod), Reason::Recovered, device, state->recovered_at->wall,
             fmt::format("{} healthy again since {}", device, format_rfc3339(state->recovered_at->wall)), false);
      }
    }
  }

  void add_rejection(const std::optional<RejectedConfig>& rejected) {
    if (!rejected || !rejected->source) return;
    emit(*rejected->source, Reason::ConfigRejected, rejected->why, rejected->since.wall,
         "the configuration was rejected, the last good one stays in force: " + rejected->why);
  }

  Planned<EmitEvent> done() { return std::move(planned_); }

 private:
  /// The pod's controller: the news is that its next pod came back to the same device.
  Subject owner_of(const Subject& pod) const {
    const auto* record = scene_.world.pod(pod.uid);
    if (record == nullptr || !record->pod.meta.controller) return pod;
    const auto& controller = *record->pod.meta.controller;
    return {.kind = controller.kind, .ns = pod.ns, .name = controller.name, .uid = controller.uid};
  }

  void emit(const Subject& regarding, Reason reason, const std::string& device, WallTime since, std::string note,
            bool warning = true) {
    const auto identity = fmt::format("{}|{}|{}|{}|{}|{}", regarding.kind, regarding.name, regarding.uid,
                                      to_string(reason), device, format_rfc3339(since));
    auto name = fmt::format("{}.{:016x}", regarding.name.substr(0, 200), stable_hash(identity));
    const auto key = regarding.ns + "/" + name;
    if (!scene_.ledger.may_send_event(key, scene_.now) || !sent_.insert(key).second) return;
    planned_.actions.push_back({.regarding = regarding,
                                .name = std::move(name),
                                .warning = warning,
                                .reason = std::string(to_string(reason)),
                                .action = action_of(reason),
                                .note = std::move(note),
                                .at = scene_.now.wall});
  }

  const Scene& scene_;
  std::set<std::pair<std::string, std::string>> open_;
  std::set<std::string> sent_;
  Planned<EmitEvent> planned_;
};

}  // namespace

Planned<EmitEvent> plan_events(const Scene& scene, std::span<const Verdict> verdicts,
                               const std::optional<RejectedConfig>& rejected) {
  if (!scene.policy.events) return {};
  EventPlanner planner(scene);
  planner.add_openings();
  planner.add_verdicts(verdicts);
  planner.add_recoveries();
  planner.add_rejection(rejected);
  return planner.done();
}

}  // namespace dhc::notice
