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
#include "reconcilers/shared/notice_terms.h"

namespace dhc::eviction {

namespace {

class Planner {
 public:
  Planner(const PlanInput& input, PlaceSearch& search) : input_(input), gates_(input, search) {}

  Plan run(CommonQuestions questions) {
    for (const auto* affected : input_.in_focus) questions.scopes.insert(affected->key.scope);
    planned_.before = gates_.answers(questions);
    for (const auto* affected : fair_order(input_)) {
      if (is_in(input_.focus, affected->key)) consider(*affected);
    }
    for (const auto& [key, rests] : planned_.rests) {
      if (rests.on_place) questions.places.insert(*rests.on_place);
      planned_.took = planned_.took || rests.takes;
    }
    planned_.after = gates_.answers(questions);
    for (const auto& [uid, attempt] : input_.requests.evictions()) {
      if (!is_in(input_.focus, attempt.key)) continue;
      say_ended(uid, attempt);
      if (attempt.state == Attempt::State::Sending && !standing_.contains(uid)) planned_.revoked.insert(uid);
    }
    planned_.charges = std::move(gates_.charges());
    return std::move(planned_);
  }

 private:
  void consider(const AffectedPod& affected) {
    note_standing(affected);
    Candidate candidate{.affected = affected, .unit = {.affected_pods = {&affected}}};
    const auto held = gates_.ask(candidate);
    planned_.wake(affected.key, candidate.wake_at);
    note_rests(candidate);
    for (const auto& remark : candidate.remarks) say(affected, remark);
    if (held && !held->whole_unit) return say(affected, held->hold, held->gate);
    for (const auto* member : candidate.unit.affected_pods) {
      if (held) say(*member, held->hold, held->gate);
      if (!held) send(*member);
    }
  }

  void note_rests(const Candidate& candidate) {
    for (const auto* member : candidate.unit.affected_pods) {
      if (candidate.again || candidate.rests.takes) planned_.again.insert(member->key);
      auto& rests = planned_.rests[member->key];
      // Of two pods that want different places none is asked for the other.
      const bool is_other = rests.on_place && candidate.rests.on_place && rests.on_place != candidate.rests.on_place;
      if (is_other) planned_.again.insert(member->key);
      if (candidate.rests.on_place) rests.on_place = candidate.rests.on_place;
      rests.on_limits = rests.on_limits || candidate.rests.on_limits;
      rests.on_own_node = rests.on_own_node || candidate.rests.on_own_node;
      rests.takes = rests.takes || candidate.rests.takes;
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
    tell(attempt.key,
         {.subject = subject_of(record->pod),
          .device = to_string(attempt.key),
          .policy = {},
          .since = *record->pod.meta.deletion},
         departing(record->pod, input_));
  }

  void send(const AffectedPod& affected) {
    const auto& pod = affected.pod();
    gates_.note_chosen(pod.meta.uid);
    auto terms = notice_terms(affected, input_);
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
         .signal = signal_of(affected, input_.world),
         .notice = terms ? std::optional(std::move(terms->given)) : std::nullopt,
         .decided_at = input_.now.wall});
    auto message = patience_ended(affected, input_);
    say(affected, {.reason = Reason::Evicting, .message = message.value_or("all conditions are met"), .until = {}});
  }

  void say(const AffectedPod& affected, const HoldReason& hold, std::string_view gate = {}) {
    const auto subject = subject_of(affected.pod());
    const auto device = to_string(affected.key);
    if (!said_.insert(fmt::format("{}|{}|{}", subject.uid, device, to_string(hold.reason))).second) return;
    tell(affected.key,
         {.subject = subject,
          .device = device,
          .policy = affected.policy->name,
          .mode = to_string(affected.mode),
          .gate = gate,
          .since = affected.since.wall},
         hold);
  }

  void tell(const DeviceKey& key, About about, HoldReason hold) {
    planned_.wake(key, hold.until);
    planned_.say(key, verdict_of(std::move(about), std::move(hold), input_.now));
  }

  const PlanInput& input_;
  Gates gates_;
  std::set<std::string> said_;
  std::set<std::string> standing_;  // pods whose eviction is on its way and would be ordered again
  Plan planned_;
};

}  // namespace

Plan plan(const PlanInput& input, PlaceSearch& search, const CommonQuestions& questions) {
  return Planner(input, search).run(questions);
}

}  // namespace dhc::eviction
