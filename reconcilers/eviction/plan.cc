#include "reconcilers/eviction/plan.h"

#include <cstdint>
#include <expected>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "domain/contract/names.h"
#include "domain/incidents/state_caps.h"
#include "domain/limits/write_keys.h"
#include "reconcilers/eviction/limits.h"
#include "reconcilers/eviction/queue.h"
#include "reconcilers/eviction/replacement.h"
#include "reconcilers/eviction/shared_claims.h"
#include "reconcilers/eviction/signal.h"
#include "reconcilers/eviction/waits.h"
#include "reconcilers/shared/exclusions.h"
#include "reconcilers/shared/job_end.h"
#include "reconcilers/shared/rulings.h"

namespace dhc::eviction {

namespace {

class Planner {
 public:
  Planner(const Scene& scene, PlaceSearch& search)
      : scene_(scene), budget_(scene), caps_(scene.caps), replacement_(scene, search) {
    for (const auto& exposure : scene.exposures) {
      const auto& controller = exposure.pod().meta.controller;
      if (controller && controller->kind == "Job")
        siblings_[exposure.pod().meta.controller_identity()].push_back(&exposure);
    }
  }

  Plan run() {
    for (const auto* exposure : fair_order(scene_)) consider(*exposure);
    for (const auto& [uid, attempt] : scene_.ledger.evictions()) say_ended(uid, attempt);
    planned_.wake_at = wake_.at();
    return std::move(planned_);
  }

 private:
  void consider(const Exposure& exposure) {
    const auto& pod = exposure.pod();
    if (chosen_.contains(pod.meta.uid))
      return say(exposure, {.reason = Reason::Evicting, .message = "evicted in this turn", .until = {}});
    if (pod.meta.deletion) return say(exposure, departing(pod));
    // Between the server's answer and the watch event with the deletionTimestamp the pod looks as if nothing had
    // happened.
    say_in_vain(exposure);
    if (under_way(pod)) return say(exposure, *held_by_last_attempt(pod, scene_));
    if (auto ruling = excluded_because(exposure, scene_)) return say(exposure, *ruling);
    std::expected<Unit, Ruling> unit = Unit{.exposures = {&exposure}};
    if (exposure.holding->shared && exposure.policy->evict) unit = unit_of_claim(exposure, scene_);
    const bool is_case = unit && exposure.open && exposure.policy->evict;
    const auto no_place = is_case ? replacement_.lacking(*unit) : std::nullopt;
    if (no_place) say(exposure, *no_place);  // at once, whatever else the eviction waits for
    if (auto ruling = window_of(exposure, scene_)) return say(exposure, *ruling);
    if (!unit) return say(exposure, unit.error());
    if (auto ruling = waiting_for(exposure, scene_)) return say(exposure, *ruling);
    if (const auto siblings = siblings_.find(pod.meta.controller_identity()); siblings != siblings_.end()) {
      if (auto ruling = waiting_for_siblings(exposure, siblings->second, scene_)) return say(exposure, *ruling);
    }
    for (const auto* member : unit->exposures) {
      if (auto ruling = blocks_unit(*member)) return say(exposure, *ruling);
    }
    decide(*unit, no_place);
  }

  /// An evicted pod whose containers have ended, but which is still there, by a finalizer say: it holds its slot, and
  /// no exposure speaks of it any more.
  void say_ended(const std::string& uid, const EvictionAttempt& attempt) {
    const auto* record = scene_.world.pod(uid);
    if (record == nullptr || !record->pod.meta.deletion || is_live(record->pod)) return;
    if (attempt.state != Attempt::State::Accepted) return;
    tell({.subject = subject_of(record->pod),
          .device = to_string(attempt.key),
          .policy = {},
          .since = *record->pod.meta.deletion},
         departing(record->pod));
  }

  bool under_way(const k8s::Pod& pod) const {
    const auto* attempt = scene_.ledger.eviction(pod.meta.uid);
    return attempt != nullptr && attempt->state != Attempt::State::Failed && !accepted_in_vain(*attempt, pod, scene_);
  }

  /// Accepted and never terminating: something between the answer and the pod is broken, and nothing else says so.
  void say_in_vain(const Exposure& exposure) {
    const auto& pod = exposure.pod();
    const auto* attempt = scene_.ledger.eviction(pod.meta.uid);
    if (attempt == nullptr) return;
    const int times = attempt->in_vain + (accepted_in_vain(*attempt, pod, scene_) ? 1 : 0);
    if (times == 0) {
      if (attempt->state == Attempt::State::Accepted) wake_.note(slot_until(*attempt, pod, scene_.policy.limits));
      return;
    }
    say(exposure,
        {.reason = Reason::NotTerminating,
         .message = fmt::format("the API server has accepted the eviction {} time(s), and grace period and two "
                                "minutes later the pod has no deletionTimestamp: it is read and asked for again",
                                times),
         .until = {}});
  }

