#include "reconcilers/eviction/plan.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/cluster/workload.h"
#include "domain/findings/enforcement.h"
#include "domain/findings/pauses.h"
#include "reconcilers/eviction/gang_gate.h"
#include "reconcilers/eviction/gates.h"
#include "reconcilers/eviction/going.h"
#include "reconcilers/eviction/notice_gate.h"
#include "reconcilers/eviction/queue.h"
#include "reconcilers/eviction/retry_terms.h"
#include "reconcilers/eviction/signal.h"
#include "reconcilers/eviction/waits.h"
#include "reconcilers/shared/exclusions.h"
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
    for (const auto& [gang, charges] : gates_.half_gangs()) go_on(charges);
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
  /// A gang of which some have gone: the others follow, before anybody else, and past all that was asked before the
  /// first went. What an operator or the pod's owner has said since holds still.
  void go_on(const std::vector<const EvictionCharge*>& charges) {
    for (const auto* charge : charges) {
      following_.insert(charge->pod_uid);
      if (!is_in(input_.focus, charge->key)) continue;
      planned_.again.insert(charge->key);
      const auto& record = *input_.world.pod(charge->pod_uid);
      const auto* policy = policy_of_round(record.pod, charge->key);
      const auto& member = gates_.gangs().member_of_round(record, charge->key, policy == nullptr ? nobodys_ : *policy,
                                                          moment_of(*charge->half_since, input_.now));
      auto held = held_in_round(member, *charge, policy);
      if (held && held->reason == Reason::OptOutUnknown) planned_.asks_owners.insert(charge->pod_uid);
      const auto* attempt = input_.requests.eviction(charge->pod_uid);
      const bool is_sent = attempt != nullptr && attempt->state == Attempt::State::Sending;
      if (is_sent && !held) standing_.insert(charge->pod_uid);
      if (!held) held = held_by_last_attempt(record.pod, input_);
      if (!held) {
        gates_.note_following(member);
        order(member, *charge);
      } else {
        say_half(member, *charge, static_cast<std::int64_t>(charges.size()), *std::move(held));
      }
    }
  }

  /// The policy under which the round goes on; null: none says that it may.
  const DevicePolicy* policy_of_round(const k8s::Pod& pod, const DeviceKey& key) const {
    for (const auto* policy : policies_for(input_.world, input_.policy, pod, key)) {
      const bool goes_on = policy->evict && policy->evict->groups_together;
      if (goes_on && mode_for(*policy, input_.policy, input_.world, pod, key) == Mode::Enforce) return policy;
    }
    return nullptr;
  }

  std::optional<HoldReason> held_in_round(const AffectedPod& member, const EvictionCharge& charge,
                                          const DevicePolicy* policy) const {
    if (policy == nullptr) {
      return HoldReason{.reason = Reason::NoEvictionConfigured,
                        .message = "no enforcing policy that covers it says evict.groups: Together any more",
                        .until = {}};
    }
    if (auto hold = excluded_because(member, input_)) return hold;
    if (const auto pause = pause_for(input_.world, input_.policy, input_.now.wall, member.pod(), charge.key))
      return HoldReason{.reason = Reason::Paused, .message = pause->why, .until = end_of(*pause, input_.now)};
    if (auto hold = held_by_brake(input_, charge.key, charge.node, {}, charge.pod_uid)) return hold;
    return held_by_view(input_, charge.key, views_of_eviction(member.pod(), charge.key));
  }

  void say_half(const AffectedPod& member, const EvictionCharge& charge, std::int64_t left, HoldReason hold) {
    if (hold.reason == Reason::Evicting || hold.reason == Reason::Evicted) return say(member, hold);
    const auto late_at = *charge.half_since + kHalfGangPatience;
    const bool is_stuck = input_.now.wall >= late_at;
    if (!is_stuck) planned_.wake(charge.key, input_.now.mono + std::chrono::ceil<Millis>(late_at - input_.now.wall));
    const auto gang = gang_of(member.pod());
    hold.message = fmt::format("{} of {} pods of {} have gone since {}, this one is held by {}: {}",
                               std::max<std::int64_t>(charge.gang_size - left, 1), charge.gang_size,
                               gang ? gang->words : charge.gang, format_rfc3339(*charge.half_since),
                               to_string(hold.reason), hold.message);
    hold.reason = is_stuck ? Reason::GangStuck : Reason::GangHalf;
    say(member, hold);
  }

  void consider(const AffectedPod& affected) {
    if (following_.contains(affected.pod().meta.uid)) return;
    note_standing(affected);
    Candidate candidate{.affected = affected, .unit = {.affected_pods = {&affected}}};
    const auto held = gates_.ask(candidate);
    // A time that is past must not stand before those to come, of other pods on the device.
    if (candidate.wake_at && *candidate.wake_at > input_.now.mono) planned_.wake(affected.key, candidate.wake_at);
    note_rests(candidate);
    for (const auto& remark : candidate.remarks) say(affected, remark);
    if (const auto* gang = gates_.gang_of(affected)) return consider_gang(candidate, *gang, held);
    if (held && !held->whole_unit) return say(affected, held->hold, held->gate);
    for (const auto* member : candidate.unit.affected_pods) {
      if (held) say(*member, held->hold, held->gate);
      if (!held) send(*member);
    }
  }

  /// With one pod the whole is tried: the others follow when that one is seen to go. If it is refused, nobody has gone.
  void consider_gang(const Candidate& candidate, const GangUnit& gang, const std::optional<Held>& held) {
    const auto& first = candidate.affected;
    planned_.again.insert(first.key);
    if (held) {
      say(first, held->hold, held->gate);
    } else {
      gates_.note_begun(gang.gang.key, first.pod().meta.name);
      send(first);
    }
    const auto& name = first.pod().meta.name;
    for (const auto* member : candidate.unit.affected_pods) {
      if (held && waits_for_owner(*member, *held)) planned_.asks_owners.insert(member->pod().meta.uid);
      if (member->goes_with == nullptr || following_.contains(member->pod().meta.uid)) continue;
      if (!held) {
        say(*member, {.reason = Reason::GangHeld,
                      .message = fmt::format("pod {} of {} goes first", name, gang.gang.words),
                      .until = {}});
      } else if (held->hold.reason == Reason::WouldEvict) {
        say(*member, held->hold, held->gate);
      } else {
        say(*member,
            {.reason = Reason::GangHeld,
             .message = fmt::format("it goes with pod {} of {}, which holds {}: {}: {}", name, gang.gang.words,
                                    to_string(first.key), to_string(held->hold.reason), held->hold.message),
             .until = held->hold.until},
            held->gate);
      }
    }
  }

  /// A word that was read is too old only for who would go now.
  bool waits_for_owner(const AffectedPod& member, const Held& held) const {
    const auto own = excluded_because(member, input_);
    if (own) return own->reason == Reason::OptOutUnknown;
    return held.hold.reason == Reason::OptOutUnknown && owner_word_too_old(member.pod(), input_.world, input_.now);
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
    if (held_by_view(input_, affected.key, views_of_eviction(pod, affected.key))) return;
    standing_.insert(pod.meta.uid);
  }

  /// An evicted pod whose containers have ended, but which is still there, by a finalizer say: it holds its slot, and
  /// no affected pod speaks of it any more.
  void say_ended(const std::string& uid, const EvictionAttempt& attempt) {
    const auto* record = input_.world.pod(uid);
    if (record == nullptr || !record->pod.meta.deletion) return;
    const bool went_with_gang = attempt.lost_to.empty();
    if (is_live(record->pod) && !went_with_gang) return;
    if (attempt.state != Attempt::State::Accepted) return;
    tell(attempt.key,
         {.subject = subject_of(record->pod),
          .device = to_string(attempt.key),
          .policy = {},
          .since = *record->pod.meta.deletion},
         departing(record->pod, input_));
  }

  /// A pod that goes because others of its gang have gone.
  void order(const AffectedPod& member, const EvictionCharge& charge) {
    const auto& pod = member.pod();
    planned_.actions.push_back({.ns = pod.meta.ns,
                                .name = pod.meta.name,
                                .uid = pod.meta.uid,
                                .seen_version = pod.meta.resource_version,
                                .grace_period_seconds = member.policy->evict->grace_period_seconds,
                                .key = charge.key,
                                .device_node = charge.node,
                                .workload = charge.workload,
                                .device = to_string(charge.key),
                                .policy = member.policy->name,
                                .decided_at = input_.now.wall});
    say(member, {.reason = Reason::Evicting, .message = "others of its gang have gone", .until = {}});
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
         .shared_claim_uid = affected.held_device->shared ? affected.held_device->claim_uid.str() : std::string(),
         .key = affected.key,
         .device_node = pod.node_name,
         .workload = workload_of(pod, input_.world),
         .device = to_string(affected.key),
         .policy = affected.policy->name,
         .signal = signal_of(affected, input_.world),
         .retry = retry_terms_of(affected, input_, gates_.chosen()),
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
  DevicePolicy nobodys_;             // of a round that no policy covers any more
  std::set<std::string> following_;  // pods whose gang is half gone
  std::set<std::string> said_;
  std::set<std::string> standing_;  // pods whose eviction is on its way and would be ordered again
  Plan planned_;
};

}  // namespace

Plan plan(const PlanInput& input, PlaceSearch& search, const CommonQuestions& questions) {
  return Planner(input, search).run(questions);
}

}  // namespace dhc::eviction
