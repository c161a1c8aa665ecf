// What is asked of the cluster, and what becomes of it: an answer and the watch that shows its effect come in any
// order, or one of them never.
#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "app/describe.h"
#include "app/turn/state.h"
#include "domain/limits/write_keys.h"

namespace dhc {

namespace {

/// Whether it is one of those of which so many are sent in a minute.
bool hands_over(const Action& action) {
  return std::holds_alternative<hand_over::ApplyNodeConditions>(action) ||
         std::holds_alternative<hand_over::MakeObject>(action) ||
         std::holds_alternative<hand_over::RemoveObject>(action);
}

std::string event_key(const notice::EmitEvent& event) { return event.regarding.ns + "/" + event.name; }

}  // namespace

/// What a request, or its answer, is about. The request tracker says it of those about pods.
void Controller::State::touch(const Action& action) {
  std::visit(
      [this](const auto& one) {
        if constexpr (requires { one.touch(touched); }) one.touch(touched);
      },
      action);
}

void Controller::State::note_sent(const Action& action, const Now& now) {
  losses.sent(action, world, incidents, now);
  note_write(action, now);
  if (const auto* evict = std::get_if<eviction::EvictPod>(&action)) {
    note_eviction(*evict, now);
  } else if (const auto* condition = std::get_if<notice::ApplyCondition>(&action)) {
    requests.condition_sent(world.pod(condition->uid)->pod, condition->said(), world.views().heard_at({k8s::Kind::Pod}),
                            now);
    requests.notices().note_sent(condition->uid, condition->wanted ? condition->wanted->noticed_at : std::nullopt, now);
  } else if (const auto* event = std::get_if<notice::EmitEvent>(&action)) {
    requests.event_sent(event_key(*event), now);
  } else if (const auto* read = std::get_if<owners::ReadOwner>(&action)) {
    requests.owner_reads().sent(read->ns, owner_key(read->ns, read->owner), now);
  }
}

void Controller::State::note_write(const Action& action, const Now& now) {
  touch(action);
  const auto key = write_key(action);
  if (!key) return;
  requests.write_sent(key->key, key->seen_version, now,
                      {.words = key->asks, .heard_at = world.views().heard_at(key->shown_by), .begins = key->begins});
  if (facts_of(action).makes_taint) requests.taint_tokens().take(1, now.mono);
  if (hands_over(action)) requests.hand_over_tokens().take(1, now.mono);
  note_asked_taint(action, true, now);
  if (const auto* apply = std::get_if<taint::ApplyRule>(&action)) {
    if (apply->uid.empty()) requests.altered_rules().note_sent(now);
    if (!apply->uid.empty() && apply->same_card_as.empty())
      incidents.rule_write_sent(DeviceKey::dra(apply->driver, apply->pool, apply->device_name));
  } else if (const auto* removal = std::get_if<taint::DeleteRule>(&action)) {
    if (removal->of_card) {
      incidents.card_removal_sent(removal->name);
    } else {
      incidents.rule_removal_sent(removal->key);
    }
  } else if (const auto* patch = std::get_if<taint::PatchNodeTaint>(&action)) {
    if (!patch->add) {
      incidents.untaint_sent(patch->node);
      doubted_untaints.erase(patch->node);
    }
  } else if (const auto* written = std::get_if<incident_state::WriteState>(&action)) {
    state.note_sent(*written);
    requests.state_bytes().take(static_cast<std::int64_t>(written->text.size()), now.mono);
  } else if (const auto* told = std::get_if<status::WriteStatus>(&action)) {
    status_desk.note_sent(*told, now);
  }
}

void Controller::State::note_eviction(const eviction::EvictPod& evict, const Now& now) {
  const auto& record = *world.pod(evict.uid);
  const auto* held_device = find_held_device(record.held_devices, evict.key);
  if (held_device == nullptr) {  // it goes with another of its gang
    HeldDevice others;
    others.key = evict.key;
    return requests.eviction_sent(record.pod, others, {}, now, false);
  }
  requests.eviction_sent(record.pod, *held_device, world.holders_of_card(evict.key), now);
}

void Controller::State::take(Outcome&& outcome, const Now& now) {
  take_sight(outcome, now);
  losses.answered(outcome, world, incidents, now);
  take_write(outcome, now);
  for (const auto& read : outcome.reads) checks.note(read, now);
  if (const auto* evict = std::get_if<eviction::EvictPod>(&outcome.action)) {
    const auto* record = world.pod(evict->uid);
    requests.eviction_done(evict->uid, outcome.status, record == nullptr ? "" : record->pod.meta.resource_version, now);
    if (outcome.status && leads && policy) bulletin.note_eviction(*evict, *policy, incidents, now);
  } else if (const auto* condition = std::get_if<notice::ApplyCondition>(&outcome.action)) {
    requests.condition_done(condition->uid, outcome.status, now);
    const auto* record = world.pod(condition->uid);
    if (record != nullptr && notice::is_refused_for_notice(*condition, outcome.status))
      requests.condition_refused_for_notice(record->pod, now);
    if (record != nullptr && outcome.status && condition->notice.empty()) requests.notice_taken_back(record->pod);
  } else if (const auto* event = std::get_if<notice::EmitEvent>(&outcome.action)) {
    requests.event_done(event_key(*event), outcome.status, now);
  }
}

void Controller::State::take_sight(Outcome& outcome, const Now& now) {
  const auto* read = std::get_if<owners::ReadOwner>(&outcome.action);
  if (read == nullptr) return;
  requests.owner_reads().done(read->ns, owner_key(read->ns, read->owner), read->asked_at, outcome.status, now);
  // What was stopped before its end has found nothing.
  if (!outcome.status && outcome.status.error().kind == ErrorKind::Cancelled) return;
  if (!outcome.sight) return;
  for (const auto& ns :
       world.owner_sights().note(*std::move(outcome.sight), read->ns, read->owner, read->asked_at, now))
    touched.owners_in(ns);
}

void Controller::State::take_write(const Outcome& outcome, const Now& now) {
  touch(outcome.action);
  const auto key = write_key(outcome.action);
  // Of an earlier term: it says nothing about what is remembered now.
  if (!key || requests.write(key->key) == nullptr) return;
  const auto* written = std::get_if<incident_state::WriteState>(&outcome.action);
  if (written != nullptr && !state.is_current(*written)) return;
  const bool is_shown = written != nullptr && state.shows(*written);
  requests.write_done(key->key, is_shown ? Status() : outcome.status, now);
  if (const auto* told = std::get_if<status::WriteStatus>(&outcome.action))
    status_desk.note_done(*told, outcome.status, now);
  if (!outcome.status && !may_have_happened(outcome.status.error())) note_asked_taint(outcome.action, false, now);
  const bool never_sent = !outcome.status && outcome.status.error().kind == ErrorKind::Cancelled;
  if (never_sent && facts_of(outcome.action).makes_taint) requests.taint_tokens().give_back(1, now.mono);
  if (never_sent && hands_over(outcome.action)) requests.hand_over_tokens().give_back(1, now.mono);
  note_handed(outcome, now);
  const bool surely_not = !outcome.status && !may_have_happened(outcome.status.error());
  if (const auto* apply = std::get_if<taint::ApplyRule>(&outcome.action)) {
    note_stored(*apply, outcome, now);
  } else if (const auto* removal = std::get_if<taint::DeleteRule>(&outcome.action)) {
    if (surely_not) note_failed(*removal);
  } else if (const auto* patch = std::get_if<taint::PatchNodeTaint>(&outcome.action)) {
    if (!patch->add) note_untaint(patch->node, outcome.status, now);
  } else if (written != nullptr && (outcome.status || is_shown)) {
    state.note_saved(*written, now);
  } else if (written != nullptr && never_sent) {
    requests.state_bytes().give_back(static_cast<std::int64_t>(written->text.size()), now.mono);
  }
}

/// Whether the rule stands as we sent it.
void Controller::State::note_stored(const taint::ApplyRule& apply, const Outcome& outcome, const Now& now) {
  const auto key = DeviceKey::dra(apply.driver, apply.pool, apply.device_name);
  const bool altered = !outcome.status && outcome.status.error().kind == ErrorKind::Altered;
  if (altered) {
    requests.altered_rules().note_altered(apply.name, {.key = key, .uid = outcome.stored_uid, .at = now.mono},
                                          outcome.status.error().message, now);
    touched.everything();
  } else if (apply.uid.empty()) {
    auto& known = requests.altered_rules();
    if (outcome.status ? known.note_kept() : known.note_failed(now)) touched.everything();
  }
  if (!apply.same_card_as.empty()) return;
  if (altered) {
    incidents.rule_write_altered(key);
  } else if (!outcome.status && may_have_happened(outcome.status.error())) {
    incidents.rule_write_lost(key, now.mono + kHappensBy);
  } else {
    incidents.rule_write_done(key);
  }
}

void Controller::State::note_failed(const taint::DeleteRule& removal) {
  if (removal.of_card) {
    incidents.card_removal_failed(removal.name);
  } else {
    incidents.rule_removal_failed(removal.key);
  }
}

/// What became of an object by which a node is handed over: the next process must know.
void Controller::State::note_handed(const Outcome& outcome, const Now& now) {
  if (const auto* make = std::get_if<hand_over::MakeObject>(&outcome.action)) {
    if (outcome.status) {
      handed.made(make->object.slot);
      incidents.note_change();
    } else if (may_have_happened(outcome.status.error())) {
      handed.doubted(make->object.slot, now.mono + kHappensBy);
    }
  } else if (const auto* removal = std::get_if<hand_over::RemoveObject>(&outcome.action);
             removal != nullptr && outcome.status) {
    handed.removed(removal->object.slot);
    incidents.note_change();
  }
}

/// A taint that is asked for counts against the caps until the World shows it, or it was surely refused.
void Controller::State::note_asked_taint(const Action& action, bool is_asked, const Now& now) {
  constexpr Millis kShownBy = std::chrono::minutes(2);  // a silent watch is renewed after 90 s
  if (!facts_of(action).makes_taint) return;
  const auto note = [&](auto& taints, const auto& key) {
    std::erase_if(taints, [&](const auto& entry) { return now.mono >= entry.second; });
    is_asked ? (void)taints.insert_or_assign(key, now.mono + kShownBy) : (void)taints.erase(key);
  };
  if (const auto* apply = std::get_if<taint::ApplyRule>(&action)) {
    note(asked.devices, DeviceKey::dra(apply->driver, apply->pool, apply->device_name));
  } else if (const auto* patch = std::get_if<taint::PatchNodeTaint>(&action)) {
    note(asked.nodes, std::pair(patch->device, patch->node));
  }
}

/// An untaint without an answer may still happen: a taint that is gone then is gone by our own doing. Later it is not.
/// A rule needs none of this: its removal is asked for until it is gone.
void Controller::State::note_untaint(const std::string& node, const Status& status, const Now& now) {
  doubted_untaints.erase(node);
  if (status) return;
  if (may_have_happened(status.error())) {
    doubted_untaints.emplace(node, now.mono + kHappensBy);
  } else {
    incidents.untaint_failed(node);
  }
}

void Controller::State::settle_doubted_untaints(const Now& now) {
  std::erase_if(doubted_untaints, [&](const auto& doubted) {
    if (now.mono < doubted.second) return false;
    incidents.untaint_failed(doubted.first);
    touched.node(doubted.first);
    return true;
  });
}

}  // namespace dhc