  Ruling departing(const k8s::Pod& pod) {
    const auto* attempt = scene_.ledger.eviction(pod.meta.uid);
    if (attempt == nullptr || attempt->state == Attempt::State::Failed) {
      return {.reason = Reason::AlreadyTerminating, .message = "somebody else has deleted the pod", .until = {}};
    }
    const MonoTime until = gone_by(*attempt, pod);
    if (attempt->state == Attempt::State::Accepted && scene_.now.mono >= until) {
      return {
          .reason = Reason::StuckTerminating,
          .message = "evicted, and still there two minutes after its grace period; it no longer counts as in flight",
          .until = {}};
    }
    if (scene_.now.mono >= slot_until(*attempt, pod, scene_.policy.limits)) {
      return {.reason = Reason::Evicted,
              .message =
                  "evicted, terminating; its grace period goes on, and it no longer counts as in flight "
                  "(evictions.countedGrace)",
              .until = until};
    }
    return {.reason = Reason::Evicted, .message = "evicted, terminating", .until = until};
  }

  /// What stands in the way of evicting a member of a unit, in words that name the member.
  std::optional<Ruling> blocks_unit(const Exposure& member) {
    if (member.pod().meta.deletion) {
      return Ruling{.reason = Reason::SharedClaim,
                    .message = "holder " + member.pod().meta.name + " is terminating already",
                    .until = {}};
    }
    auto ruling = excluded_because(member, scene_);
    if (!ruling) ruling = window_of(member, scene_);
    if (!ruling) ruling = waiting_for(member, scene_);
    if (!ruling) return std::nullopt;
    ruling->message = "holder " + member.pod().meta.name + " of the shared claim: " + ruling->message;
    return ruling;
  }

  void decide(const Unit& unit, const std::optional<Ruling>& no_place) {
    const auto& first = *unit.exposures.front();
    auto ruling = ends_a_job(unit);
    const bool waits_for_place = no_place && replacement_.holds(unit) && !was_begun(unit);
    if (!ruling && first.mode == Mode::Observe && !waits_for_place) {
      ruling = Ruling{.reason = Reason::WouldEvict, .message = would_because(first), .until = {}};
    }
    for (const auto* member : unit.exposures) {
      if (!ruling) ruling = held_by_last_attempt(member->pod(), scene_);
    }
    if (!ruling && scene_.policy.limits.paused) {
      ruling = Ruling{.reason = Reason::Paused, .message = "ControllerLimits says paused: true", .until = {}};
    }
    for (const auto* member : unit.exposures) {
      if (!ruling) ruling = held_by_view(scene_, views_of_eviction(member->pod(), member->key));
    }
    if (!ruling) ruling = held_by_brake(scene_, first.key, first.pod().node_name, {}, first.pod().meta.uid);
    if (!ruling && waits_for_place) ruling = no_place;
    const auto pods = uncounted(unit);
    if (!ruling) ruling = caps_.refuses_eviction(first.key, first.pod().node_name, pods);
    if (!ruling) ruling = budget_.refuses(unit);
    // Last: an owner is read again only for what would go now.
    for (const auto* member : unit.exposures) {
      if (!ruling) ruling = owner_word_too_old(member->pod(), scene_.world, scene_.now);
    }
    if (!ruling) {
      budget_.take(unit);
      replacement_.take(unit);
      caps_.take_eviction(first.key, first.pod().node_name, pods);
      ruling = waits_for_charge(unit);
    }
    if (ruling) {
      for (const auto* member : unit.exposures) say(*member, *ruling);
      return;
    }
    for (const auto* member : unit.exposures) send(*member);
  }

  /// A Job that the loss of the unit's pods would end, counted with those that go in this turn already.
  std::optional<Ruling> ends_a_job(const Unit& unit) const {
    auto going = chosen_;
    for (const auto* member : unit.exposures) {
      if (auto ruling = held_for_job_end(*member, scene_, going)) return ruling;
      going.insert(member->pod().meta.uid);
    }
    return std::nullopt;
  }

  /// A holder of a shared claim that a budget kept: the others have gone, on what was known of places then.
  bool was_begun(const Unit& unit) const {
    const auto& holding = *unit.exposures.front()->holding;
    return holding.shared && scene_.ledger.was_emptied(holding.claim_uid);
  }

