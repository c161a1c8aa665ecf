#include "reconcilers/eviction/gates.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "domain/contract/names.h"
#include "domain/incidents/state_caps.h"
#include "domain/limits/write_keys.h"
#include "reconcilers/eviction/going.h"
#include "reconcilers/eviction/shared_claims.h"
#include "reconcilers/eviction/waits.h"
#include "reconcilers/shared/exclusions.h"
#include "reconcilers/shared/job_credit.h"
#include "reconcilers/shared/job_end.h"
#include "reconcilers/shared/rulings.h"

namespace dhc::eviction {

namespace {

std::string would_because(const Exposure& exposure) {
  return exposure.policy->mode == Mode::Observe ? fmt::format("policy {} says mode: observe", exposure.policy->name)
                                                : std::string("the controller runs with --mode observe");
}

}  // namespace

Gates::Gates(const Scene& scene, PlaceSearch& search)
    : scene_(scene), budget_(scene), caps_(scene.caps), replacement_(scene, search) {
  for (const auto& exposure : scene.exposures) {
    const auto& controller = exposure.pod().meta.controller;
    if (controller && controller->kind == "Job")
      siblings_[exposure.pod().meta.controller_identity()].push_back(&exposure);
  }
}

std::optional<Held> Gates::ask(Candidate& candidate) {
  for (const auto& gate : in_order()) {
    if (auto ruling = (this->*gate.asks)(candidate)) {
      return Held{.ruling = *std::move(ruling), .whole_unit = gate.whole_unit};
    }
  }
  return std::nullopt;
}

std::optional<Ruling> Gates::is_going(Candidate& candidate) {
  const auto& pod = candidate.exposure.pod();
  if (chosen_.contains(pod.meta.uid)) {
    return Ruling{.reason = Reason::Evicting, .message = "evicted in this turn", .until = {}};
  }
  if (pod.meta.deletion) return departing(pod, scene_);
  // Between the server's answer and the watch event with the deletionTimestamp the pod looks as if nothing had
  // happened.
  if (auto remark = in_vain(pod, scene_)) {
    candidate.remarks.push_back(*std::move(remark));
  } else if (const auto* attempt = scene_.ledger.eviction(pod.meta.uid);
             attempt != nullptr && attempt->state == Attempt::State::Accepted) {
    candidate.wake_at = slot_until(*attempt, pod, scene_.policy.limits);
  }
  return is_under_way(pod, scene_) ? held_by_last_attempt(pod, scene_) : std::nullopt;
}

std::optional<Ruling> Gates::is_excluded(Candidate& candidate) { return excluded_because(candidate.exposure, scene_); }

/// Holds nobody: that no place is known is said at once, whatever else the eviction waits for.
std::optional<Ruling> Gates::looks_for_a_place(Candidate& candidate) {
  const auto& exposure = candidate.exposure;
  if (exposure.holding->shared && exposure.policy->evict) {
    auto unit = unit_of_claim(exposure, scene_);
    if (unit) {
      candidate.unit = *std::move(unit);
    } else {
      candidate.no_unit = std::move(unit.error());
    }
  }
  if (!candidate.no_unit && exposure.open && exposure.policy->evict) {
    candidate.no_place = replacement_.lacking(candidate.unit);
  }
  if (candidate.no_place) candidate.remarks.push_back(*candidate.no_place);
  return std::nullopt;
}

std::optional<Ruling> Gates::is_too_early(Candidate& candidate) { return window_of(candidate.exposure, scene_); }

std::optional<Ruling> Gates::is_torn(Candidate& candidate) { return candidate.no_unit; }

template <std::optional<Ruling> (*kWaits)(const Exposure&, const Scene&)>
std::optional<Ruling> Gates::waits(Candidate& candidate) {
  return kWaits(candidate.exposure, scene_);
}

std::optional<Ruling> Gates::waits_for_siblings(Candidate& candidate) {
  const auto siblings = siblings_.find(candidate.exposure.pod().meta.controller_identity());
  if (siblings == siblings_.end()) return std::nullopt;
  return waiting_for_siblings(candidate.exposure, siblings->second, scene_);
}

std::optional<Ruling> Gates::waits_for_holders(Candidate& candidate) {
  for (const auto* member : candidate.unit.exposures) {
    if (auto ruling = blocks_unit(*member)) return ruling;
  }
  return std::nullopt;
}

/// Counted with those that go in this turn already.
std::optional<Ruling> Gates::ends_a_job(Candidate& candidate) {
  auto going = chosen_;
  for (const auto* member : candidate.unit.exposures) {
    if (auto ruling = held_for_job_end(*member, scene_, going)) return ruling;
    going.insert(member->pod().meta.uid);
  }
  return std::nullopt;
}

std::optional<Ruling> Gates::only_observes(Candidate& candidate) {
  const auto& first = *candidate.unit.exposures.front();
  if (first.mode != Mode::Observe || waits_for_place(candidate)) return std::nullopt;
  return Ruling{.reason = Reason::WouldEvict, .message = would_because(first), .until = {}};
}

std::optional<Ruling> Gates::backs_off(Candidate& candidate) {
  for (const auto* member : candidate.unit.exposures) {
    if (auto ruling = held_by_last_attempt(member->pod(), scene_)) return ruling;
  }
  return std::nullopt;
}

std::optional<Ruling> Gates::is_paused(Candidate& /*candidate*/) {
  if (!scene_.policy.limits.paused) return std::nullopt;
  return Ruling{.reason = Reason::Paused, .message = "ControllerLimits says paused: true", .until = {}};
}

std::optional<Ruling> Gates::sees_too_little(Candidate& candidate) {
  for (const auto* member : candidate.unit.exposures) {
    if (auto ruling = held_by_view(scene_, views_of_eviction(member->pod(), member->key))) return ruling;
  }
  return std::nullopt;
}

std::optional<Ruling> Gates::is_braked(Candidate& candidate) {
  const auto& first = *candidate.unit.exposures.front();
  return held_by_brake(scene_, first.key, first.pod().node_name, {}, first.pod().meta.uid);
}

std::optional<Ruling> Gates::has_no_place(Candidate& candidate) {
  return waits_for_place(candidate) ? candidate.no_place : std::nullopt;
}

std::optional<Ruling> Gates::is_over_cap(Candidate& candidate) {
  const auto& first = *candidate.unit.exposures.front();
  return caps_.refuses_eviction(first.key, first.pod().node_name, uncounted(candidate.unit));
}

std::optional<Ruling> Gates::is_over_limit(Candidate& candidate) { return budget_.refuses(candidate.unit); }

/// Late: an owner is read again only for what would go now.
std::optional<Ruling> Gates::knows_old_owner(Candidate& candidate) {
  for (const auto* member : candidate.unit.exposures) {
    if (auto ruling = owner_word_too_old(member->pod(), scene_.world, scene_.now)) return ruling;
  }
  return std::nullopt;
}

/// Each eviction is recorded before it is sent: a leader that is killed in between, again and again, would otherwise
/// walk past the caps. One write serves all of a turn, so that whoever comes here has taken its share.
std::optional<Ruling> Gates::is_not_charged(Candidate& candidate) {
  const auto& unit = candidate.unit;
  const auto& first = *unit.exposures.front();
  budget_.take(unit);
  replacement_.take(unit);
  caps_.take_eviction(first.key, first.pod().node_name, uncounted(unit));
  bool all_saved = true;
  const auto& charges = scene_.memory.caps().charges();
  for (const auto* member : unit.exposures) {
    if (!charge(*member)) {
      return Ruling{
          .reason = Reason::CapReached,
          .message = fmt::format("ConfigMap {} has no room left for what is out of service on our account", kStateName),
          .until = {}};
    }
    const auto found = charges.find(member->pod().meta.uid);
    all_saved = all_saved && found != charges.end() && scene_.saved_revision &&
                found->second.revision <= *scene_.saved_revision;
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

/// Has the member's eviction recorded, if it is not; false if there is no room. A pod that holds several bad devices
/// goes once, and is charged once.
bool Gates::charge(const Exposure& member) {
  const auto& book = scene_.memory.caps();
  const auto& uid = member.pod().meta.uid;
  if (book.charges().contains(uid) || !charged_.insert(uid).second) return true;
  if (!has_room(book)) return false;
  charges_.push_back({.pod_uid = uid,
                      .key = member.key,
                      .node = member.pod().node_name,
                      .at = scene_.now.wall,
                      .counted = false,
                      .revision = 0,
                      .recalled = false});
  return true;
}

/// What stands in the way of evicting a member of a unit, in words that name the member.
std::optional<Ruling> Gates::blocks_unit(const Exposure& member) const {
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

bool Gates::waits_for_place(const Candidate& candidate) const {
  return candidate.no_place && replacement_.holds(candidate.unit) && !was_begun(candidate.unit);
}

/// A holder of a shared claim that a budget kept: the others have gone, on what was known of places then.
bool Gates::was_begun(const Unit& unit) const {
  const auto& holding = *unit.exposures.front()->holding;
  return holding.shared && scene_.ledger.was_emptied(holding.claim_uid);
}

/// How many of its pods would count against the day: not those that were accepted in vain, which have.
std::int64_t Gates::uncounted(const Unit& unit) const {
  const auto& charges = scene_.memory.caps().charges();
  return std::ranges::count_if(unit.exposures, [&](const Exposure* member) {
    const auto charge = charges.find(member->pod().meta.uid);
    return charge == charges.end() || !charge->second.counted;
  });
}

/// One line for each of `kGateTexts`, in the same order.
const std::array<Gates::Gate, kGateTexts.size()>& Gates::in_order() {
  constexpr bool kWholeUnit = true;
  static constexpr std::array<Gate, kGateTexts.size()> kGates = {
      Gate{&Gates::is_going},
      Gate{&Gates::is_excluded},
      Gate{&Gates::looks_for_a_place},
      Gate{&Gates::is_too_early},
      Gate{&Gates::is_torn},
      Gate{&Gates::waits<same_device_again>},
      Gate{&Gates::waits<still_schedulable>},
      Gate{&Gates::waits<held_for_credit>},
      Gate{&Gates::waits<loss_not_shown>},
      Gate{&Gates::waits<condition_not_shown>},
      Gate{&Gates::waits_for_siblings},
      Gate{&Gates::waits_for_holders},
      Gate{&Gates::ends_a_job, kWholeUnit},
      Gate{&Gates::only_observes, kWholeUnit},
      Gate{&Gates::backs_off, kWholeUnit},
      Gate{&Gates::is_paused, kWholeUnit},
      Gate{&Gates::sees_too_little, kWholeUnit},
      Gate{&Gates::is_braked, kWholeUnit},
      Gate{&Gates::has_no_place, kWholeUnit},
      Gate{&Gates::is_over_cap, kWholeUnit},
      Gate{&Gates::is_over_limit, kWholeUnit},
      Gate{&Gates::knows_old_owner, kWholeUnit},
      Gate{&Gates::is_not_charged, kWholeUnit},
  };
  return kGates;
}

}  // namespace dhc::eviction
