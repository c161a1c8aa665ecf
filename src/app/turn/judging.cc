// What of the cluster matters for a plan, and what follows from it for the brake and the incidents.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/turn/state.h"
#include "domain/contract/ground_names.h"
#include "domain/contract/our_taint.h"

namespace dhc {

/// A term begins with what the leader before has left open, and believes what it had judged.
void Controller::State::look_at_devices(const Focus& focus, const Now& now) {
  affected_pods.update(world, *policy, focus, now);
  const auto began = std::exchange(term_began, std::nullopt);
  if (!began) return;
  for (const auto& key : incidents.judged_before(world, affected_pods.all(), *began)) world.believe(key);
  world.refresh(now);
  affected_pods.update(world, *policy, focus, now);
}

/// What is decided about anew: everything at times, whatever is known of what has changed.
Focus Controller::State::take_focus(const Now& now) {
  touched.add(world.take_touched());
  touched.add(requests.take_touched());
  for (auto& key : incidents.take_touched()) touched.device(key);
  for (const auto& uid : incidents.take_touched_pods()) touched.pod(uid);
  // One that went with its gang is spoken of by a device that it does not hold.
  for (const auto& uid : touched.pods()) {
    if (const auto* attempt = requests.eviction(uid)) touched.device(attempt->key);
  }
  for (auto& key : incidents.due(now)) touched.device(std::move(key));
  for (auto& key : brake.due(now)) touched.device(std::move(key));
  std::vector<OldView> old;
  for (const auto kind : k8s::kAllKinds) {
    if (const auto view = world.views().too_old({kind}, now)) old.push_back(*view);
  }
  const bool is_own_pod = !policy->own_pod_uid.empty() && touched.pods().contains(policy->own_pod_uid);
  if (now.mono >= all_at || is_own_pod) touched.everything();
  const auto before = std::exchange(old_views, std::move(old));
  // A stream ends every few minutes: only who asked for it is asked again.
  if (const auto changed = changed_views(before, old_views); !changed.empty()) standing.touch_views(changed, touched);
  if (touched.all()) all_at = now.mono + kLongestTrust;
  coming.note_changed(touched);
  return standing.focus_on(std::exchange(touched, {}), world, now);
}

/// Nodes that reject pods are no devices, and counted anew with each plan.
void Controller::State::note_rejecting(const RejectingNodes& rejecting_nodes) {
  for (const auto& [place, rejecting] : rejecting_nodes)
    touched.device(DeviceKey::rejecting_node(place.first, place.second));
}

/// The brake is written down with the incidents.
void Controller::State::note_brake() {
  if (std::exchange(brake_revision, brake.revision()) != brake.revision()) incidents.note_change();
}

/// An engaged brake holds all of its scope, in words that say how many are bad.
void Controller::State::follow_brakes(Focus& focus, const Now& now) {
  std::map<BrakeScope, std::string> words;
  for (const auto& [scope, engaged] : brake.engaged()) {
    auto text = to_string(scope, engaged) + waits_for(engaged, policy->limits, now);
    if (engaged.trial) text += engaged.trial->pod_uid + (engaged.trial->is_written ? " written" : "");
    for (const auto& [uid, until] : engaged.not_again) text += uid;
    words.emplace(scope, std::move(text));
  }
  std::set<std::string> changed;
  for (const auto* one : {&words, &brake_words}) {
    for (const auto& [scope, text] : *one) {
      const auto& others = one == &words ? brake_words : words;
      const auto other = others.find(scope);
      if (other == others.end() || other->second != text) changed.insert(scope.scope);
    }
  }
  for (const auto& scope : changed) standing.add_scope(focus, scope, world);
  brake_words = std::move(words);
}

void Controller::State::note_removed(const Now& now) {
  // The leader sees it too, and writes down what follows; but it may end before that.
  constexpr Millis kRemembered = std::chrono::minutes(10);
  const auto note = [&](std::map<std::string, WallTime>& removed, const std::set<std::string>& names) {
    for (const auto& name : names) removed.insert_or_assign(name, now.wall);
    std::erase_if(removed, [&](const auto& entry) { return now.wall - entry.second > kRemembered; });
  };
  note(removed_rules, world.take_removed_rules());
  note(removed_taints, world.take_removed_taints());
  note(told_rules, {});
  note(told_taints, {});
  // Our own doing: it says nothing of whatever a later state knows there.
  incidents.drop_leaving(removed_rules);
  // What the state says of a rule that went before it was read counts, and not what this process had thought of it.
  if (!leads || std::exchange(is_reloaded, false)) incidents.drop_judged(removed_rules);
}

/// Until a write of ours was accepted a state may come by which all is judged anew.
void Controller::State::note_told_removals() {
  if (state.has_saved()) {
    told_rules.clear();
    told_taints.clear();
  } else {
    const auto note = [](std::map<std::string, WallTime>& told, const std::map<std::string, WallTime>& removed) {
      for (const auto& [name, at] : removed) told.insert_or_assign(name, at);
    };
    // Whoever leads without the state removes nothing: what goes then, others take away. Of a leader before us that
    // cannot be told.
    const bool is_blind = leads && state.file().unread;
    if (!is_blind) std::erase_if(removed_rules, [](const auto& entry) { return may_be_card_rule(entry.first); });
    note(told_rules, removed_rules);
    if (is_blind) note(told_taints, removed_taints);
  }
  removed_rules.clear();
  removed_taints.clear();
}

/// Who is suspected, by what the incident store has just found; it is written down with the incidents. True if another
/// workload or image is suspected than before: everything that rests on it is decided anew. On a node or release that
/// is suspected nothing rests.
bool Controller::State::look_at_suspects(const std::set<DeviceKey>& opened, const Now& now) {
  const auto held_by_them = [&] {
    std::vector<OwnerInScope> names;
    for (const auto& [who, suspicion] : suspects.suspicions()) {
      if (!is_ground_name(who.first)) names.push_back(who);
    }
    return names;
  };
  const auto before = held_by_them();
  const bool is_any = !suspects.suspicions().empty();
  note_onsets(suspects, opened, incidents, world);
  // Who vouches, and who holds what is bad, is asked where it matters.
  const std::vector<AffectedPod> nobody;
  const bool is_asked = !opened.empty() || is_any;
  const auto hearing = hearing_of(suspects, incidents, is_asked ? affected_pods.all() : nobody, world, *policy, now);
  incidents.excuse(suspects.judge(hearing), suspects, world, *policy, now);
  if (std::exchange(suspect_revision, suspects.revision()) != suspects.revision()) incidents.note_change();
  return before != held_by_them();
}

/// What follows from incidents for how health is judged.
void Controller::State::tell_world(const Focus& focus, const Now& now) {
  if (focus.all) {
    world.note_incidents(incidents.open_incidents(policy.get()));
  } else {
    for (const auto& key : focus.devices) world.note_incident(key, incidents.open_incident(key, policy.get()));
  }
  const bool is_new = std::exchange(guarded_at, incidents.revision()) != incidents.revision();
  if (focus.all || is_new) world.note_guarded_pools(incidents.guarded_pools(world, now.wall));
  for (const auto& key : incidents.believed()) world.believe(key);
}

}  // namespace dhc
