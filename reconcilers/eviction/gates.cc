#include "reconcilers/eviction/gates.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "domain/cluster/owner_chain.h"
#include "domain/cluster/workload.h"
#include "domain/contract/names.h"
#include "domain/findings/enforcement.h"
#include "domain/findings/pauses.h"
#include "reconcilers/eviction/going.h"
#include "reconcilers/eviction/notice_gate.h"
#include "reconcilers/eviction/shared_claims.h"
#include "reconcilers/shared/exclusions.h"
#include "reconcilers/shared/hold_reasons.h"
#include "reconcilers/shared/job_credit.h"
#include "reconcilers/shared/job_end.h"
#include "reconcilers/shared/tolerations.h"

namespace dhc::eviction {

namespace {

std::string would_because(const AffectedPod& affected, const PlanInput& input) {
  if (effective_mode(affected.policy, input.policy) == Mode::Enforce) {
    const auto miss = enforce_miss(*affected.policy, input.world, affected.pod(), *affected.held_device);
    if (miss) return words_of(*miss, *affected.policy);
  }
  return affected.policy->mode == Mode::Observe ? fmt::format("policy {} has mode: observe", affected.policy->name)
                                                : std::string("the controller runs with --mode observe");
}

/// Of those that hold bad devices: the others take none out of service.
Caps::Workloads workloads_in(const Unit& unit, const World& world) {
  std::set<std::string> workloads;
  for (const auto* member : with_bad_devices(unit.affected_pods)) workloads.insert(workload_of(member->pod(), world));
  return {workloads.begin(), workloads.end()};
}

/// A pod that goes with its gang leaves a device that is well, and its replacement finds that.
Unit needing_places(const Unit& unit) { return {.affected_pods = with_bad_devices(unit.affected_pods)}; }

/// What is past must not stand before what is to come.
void wake(Candidate& candidate, MonoTime at, const Now& now) {
  if (at > now.mono) candidate.wake_at = std::min(candidate.wake_at.value_or(at), at);
}

/// As a member of what goes together is called.
std::string words_of_member(const AffectedPod& member, const GangUnit* gang) {
  return gang == nullptr ? fmt::format("holder {}", member.pod().meta.name)
                         : fmt::format("pod {} of {}", member.pod().meta.name, gang->gang.words);
}

}  // namespace

Gates::Gates(const PlanInput& input, PlaceSearch& search)
    : input_(input),
      budget_(input),
      caps_(input.caps),
      replacement_(input, search),
      charging_(input),
      chosen_(input),
      gangs_(input),
      half_gangs_(eviction::half_gangs(input)) {
  // Of a Job all affected pods are in focus, or none.
  for (const auto* affected : input.in_focus) {
    const auto& controller = affected->pod().meta.controller;
    if (controller && controller->kind == "Job")
      families_[affected->pod().meta.controller_identity()].affected_pods.push_back(affected);
  }
}

std::optional<Held> Gates::ask(Candidate& candidate) {
  for (const auto& gate : in_order()) {
    candidate.rests.on_limits = candidate.rests.on_limits || gate.is_shared;
    if (auto hold = (this->*gate.asks)(candidate)) {
      if (candidate.fits && !candidate.rests.takes) budget_.keep_for(candidate.unit);
      candidate.again = candidate.again || (gate.is_shared && !is_common(*hold, candidate.affected.key.scope));
      candidate.rests.on_limits = candidate.rests.on_limits || gate.asks_caps;
      return Held{.hold = *std::move(hold), .gate = gate.text.name, .whole_unit = gate.whole_unit};
    }
  }
  return std::nullopt;
}

namespace {

std::string words_of(const std::optional<HoldReason>& hold) {
  if (!hold) return {};
  return fmt::format("{}: {} until {}", to_string(hold->reason), hold->message,
                     hold->until ? hold->until->time_since_epoch().count() : 0);
}

}  // namespace

CommonAnswers Gates::answers(const CommonQuestions& questions) {
  CommonAnswers answers;
  answers.limits["limits"] = words_of(budget_.refuses_all());
  answers.limits["record"] = charging_.is_full() ? "full" : charging_.is_ahead() ? "ahead" : "";
  for (const auto& scope : questions.scopes) {
    answers.limits["cap " + scope] = words_of(caps_.refuses_more(scope));
    answers.limits["day " + scope] = words_of(caps_.refuses_more_evictions(scope));
  }
  if (questions.places.empty()) return answers;
  auto& places = replacement_.places();
  for (const auto& demand : questions.places) answers.places.emplace(demand, places.why_not(demand));
  answers.taken = places.taken();
  answers.waiting = places.waiting();
  return answers;
}

/// Whether everybody who asks is told so now.
bool Gates::is_common(const HoldReason& hold, const std::string& scope) {
  const auto is_so = [&](const std::optional<HoldReason>& common) {
    return common && common->reason == hold.reason && common->message == hold.message && common->until == hold.until;
  };
  if (hold.reason == Reason::WaitingForCharge && charging_.is_full()) return true;
  return is_so(budget_.refuses_all()) || is_so(caps_.refuses_more(scope)) || is_so(caps_.refuses_more_evictions(scope));
}

std::optional<HoldReason> Gates::is_going(Candidate& candidate) {
  const auto& pod = candidate.affected.pod();
  candidate.remarks = remarks_on_notice(candidate.affected, input_);
  candidate.again = candidate.again || changes_with_time(candidate.affected, input_);
  // What is said of its notice changes when its own time is over, whatever holds the pod then.
  if (const auto own = has_time_left(candidate.affected, input_); own && own->reason == Reason::WaitingForCheckpoint)
    wake(candidate, *own->until, input_.now);
  if (chosen_.contains(pod.meta.uid)) {
    return HoldReason{.reason = Reason::Evicting, .message = "evicted in this turn", .until = {}};
  }
  if (pod.meta.deletion) {
    // What it says changes then, also before the pod is to be gone.
    if (const auto* attempt = input_.requests.eviction(pod.meta.uid))
      wake(candidate, slot_until(*attempt, pod, input_.policy.limits), input_.now);
    return departing(pod, input_);
  }
  // Between the server's answer and the watch event with the deletionTimestamp the pod looks as if nothing had
  // happened.
  const auto* attempt = input_.requests.eviction(pod.meta.uid);
  if (attempt != nullptr && attempt->state == Attempt::State::Accepted)
    wake(candidate, slot_until(*attempt, pod, input_.policy.limits), input_.now);
  if (auto remark = in_vain(pod, input_)) candidate.remarks.push_back(*std::move(remark));
  return is_under_way(pod, input_) ? held_by_last_attempt(pod, input_) : std::nullopt;
}

std::optional<HoldReason> Gates::is_excluded(Candidate& candidate) {
  return excluded_because(candidate.affected, input_);
}

/// Holds nobody: that no place is known is said at once, whatever else the eviction waits for.
std::optional<HoldReason> Gates::looks_for_a_place(Candidate& candidate) {
  const auto& affected = candidate.affected;
  if (affected.held_device->shared && affected.policy->evict) {
    auto unit = unit_of_claim(affected, input_);
    if (unit) {
      candidate.unit = *std::move(unit);
    } else {
      candidate.no_unit = std::move(unit.error());
    }
  }
  candidate.gang = gangs_.of(affected);
  if (candidate.gang != nullptr && !candidate.no_unit) join_gang(candidate);
  if (!candidate.no_unit && affected.open && affected.policy->evict) {
    const auto unit = needing_places(candidate.unit);
    candidate.no_place = replacement_.lacking(unit);
    std::vector<const k8s::Pod*> pods;
    for (const auto* member : unit.affected_pods) pods.push_back(&member->pod());
    candidate.rests.on_place = demand_of(pods, input_.world);
    candidate.rests.on_own_node = replacement_.found_on() == affected.pod().node_name;
    // What waits elsewhere is no matter of one demand.
    candidate.again = candidate.again || (candidate.no_place && replacement_.places().has_waiting());
  }
  // What its members come to is touched by what becomes of them, not of the device.
  candidate.again = candidate.again || candidate.gang != nullptr || candidate.unit.affected_pods.size() > 1;
  if (candidate.no_place) candidate.remarks.push_back(*candidate.no_place);
  return std::nullopt;
}

/// All who go with the pod, each once, itself first.
void Gates::join_gang(Candidate& candidate) const {
  auto& members = candidate.unit.affected_pods;
  std::set<std::string_view> known;
  for (const auto* member : members) known.insert(member->pod().meta.uid);
  for (const auto* member : candidate.gang->members) {
    if (known.insert(member->pod().meta.uid).second) members.push_back(member);
  }
  const auto own = std::ranges::find_if(
      members, [&](const auto* member) { return member->pod().meta.uid == candidate.affected.pod().meta.uid; });
  if (own != members.end()) std::iter_swap(members.begin(), own);
  candidate.unit.gang = candidate.gang->gang.key;
}

/// Before all that time ends: what can never go is said at once.
std::optional<HoldReason> Gates::is_held_with_gang(Candidate& candidate) {
  if (candidate.affected.policy->evict && candidate.affected.policy->evict->groups_together) {
    if (auto refused = refused_gang_name(candidate.affected.pod()))
      candidate.remarks.push_back({.reason = Reason::AnnotationRefused, .message = *std::move(refused), .until = {}});
  }
  if (candidate.gang != nullptr) {
    const auto& gang = candidate.gang->gang;
    if (const auto begun = begun_.find(gang.key); begun != begun_.end()) {
      return HoldReason{.reason = Reason::GangHeld,
                        .message = fmt::format("pod {} of {} goes first", begun->second, gang.words),
                        .until = {}};
    }
    if (auto hold = held_by_gang(*candidate.gang, half_gangs_, input_)) return hold;
  }
  if (candidate.no_unit || !candidate.affected.open || !candidate.affected.policy->evict) return std::nullopt;
  // Who is in the group now is no matter of the pod, its device, node and owner.
  candidate.again = candidate.again || std::ranges::any_of(candidate.unit.affected_pods, [&](const auto* member) {
                      return input_.world.is_indivisible(member->pod());
                    });
  return splits_pod_group(candidate.unit, candidate.gang, input_.world);
}

std::optional<HoldReason> Gates::is_too_early(Candidate& candidate) { return window_of(candidate.affected, input_); }

std::optional<HoldReason> Gates::is_torn(Candidate& candidate) { return candidate.no_unit; }

template <std::optional<HoldReason> (*kWaits)(const AffectedPod&, const PlanInput&)>
std::optional<HoldReason> Gates::waits(Candidate& candidate) {
  return kWaits(candidate.affected, input_);
}

std::optional<HoldReason> Gates::waits_for_siblings(Candidate& candidate) {
  const auto& followers = followers_of_job(candidate.affected);
  if (followers.more_at) wake(candidate, *followers.more_at, input_.now);
  return waiting_for_siblings(candidate.affected, followers.waiting);
}

const Followers& Gates::followers_of_job(const AffectedPod& affected) {
  const auto found = families_.find(affected.pod().meta.controller_identity());
  if (found == families_.end()) return nobody_;
  auto& family = found->second;
  if (!family.followers) family.followers = followers_of(family.affected_pods, input_);
  return *family.followers;
}

std::optional<HoldReason> Gates::waits_for_holders(Candidate& candidate) {
  for (const auto* member : candidate.unit.affected_pods) {
    if (candidate.gang != nullptr && member == &candidate.affected) continue;  // asked already
    if (auto hold = blocks_unit(*member, candidate)) return hold;
  }
  return std::nullopt;
}

/// Of a pod that goes alone, the API server itself asks its budget.
std::optional<HoldReason> Gates::is_over_budget(Candidate& candidate) {
  return candidate.gang == nullptr ? std::nullopt : held_by_budgets(*candidate.gang, input_.world);
}

/// Counted with those that go in this turn already.
std::optional<HoldReason> Gates::ends_a_job(Candidate& candidate) {
  std::vector<std::string> with_it;
  std::optional<HoldReason> hold;
  for (const auto* member : candidate.unit.affected_pods) {
    hold = held_for_job_end(*member, input_, chosen_);
    if (hold) break;
    const auto& uid = member->pod().meta.uid;
    if (chosen_.insert(uid)) with_it.push_back(uid);
  }
  for (const auto& uid : with_it) chosen_.erase(uid);
  return hold;
}

/// Behind all that holds for good: nobody is told of an eviction that will not be.
std::optional<HoldReason> Gates::has_notice(Candidate& candidate) {
  return waits_for_checkpoint(candidate.unit, candidate.gang, input_);
}

std::optional<HoldReason> Gates::only_observes(Candidate& candidate) {
  const auto& first = *candidate.unit.affected_pods.front();
  if (first.mode != Mode::Observe || waits_for_place(candidate)) return std::nullopt;
  return HoldReason{.reason = Reason::WouldEvict, .message = would_because(first, input_), .until = {}};
}

std::optional<HoldReason> Gates::backs_off(Candidate& candidate) {
  for (const auto* member : candidate.unit.affected_pods) {
    if (auto hold = held_by_last_attempt(member->pod(), input_)) return hold;
  }
  return std::nullopt;
}

/// The last to end, of those that hold any of them.
std::optional<HoldReason> Gates::is_paused(Candidate& candidate) {
  std::optional<Pause> pause;
  for (const auto* member : candidate.unit.affected_pods) {
    auto one = pause_for(input_.world, input_.policy, input_.now.wall, member->pod(), member->key);
    if (one && (!pause || ends_later(*one, *pause))) pause = std::move(one);
  }
  if (!pause) return std::nullopt;
  const auto until = end_of(*pause, input_.now);
  return HoldReason{.reason = Reason::Paused, .message = std::move(pause->why), .until = until};
}

std::optional<HoldReason> Gates::sees_too_little(Candidate& candidate) {
  for (const auto* member : candidate.unit.affected_pods) {
    if (auto hold = held_by_view(input_, member->key, views_of_eviction(member->pod(), member->key))) return hold;
  }
  if (candidate.gang != nullptr) {
    if (auto hold = held_by_view(input_, candidate.affected.key, {k8s::Kind::PodDisruptionBudget})) return hold;
  }
  const auto& members = candidate.unit.affected_pods;
  const bool is_grouped =
      std::ranges::any_of(members, [](const auto* member) { return !member->pod().pod_group.empty(); });
  return is_grouped ? held_by_view(input_, candidate.affected.key, {k8s::Kind::PodGroup}) : std::nullopt;
}

std::optional<HoldReason> Gates::is_braked(Candidate& candidate) {
  const auto& first = *candidate.unit.affected_pods.front();
  if (candidate.gang == nullptr)
    return held_by_brake(input_, first.key, first.pod().node_name, {}, first.pod().meta.uid);
  for (const auto* member : with_bad_devices(candidate.unit.affected_pods)) {
    const auto& pod = member->pod();
    if (auto hold = held_by_brake(input_, member->key, pod.node_name, {}, pod.meta.uid)) return hold;
  }
  return std::nullopt;
}

std::optional<HoldReason> Gates::has_no_place(Candidate& candidate) {
  return waits_for_place(candidate) ? candidate.no_place : std::nullopt;
}

std::optional<HoldReason> Gates::is_over_cap(Candidate& candidate) {
  const auto& first = *candidate.unit.affected_pods.front();
  const auto workloads = workloads_in(candidate.unit, input_.world);
  if (auto hold = caps_.refuses_eviction(first.key, first.pod().node_name, uncounted(candidate.unit), workloads))
    return hold;
  if (candidate.gang == nullptr) return std::nullopt;
  // Of its bad devices each alone may fit, and all together not.
  Caps together = caps_;
  together.take_eviction(first.key, first.pod().node_name, uncounted(candidate.unit), workloads);
  for (const auto* member : with_bad_devices(candidate.unit.affected_pods)) {
    const auto& node = member->pod().node_name;
    if (auto hold = together.refuses_eviction(member->key, node, 0, workloads)) return hold;
    together.take_eviction(member->key, node, 0, workloads);
  }
  return std::nullopt;
}

std::optional<HoldReason> Gates::is_over_limit(Candidate& candidate) {
  auto hold = budget_.refuses(candidate.unit);
  candidate.fits = !hold;
  if (candidate.unit.affected_pods.size() > 1)
    wake(candidate, kept_slots(*candidate.unit.affected_pods.front(), input_.now).changes_at, input_.now);
  if (hold) budget_.reserve(candidate.unit, hold->reason);
  return hold;
}

/// Late: an owner is read again only for what would go now.
std::optional<HoldReason> Gates::knows_old_owner(Candidate& candidate) {
  for (const auto* member : candidate.unit.affected_pods) {
    if (auto hold = owner_word_too_old(member->pod(), input_.world, input_.now)) return hold;
    if (chain_above(member->pod().meta, input_.world).oldest_at) candidate.again = true;
  }
  return std::nullopt;
}

/// Ahead of its turn while its condition is on its way: both are written at the same time.
std::optional<HoldReason> Gates::has_no_record(Candidate& candidate) {
  for (const auto* member : candidate.unit.affected_pods) {
    if (member->goes_with != nullptr) continue;
    candidate.unshown = condition_not_shown(*member, input_);
    if (!candidate.unshown) {
      candidate.unshown = waiting_for_siblings(*member, followers_of_job(*member).unshown);
    }
    if (!candidate.unshown) continue;
    if (candidate.unit.affected_pods.size() > 1)
      candidate.unshown->message = words_of_member(*member, candidate.gang) + ": " + candidate.unshown->message;
    break;
  }
  if (candidate.unshown && charging_.is_ahead()) return std::nullopt;
  return charging_.record(candidate.unit);
}

std::optional<HoldReason> Gates::waits_for_condition(Candidate& candidate) { return candidate.unshown; }

/// Whoever comes here has taken its share.
std::optional<HoldReason> Gates::is_not_charged(Candidate& candidate) {
  const auto& unit = candidate.unit;
  const auto& first = *unit.affected_pods.front();
  candidate.rests.takes = true;
  budget_.take(unit);
  replacement_.take(needing_places(unit));
  caps_.take_eviction(first.key, first.pod().node_name, uncounted(unit), workloads_in(unit, input_.world));
  for (const auto* member : with_bad_devices(unit.affected_pods)) {
    if (candidate.gang != nullptr && member != &first)
      caps_.take_eviction(member->key, member->pod().node_name, 0, workloads_in(unit, input_.world));
  }
  return charging_.not_saved(unit);
}

/// What stands in the way of evicting a member of a unit, in words that name the member.
std::optional<HoldReason> Gates::blocks_unit(const AffectedPod& member, const Candidate& candidate) const {
  if (member.pod().meta.deletion) {
    return HoldReason{.reason = Reason::SharedClaim,
                      .message = "holder " + member.pod().meta.name + " is terminating already",
                      .until = {}};
  }
  std::optional<HoldReason> hold;
  if (member.goes_with != nullptr) {
    hold = holds_member(member, input_);
  } else {
    hold = held_by_itself(member, input_);
    if (!hold) hold = waiting_for(member, input_);
  }
  if (!hold) return std::nullopt;
  if (candidate.gang == nullptr) {
    hold->message = "holder " + member.pod().meta.name + " of the shared claim: " + hold->message;
    return hold;
  }
  // What holds for good keeps its word: nobody is told of an eviction that will not be.
  hold->message =
      fmt::format("{}: {}{}", words_of_member(member, candidate.gang),
                  info_of(hold->reason).for_good ? "" : fmt::format("{}: ", to_string(hold->reason)), hold->message);
  if (!info_of(hold->reason).for_good) hold->reason = Reason::GangHeld;
  return hold;
}

bool Gates::waits_for_place(const Candidate& candidate) const {
  return candidate.no_place && replacement_.holds(candidate.unit) && !was_begun(candidate.unit);
}

/// A holder of a shared claim that a budget kept: the others have gone, on what was known of places then.
bool Gates::was_begun(const Unit& unit) const {
  const auto& held_device = *unit.affected_pods.front()->held_device;
  return held_device.shared && input_.requests.was_emptied(held_device.claim_uid);
}

/// How many of its pods would count against the day: not those that do already.
std::int64_t Gates::uncounted(const Unit& unit) const {
  return std::ranges::count_if(unit.affected_pods,
                               [&](const AffectedPod* member) { return !caps_.has_counted(member->pod().meta.uid); });
}

/// In the order in which they are asked.
std::span<const Gates::Gate> Gates::in_order() {
  constexpr bool kWholeUnit = true;
  constexpr bool kShared = true;
  static constexpr auto kGates = std::to_array<Gate>({
      {{"eviction", "No eviction of the pod is under way, and nobody has deleted it."}, &Gates::is_going},
      {{"exclusions", "Nothing excludes the pod: its kind, an opt-out, its node, no controller."}, &Gates::is_excluded},
      {{"toleration",
        "No toleration allows its replacement onto the same device, or accepts the taint that the policy names."},
       &Gates::waits<tolerated>},
      {{"place search", "Always. From here on the verdict reports if no place for a replacement is known."},
       &Gates::looks_for_a_place},
      {{"gang",
        "Its policy says groups: Each, it is in no gang, or the gang can go, as far as its size, the policy's "
        "selectors and an earlier round say. No PodGroup with disruptionMode all would be split."},
       &Gates::is_held_with_gang},
      {{"window", "The incident is open, evict.after has passed, and the device is Unhealthy now."},
       &Gates::is_too_early},
      {{"cordon", "Its node is not cordoned, or has been for evict.cordonWait."}, &Gates::waits<node_cordoned>},
      {{"shared claim", "The claim is the pod's own, or all its holders can go together."}, &Gates::is_torn},
      {{"same device", "Its controller has lost no pod to this device within the hour."},
       &Gates::waits<same_device_again>},
      {.text = {"taint", "A taint that keeps new pods off the device is visible."},
       .asks = &Gates::waits<still_schedulable>,
       .asks_caps = true},
      {{"credit", "Its Job shows the retry that the loss takes, or needs none."}, &Gates::waits<held_for_credit>},
      {{"allocatable", "The node shows the loss, or 60 s have passed."}, &Gates::waits<loss_not_shown>},
      {{"siblings", "No other pod of its Job is to follow within a minute."}, &Gates::waits_for_siblings},
      {{"holders",
        "Every other holder of a shared claim, and every other pod of the gang, passes the gates up to here."},
       &Gates::waits_for_holders},
      {{"job end", "The loss does not end the Job, or the policy accepts that."}, &Gates::ends_a_job, kWholeUnit},
      {{"notice", "Its policy gives no notice, or the notice is answered or its deadline has passed."},
       &Gates::has_notice,
       kWholeUnit},
      {{"budgets", "It goes alone, or every PodDisruptionBudget allows as many pods of the gang as it selects."},
       &Gates::is_over_budget,
       kWholeUnit},
      {{"mode", "Policy and controller enforce, and enforceOn holds."}, &Gates::only_observes, kWholeUnit},
      {{"last attempt", "The last attempt did not fail, or its back-off is over."}, &Gates::backs_off, kWholeUnit},
      {{"paused", "Neither everything is paused nor its node, namespace, driver or resource."},
       &Gates::is_paused,
       kWholeUnit},
      {{"brake", "No brake covers the device, or the pod is on trial."}, &Gates::is_braked, kWholeUnit},
      {{"view", "Every watch that the eviction depends on has delivered something within 5 minutes and is trusted."},
       &Gates::sees_too_little,
       kWholeUnit},
      {{"place", "A place is known, or evict.whenNoReplacement no longer waits for one."},
       &Gates::has_no_place,
       kWholeUnit},
      {{"caps", "The caps have room for it."}, &Gates::is_over_cap, kWholeUnit, kShared},
      {{"limits", "evictions of ControllerLimits has room for it."}, &Gates::is_over_limit, kWholeUnit, kShared},
      {{"owner", "Owners that are not watched were read within the last five minutes."},
       &Gates::knows_old_owner,
       kWholeUnit},
      {{"record", "There is room to record it against the caps."}, &Gates::has_no_record, kWholeUnit, kShared},
      {{"condition", "Our condition is visible on it and on all pods evicted with it, or 30 s have passed."},
       &Gates::waits_for_condition,
       kWholeUnit},
      {{"charge", "The state ConfigMap has it recorded, and all who go with it."},
       &Gates::is_not_charged,
       kWholeUnit,
       kShared},
  });
  return kGates;
}

std::vector<GateText> Gates::texts() {
  std::vector<GateText> texts;
  for (const auto& gate : in_order()) texts.push_back(gate.text);
  return texts;
}

}  // namespace dhc::eviction
