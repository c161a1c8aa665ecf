#include "reconcilers/eviction/plan.h"

#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "reconcilers/eviction/gates.h"
#include "reconcilers/eviction/going.h"
#include "reconcilers/eviction/notice_gate.h"
#include "reconcilers/eviction/queue.h"
#include "reconcilers/eviction/signal.h"
#include "reconcilers/eviction/waits.h"
#include "reconcilers/shared/hold_reasons.h"

namespace dhc::eviction {

namespace {

class Planner {
 public:
  Planner(const PlanInput& input, PlaceSearch& search) : input_(input), gates_(input, search) {}

  Plan run() {
    for (const auto* affected : fair_order(input_)) consider(*affected);
    for (const auto& [uid, attempt] : input_.requests.evictions()) {
      say_ended(uid, attempt);
      if (attempt.state == Attempt::State::Sending && !standing_.contains(uid)) planned_.revoked.insert(uid);
    }
    planned_.charges = std::move(gates_.charges());
    planned_.wake_at = wake_.at();
    return std::move(planned_);
  }

 private:
  void consider(const AffectedPod& affected) {
    note_standing(affected);
    Candidate candidate{.affected = affected, .unit = {.affected_pods = {&affected}}};
    const auto held = gates_.ask(candidate);
    wake_.note(candidate.wake_at);
    for (const auto& remark : candidate.remarks) say(affected, remark);
    if (held && !held->whole_unit) return say(affected, held->hold, held->gate);
    for (const auto* member : candidate.unit.affected_pods) {
      if (held) say(*member, held->hold, held->gate);
      if (!held) send(*member);
    }
  }

  /// Of an eviction on its way no gate is asked again. What held for the pod alone when it was ordered must hold still;
  /// a pause, a brake and a change of leader take every order back themselves.
  void note_standing(const AffectedPod& affected) {
    const auto& pod = affected.pod();
    const auto* attempt = input_.requests.eviction(pod.meta.uid);
    if (attempt == nullptr || attempt->state != Attempt::State::Sending || attempt->key != affected.key) return;
    if (held_by_itself(affected, input_) || has_time_left(affected, input_)) return;
    if (held_by_view(input_, views_of_eviction(pod, affected.key))) return;
    standing_.insert(pod.meta.uid);
  }

  /// An evicted pod whose containers have ended, but which is still there, by a finalizer say: it holds its slot, and
  /// no affected pod speaks of it any more.
  void say_ended(const std::string& uid, const EvictionAttempt& attempt) {
    const auto* record = input_.world.pod(uid);
    if (record == nullptr || !record->pod.meta.deletion || is_live(record->pod)) return;
    if (attempt.state != Attempt::State::Accepted) return;
    tell({.subject = subject_of(record->pod),
          .device = to_string(attempt.key),
          .policy = {},
          .since = *record->pod.meta.deletion},
         departing(record->pod, input_));
  }

  void send(const AffectedPod& affected) {
    const auto& pod = affected.pod();
    gates_.note_chosen(pod.meta.uid);
    planned_.actions.push_back(
        {.ns = pod.meta.ns,
         .name = pod.meta.name,
         .uid = pod.meta.uid,
         .seen_version = pod.meta.resource_version,
         .grace_period_seconds = affected.policy->evict->grace_period_seconds,
         .shared_claim_uid = affected.held_device->shared ? affected.held_device->claim_uid : std::string(),
         .key = affected.key,
         .device = to_string(affected.key),
         .policy = affected.policy->name,
         .signal = signal_of(affected, input_.world)});
    auto message = patience_ended(affected, input_);
    say(affected, {.reason = Reason::Evicting, .message = message.value_or("all conditions are met"), .until = {}});
  }

  void say(const AffectedPod& affected, const HoldReason& hold, std::string_view gate = {}) {
    const auto subject = subject_of(affected.pod());
    const auto device = to_string(affected.key);
    if (!said_.insert(fmt::format("{}|{}|{}", subject.uid, device, to_string(hold.reason))).second) return;
    tell({.subject = subject,
          .device = device,
          .policy = affected.policy->name,
          .mode = to_string(affected.mode),
          .gate = gate,
          .since = affected.since.wall},
         hold);
  }

  void tell(About about, HoldReason hold) {
    wake_.note(hold.until);
    planned_.verdicts.push_back(verdict_of(std::move(about), std::move(hold), input_.now));
  }

  const PlanInput& input_;
  Gates gates_;
  Wake wake_;
  std::set<std::string> said_;
  std::set<std::string> standing_;  // pods whose eviction is on its way and would be ordered again
  Plan planned_;
};

}  // namespace

Plan plan(const PlanInput& input, PlaceSearch& search) { return Planner(input, search).run(); }

}  // namespace dhc::eviction
