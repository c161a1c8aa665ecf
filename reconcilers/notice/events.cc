#include "reconcilers/notice/events.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/hash.h"
#include "base/printable.h"
#include "base/rfc3339.h"
#include "domain/cluster/gang.h"
#include "domain/contract/condition_text.h"
#include "domain/contract/names.h"

namespace dhc::notice {

namespace {

/// Whether a verdict of this reason is worth an Event.
bool is_news(const ReasonInfo& info) { return info.event != EventType::None && info.from_verdict; }

/// What carries the Event; none: a driver and a resource have no object. A brake of the whole cluster, and what is
/// wrong with the configuration's annotations, is said on its ConfigMap, if there is one.
std::optional<Subject> carrier_of(const Subject& subject, const Policy& policy) {
  if (subject.kind == "Brake" || subject.kind == "Configuration") return policy.source;
  if (subject.kind == "Driver" || subject.kind == "Resource" || subject.kind == "Workload") return std::nullopt;
  return subject;
}

/// Since when an annotation has been refused nobody knows: its words make one Event, not each turn's time.
bool is_told_by_words(const Verdict& verdict) {
  return verdict.reason == Reason::AnnotationRefused && verdict.subject.kind != "Pod";
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

class EventPlanner {
 public:
  EventPlanner(const PlanInput& input, const NextSteps& next) : input_(input), next_(next) {}

  /// Early, so that it can be stopped; and again when all that it has broken counts.
  void add_rollouts() {
    if (input_.rollouts == nullptr) return;
    for (const auto& [cause, damage] : *input_.rollouts) {
      emit(subject_of(damage.rollout), Reason::DriverRolling, damage.scope + (damage.waiting == 0 ? "|counts" : ""),
           damage.since, [&one = damage] { return dhc::words_of(one); });
    }
  }

  void add_openings() {
    for (const auto* one : input_.in_focus) {
      const auto& affected = *one;
      if (!affected.open) continue;
      const auto device = to_string(affected.key);
      open_.try_emplace({affected.pod().meta.uid, device}, &affected);
      if (input_.rollouts != nullptr && input_.rollouts->contains(affected.rollout_cause)) continue;
      emit(subject_of(affected.pod()), Reason::DeviceUnhealthy, device, affected.since.wall,
           [&] { return condition_message({next_.line_of(affected)}) + how_to_keep(affected); });
    }
  }

  void add_verdicts(std::span<const Verdict> verdicts) {
    for (const auto& verdict : verdicts) {
      if (!is_news(info_of(verdict.reason)) || is_retold(verdict)) continue;
      if (verdict.reason == Reason::DriverRolling) continue;
      const auto carrier = carrier_of(verdict.subject, input_.policy);
      if (!carrier) continue;
      const bool about_pod = verdict.subject.kind == "Pod";
      const auto affected = open_.find({verdict.subject.uid, verdict.device});
      const bool is_open = affected != open_.end();
      // Not before the incident is open; a pod that is left of its gang has none.
      if (about_pod && !is_open && verdict.reason != Reason::GangStuck) continue;
      const auto subject = verdict.reason == Reason::ReplacementOnSameDevice ? owner_of(verdict.subject) : *carrier;
      const auto note = [&] {
        auto words = about_pod || is_about_taint(verdict)
                         ? fmt::format("{}: {} (policy {})", verdict.device, verdict.message, verdict.policy)
                         : verdict.message;
        return about_pod && is_open ? std::move(words) + words_of(*affected->second) : words;
      };
      if (about_pod && verdict.reason == Reason::Evicted) tell_owner(verdict, note);
      const bool by_words = is_told_by_words(verdict);
      emit(subject, verdict.reason, by_words ? verdict.device + "|" + verdict.message : verdict.device,
           by_words ? WallTime() : verdict.since, note);
    }
  }

  void add_recoveries() {
    for (const auto& key : input_.world.tracker().recovered()) {
      const auto* state = input_.world.tracker().find(key);
      for (const auto& uid : state->relieved) {
        const auto* record = input_.world.pod(uid);
        if (record == nullptr || !is_live(record->pod)) continue;
        const auto* policy = policy_for(input_.world, input_.policy, record->pod, key);
        if (policy == nullptr || policy->mode == Mode::Off) continue;
        const auto began = state->recovered_at->wall - state->last_incident;
        const auto wait = std::max(
            rollout_wait(input_.world.rollout_of(key), began, policy->after).value_or(Millis::zero()), Millis::zero());
        if (state->last_incident < policy->after + wait) continue;
        const auto device = to_string(key);
        emit(subject_of(record->pod), Reason::Recovered, device, state->recovered_at->wall, [&] {
          return recovery_message({{.device = device,
                                    .since = state->recovered_at->wall,
                                    .probation_until = input_.incidents.probation_of(key, input_.now.wall)}});
        });
      }
    }
  }

  void add_rejection(const std::optional<RejectedConfig>& rejected) {
    if (!rejected || !rejected->source) return;
    emit(*rejected->source, Reason::ConfigRejected, rejected->why, rejected->since.wall, [&] { return rejected->why; });
  }

  Planned<EmitEvent> done() { return std::move(planned_); }

 private:
  /// The driver's words, cut so that what stands beside them is read as well.
  static std::string words_of(const AffectedPod& affected) {
    constexpr std::size_t kMost = 300;
    return affected.said.empty() ? std::string() : ": " + printable_cut(affected.said, kMost);
  }

  std::string how_to_keep(const AffectedPod& affected) const {
    if (!next_.leads_to_eviction(affected)) return {};
    const auto& meta = affected.pod().meta;
    return fmt::format("; to keep the pod: kubectl -n {} annotate pod {} {}=true", meta.ns, meta.name,
                       kOptOutAnnotation);
  }

  /// The pod goes, and its Events are read no more: who looks at its controller learns why.
  template <class MakeNote>
  void tell_owner(const Verdict& verdict, const MakeNote& note) {
    const auto owner = owner_of(verdict.subject);
    if (owner.uid == verdict.subject.uid) return;
    emit(owner, verdict.reason, verdict.subject.name + "|" + verdict.device, verdict.since,
         [&] { return fmt::format("pod {} on {}{}", verdict.subject.name, note(), words_of_gang(verdict.subject)); });
  }

  /// The others of its gang are told of with it, and by no Event of their own.
  std::string words_of_gang(const Subject& pod) const {
    const auto& charges = input_.incidents.caps().charges();
    const auto* record = input_.world.pod(pod.uid);
    const auto gang = record == nullptr ? std::nullopt : gang_of(record->pod);
    if (!gang) return {};
    const auto follows = [&](const auto& entry) { return entry.second.gang == gang->key && entry.second.half_since; };
    const auto left = std::ranges::count_if(charges, follows);
    return left == 0 ? std::string() : fmt::format("; {} other pods of {} go with it", left, gang->words);
  }

  /// The pod's controller: the news is that its next pod came back to the same device.
  Subject owner_of(const Subject& pod) const {
    const auto* record = input_.world.pod(pod.uid);
    if (record == nullptr || !record->pod.meta.controller) return pod;
    const auto& controller = *record->pod.meta.controller;
    return {.kind = controller.kind, .ns = pod.ns, .name = controller.name, .uid = controller.uid};
  }

  /// What was told is told once, and looked up each turn: the note is made for the first time alone.
  template <class MakeNote>
  void emit(const Subject& regarding, Reason reason, const std::string& device, WallTime since, const MakeNote& note) {
    const auto& info = info_of(reason);
    const auto identity = fmt::format("{}|{}|{}|{}|{}|{}", regarding.kind, regarding.name, regarding.uid, info.word,
                                      device, format_rfc3339(since));
    auto name = fmt::format("{}.{:016x}", regarding.name.substr(0, 200), stable_hash(identity));
    const auto key = regarding.ns + "/" + name;
    if (!input_.requests.may_send_event(key, input_.now) || !sent_.insert(key).second) return;
    planned_.actions.push_back({.regarding = regarding,
                                .name = std::move(name),
                                .warning = info.event == EventType::Warning,
                                .reason = std::string(info.word),
                                .action = std::string(info.action),
                                .note = note(),
                                .at = input_.now.wall});
  }

  const PlanInput& input_;
  const NextSteps& next_;
  std::map<std::pair<std::string, std::string>, const AffectedPod*> open_;  // by the pod's UID and the device
  std::set<std::string> sent_;
  Planned<EmitEvent> planned_;
};

}  // namespace

Planned<EmitEvent> plan_events(const PlanInput& input, std::span<const Verdict> verdicts, const NextSteps& next,
                               const std::optional<RejectedConfig>& rejected) {
  if (!input.policy.events) return {};
  EventPlanner planner(input, next);
  planner.add_rollouts();
  planner.add_openings();
  planner.add_verdicts(verdicts);
  planner.add_recoveries();
  planner.add_rejection(rejected);
  return planner.done();
}

}  // namespace dhc::notice