  /// How many of its pods would count against the day: not those that were accepted in vain, which have.
  std::int64_t uncounted(const Unit& unit) const {
    const auto& charges = scene_.memory.caps().charges();
    return std::ranges::count_if(unit.exposures, [&](const Exposure* member) {
      const auto charge = charges.find(member->pod().meta.uid);
      return charge == charges.end() || !charge->second.counted;
    });
  }

  /// Each eviction is written down before it is sent: a leader that is killed in between, again and again, would
  /// otherwise walk past the caps. One write serves all of a turn.
  std::optional<Ruling> waits_for_charge(const Unit& unit) {
    bool all_saved = true;
    const auto& charges = scene_.memory.caps().charges();
    for (const auto* member : unit.exposures) {
      const auto& pod = member->pod();
      const auto found = charges.find(pod.meta.uid);
      const bool is_charged = found != charges.end();
      all_saved = all_saved && is_charged && scene_.saved_revision && found->second.revision <= *scene_.saved_revision;
      // A pod that holds several bad devices goes once, and is charged once.
      if (is_charged || !charged_.insert(pod.meta.uid).second) continue;
      if (!has_room(scene_.memory.caps())) {
        return Ruling{.reason = Reason::CapReached,
                      .message = fmt::format("ConfigMap {} has no room left for what is out of service on our account",
                                             kStateName),
                      .until = {}};
      }
      planned_.charges.push_back({.pod_uid = pod.meta.uid,
                                  .key = member->key,
                                  .node = pod.node_name,
                                  .at = scene_.now.wall,
                                  .counted = false,
                                  .revision = 0,
                                  .recalled = false});
    }
    // Outside a cluster nothing is written: this process alone counts.
    if (all_saved || scene_.policy.own_namespace.empty()) return std::nullopt;
    const auto* attempt = scene_.ledger.write(std::string(kStateKey));
    const bool failed = attempt != nullptr && attempt->state == Attempt::State::Failed;
    return Ruling{.reason = Reason::WaitingForCharge,
                  .message = fmt::format("it is written down in ConfigMap {} first, which counts against the caps{}",
                                         kStateName, failed ? fmt::format(": {}", words_of_failure(*attempt)) : ""),
                  .until = {}};
  }

  static std::string would_because(const Exposure& exposure) {
    return exposure.policy->mode == Mode::Observe ? fmt::format("policy {} says mode: observe", exposure.policy->name)
                                                  : std::string("the controller runs with --mode observe");
  }

  void send(const Exposure& exposure) {
    const auto& pod = exposure.pod();
    chosen_.insert(pod.meta.uid);
    planned_.actions.push_back(
        {.ns = pod.meta.ns,
         .name = pod.meta.name,
         .uid = pod.meta.uid,
         .seen_version = pod.meta.resource_version,
         .grace_period_seconds = exposure.policy->evict->grace_period_seconds,
         .shared_claim_uid = exposure.holding->shared ? exposure.holding->claim_uid : std::string(),
         .key = exposure.key,
         .device = to_string(exposure.key),
         .policy = exposure.policy->name,
         .signal = signal_of(exposure, scene_.world)});
    auto message = patience_ended(exposure, scene_);
    say(exposure, {.reason = Reason::Evicting, .message = message.value_or("all conditions are met"), .until = {}});
  }

  void say(const Exposure& exposure, const Ruling& ruling) {
    const auto subject = subject_of(exposure.pod());
    const auto device = to_string(exposure.key);
    if (!said_.insert(fmt::format("{}|{}|{}", subject.uid, device, to_string(ruling.reason))).second) return;
    tell({.subject = subject, .device = device, .policy = exposure.policy->name, .since = exposure.since.wall}, ruling);
  }

  void tell(About about, Ruling ruling) {
    wake_.note(ruling.until);
    planned_.verdicts.push_back(verdict_of(std::move(about), std::move(ruling), scene_.now));
  }

  const Scene& scene_;
  Budget budget_;
  Caps caps_;
  ReplacementGate replacement_;
  Wake wake_;
  std::map<std::string, std::vector<const Exposure*>> siblings_;  // by the Job's identity
  std::set<std::string> chosen_;
  std::set<std::string> charged_;  // in this turn
  std::set<std::string> said_;
  Plan planned_;
};

}  // namespace

Plan plan(const Scene& scene, PlaceSearch& search) { return Planner(scene, search).run(); }

}  // namespace dhc::eviction
