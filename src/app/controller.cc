#include "app/controller.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "app/describe.h"
#include "app/record/recorder.h"
#include "app/standing_plan.h"
#include "app/state_desk.h"
#include "app/verdict_containers.h"
#include "app/webhook/bulletin.h"
#include "base/believed_clock.h"
#include "domain/cluster/world.h"
#include "domain/contract/ground_names.h"
#include "domain/contract/our_taint.h"
#include "domain/findings/affected_pod.h"
#include "domain/findings/pauses.h"
#include "domain/findings/rejecting_node.h"
#include "domain/incidents/ailing_watch.h"
#include "domain/incidents/incident_store.h"
#include "domain/incidents/node_case.h"
#include "domain/incidents/suspect_watch.h"
#include "domain/limits/brake.h"
#include "domain/limits/caps.h"
#include "domain/limits/request_tracker.h"
#include "domain/limits/write_keys.h"
#include "reconcilers/eviction/limits.h"
#include "reconcilers/eviction/plan.h"
#include "reconcilers/eviction/trial.h"
#include "reconcilers/hand_over/plan.h"
#include "reconcilers/incident_state/plan.h"
#include "reconcilers/job_retry/plan.h"
#include "reconcilers/notice/plan.h"
#include "reconcilers/notice/refused_since.h"
#include "reconcilers/owners/plan.h"
#include "reconcilers/shared/coming_pods.h"
#include "reconcilers/shared/hold_reasons.h"
#include "reconcilers/shared/job_credit.h"
#include "reconcilers/shared/place_search.h"
#include "reconcilers/shared/plan_input.h"
#include "reconcilers/status/desk.h"
#include "reconcilers/taint/plan.h"

namespace dhc {

struct Controller::State {
  BelievedClock clock;
  World world;
  RequestTracker requests;
  Brake brake;
  IncidentStore incidents;
  Suspects suspects;
  HandedObjects handed;
  AilingPods ailing;
  Rollouts rollouts;
  ComingPods coming;
  AskedTaints asked;
  StateDesk state;
  status::Desk status_desk;
  ViewChecks checks;
  Losses losses;
  Bulletin bulletin;
  std::optional<std::pair<std::string, Moment>> webhook_problem;  // and since when
  std::vector<ViewDoubt> doubts;
  std::optional<Now> clock_taken;  // last
  /// The time to decide by; the API server's times are read by it from then on.
  Now believe(const Now& raw, record::Recorder* recorder) {
    const bool was_in_doubt = clock.is_in_doubt();
    const auto before = std::exchange(clock_taken, raw);
    const auto now = clock.take(raw);
    // It goes on from the moment before, which changed nothing and was not written down.
    if (recorder != nullptr && before && !was_in_doubt && clock.is_in_doubt()) recorder->took(*before, true);
    world.note_server_ahead(clock.server_ahead());
    return now;
  }

  // Not yet told to the incident store, and when they went away.
  std::map<std::string, WallTime> removed_rules;
  std::map<std::string, WallTime> removed_taints;  // nodes
  // Nodes of which an untaint got no answer, and until when it may happen yet.
  std::map<std::string, MonoTime> doubted_untaints;
  bool leads = true;                   // until an election says otherwise
  std::optional<MonoTime> term_began;  // until what was called bad before it has been judged
  std::shared_ptr<const Policy> policy;
  std::optional<notice::RejectedConfig> rejected;
  notice::RefusedSince refused_since;
  AffectedPods affected_pods;
  StandingPlan standing;
  Touched touched;                    // since the last plan
  MonoTime all_at = MonoTime::min();  // when everything is decided anew
  std::vector<OldView> old_views;     // at the last plan
  std::map<BrakeScope, std::string> brake_words;
  std::set<std::string> untainting;  // nodes
  std::uint64_t guarded_at = 0;      // the incident store's revision when its pools were last asked for
  std::size_t in_flight = 0;
  std::size_t brakes_half_open = 0;
  std::size_t nodes_handed_over = 0;
  std::size_t asked_pods = 0;
  std::uint64_t brake_revision = 0;  // that the incident store knows of
  std::uint64_t suspect_revision = 0;
  std::set<BrakeScope> braked;    // by the last plan
  std::set<std::string> revoked;  // pods whose evictions the last plan found on their way and would not order
  bool looks_everywhere = false;  // for places: of a plan that is made from nothing
  bool blind = false;
  std::vector<PolicyCoverage> coverage;
  bool coverage_told = true;          // of this policy
  MonoTime due_at = MonoTime::min();  // when to plan again whatever comes
  Now planned_at;

  [[nodiscard]] bool take(Message&& message, const Now& now);
  [[nodiscard]] bool take(k8s::Delivery&& delivery, const Now& now);
  void take(Outcome&& outcome, const Now& now);
  void take(const Leading& message, const Now& now);
  void set_rates(const Now& now);
  void note_removed(const Now& now);
  void note_untaint(const std::string& node, const Status& status, const Now& now);
  void settle_doubted_untaints(const Now& now);
  void note_brake();
  [[nodiscard]] bool look_at_suspects(const std::set<DeviceKey>& opened, const Now& now);
  [[nodiscard]] bool notes_new_brake();
  [[nodiscard]] bool notes_new_revoked(std::set<std::string> found);
  void begin_trial(BrakeTrial trial, const std::string& node);
  [[nodiscard]] std::optional<std::uint64_t> saved_revision() const;
  void look_at_devices(const Focus& focus, const Now& now);
  [[nodiscard]] Focus take_focus(const Now& now);
  void note_rejecting(const RejectingNodes& rejecting_nodes);
  void follow_brakes(Focus& focus, const Now& now);
  void tell_world(const Focus& focus, const Now& now);
  void touch(const Action& action);
  [[nodiscard]] Turn stand_by(const Now& now);
  void take_sight(Outcome& outcome, const Now& now);
  void take_write(const Outcome& outcome, const Now& now);
  void note_stored(const taint::ApplyRule& apply, const Outcome& outcome, const Now& now);
  void note_failed(const taint::DeleteRule& removal);
  void note_write(const Action& action, const Now& now);
  void note_handed(const Outcome& outcome, const Now& now);
  void note_sent(const Action& action, const Now& now);
  void note_eviction(const eviction::EvictPod& evict, const Now& now);
  void note_loaded(const Now& now);
  void note_webhook(std::string&& problem, const Now& now);
  [[nodiscard]] std::vector<Verdict> of_webhook(const Now& now) const;
  void note_asked_taint(const Action& action, bool asked, const Now& now);
};

namespace {

template <class A>
Action as_action(A&& action) {
  return std::forward<A>(action);
}
template <class... A>
Action as_action(std::variant<A...>&& action) {
  return std::visit([](auto&& value) -> Action { return std::forward<decltype(value)>(value); }, std::move(action));
}

/// What an NTP daemon corrects without a jump is no other clock.
constexpr Millis kClockStep = Seconds(1);
/// No API server works on a request for longer.
constexpr Millis kHappensBy = std::chrono::minutes(2);
/// What a plan leaves to the next one that follows it.
constexpr Millis kAtOnce{1};

/// Whether something is found that was not known.
template <class Key>
bool notes_new(std::set<Key>& known, std::set<Key> found) {
  const bool is_new = !std::ranges::includes(known, found);
  known = std::move(found);
  return is_new;
}

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

/// True if the plan may be another by it.
bool Controller::State::take(Message&& message, const Now& now) {
  if (auto* delivery = std::get_if<k8s::Delivery>(&message)) return take(std::move(*delivery), now);
  if (auto* outcome = std::get_if<Outcome>(&message)) {
    take(std::move(*outcome), now);
  } else if (auto* changed = std::get_if<PolicyChanged>(&message)) {
    touched.everything();
    policy = std::move(changed->policy);
    coverage_told = false;
    rejected.reset();
    set_rates(now);
    if (state.note_policy(policy, incidents, now)) note_loaded(now);
  } else if (auto* refused = std::get_if<PolicyRejected>(&message)) {
    rejected = notice::RejectedConfig{
        .why = std::move(refused->why), .source = std::move(refused->source), .since = moment_of(now)};
  } else if (const auto* leading = std::get_if<Leading>(&message)) {
    take(*leading, now);
  } else if (auto* earlier = std::get_if<EarlierState>(&message)) {
    if (state.take_earlier(std::move(earlier->map), incidents, now)) note_loaded(now);
  } else if (auto* webhook = std::get_if<WebhookSeen>(&message)) {
    note_webhook(std::move(webhook->problem), now);
  }
  return true;
}

void Controller::State::note_webhook(std::string&& problem, const Now& now) {
  if (problem.empty()) return webhook_problem.reset();
  webhook_problem = std::pair(std::move(problem), webhook_problem ? webhook_problem->second : moment_of(now));
}

std::vector<Verdict> Controller::State::of_webhook(const Now& now) const {
  if (!webhook_problem) return {};
  return {verdict_of({.subject = {.kind = "Configuration", .ns = {}, .name = "configuration", .uid = {}},
                      .device = {},
                      .policy = {},
                      .since = webhook_problem->second.wall},
                     {.reason = Reason::WebhookFails, .message = webhook_problem->first, .until = {}}, now)};
}

bool Controller::State::take(k8s::Delivery&& delivery, const Now& now) {
  // Where a request or a read waits for the World to move on, a version alone is news.
  const auto* upsert = std::get_if<k8s::Upsert>(&delivery);
  const bool is_asked = upsert != nullptr && requests.waits_for(upsert->object);
  const bool is_awaited = is_asked || (upsert != nullptr && checks.waiting() > 0);
  if (is_asked) {
    const auto& meta = k8s::meta_of(upsert->object);
    switch (k8s::kind_of(upsert->object)) {
      case k8s::Kind::Pod:
        touched.pod(meta.uid);
        break;
      case k8s::Kind::Node:
        touched.node(meta.name);
        break;
      case k8s::Kind::Job:
        touched.owner(meta.identity());
        break;
      default:
        break;  // the World says what a rule is about
    }
  }
  if (state.take(delivery, incidents, now)) note_loaded(now);
  // An answer that was lost is in the watch.
  const auto* write = state.take_seen_own() ? requests.write(std::string(kStateKey)) : nullptr;
  if (write != nullptr && write->state == Attempt::State::Failed) requests.write_done(std::string(kStateKey), {}, now);
  return world.apply(std::move(delivery), now) || is_awaited;
}

void Controller::State::set_rates(const Now& now) {
  requests.tokens().set_rate(policy->limits.evictions_per_minute, now.mono);
  requests.attempt_tokens().set_rate(eviction::attempts_per_minute(policy->limits), now.mono);
  requests.taint_tokens().set_rate(policy->limits.taints_per_minute, now.mono);
  requests.hand_over_tokens().set_rate(hand_over::kWritesPerMinute, now.mono);
  requests.owner_reads().tokens().set_rate(owners::kReadsPerMinute, now.mono);
  requests.state_bytes().set_rate(incident_state::kStateBytesPerMinute, now.mono);
}

void Controller::State::take(const Leading& message, const Now& now) {
  if (message.leads == leads) return;
  touched.everything();
  removed_taints.clear();
  (void)world.take_removed_taints();
  losses.turn_over(now);
  leads = message.leads;
  brake = Brake();
  brake_revision = 0;
  term_began.reset();
  bulletin = Bulletin();
  webhook_problem.reset();
  refused_since = {};
  if (!leads) return;
  term_began = now.mono;
  // As after a start, but with a warm World: what we tried in an earlier term, and what we remember from it, is older
  // than what another leader may have done and written since.
  requests = RequestTracker();
  asked = AskedTaints();
  status_desk = status::Desk();
  if (policy) set_rates(now);
  incidents = IncidentStore();
  doubted_untaints.clear();
  suspects = Suspects();
  handed = HandedObjects();
  suspect_revision = 0;
  ailing = AilingPods();
  if (state.begin_term(incidents, now)) note_loaded(now);
}

void Controller::State::note_loaded(const Now& now) {
  touched.everything();
  incidents.await_earlier_removals(now.mono + kHappensBy);
  world.note_homes(incidents.homes());
  world.note_incidents(incidents.open_incidents(policy.get()));
  world.note_guarded_pools(incidents.guarded_pools(world, now.wall));
  requests.recall_losses(incidents.records(), now);
  if (auto found = state.take_suspects()) {
    suspects = *std::move(found);
    suspect_revision = suspects.revision();
  }
  if (auto found = state.take_handed()) {
    handed = *std::move(found);
    handed.await_earlier(now.mono + kHappensBy);
  }
  bulletin.recall(state.take_news(), now);
  auto noted = state.take_ailing();
  ailing = AilingPods(noted, now);
  world.note_ailing(std::move(noted));
  if (auto brakes = state.take_brakes()) brake.load(*std::move(brakes), now);
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

void Controller::State::take_sight(Outcome& outcome, const Now& now) {
  const auto* read = std::get_if<owners::ReadOwner>(&outcome.action);
  if (read == nullptr) return;
  requests.owner_reads().done(read->ns, owner_key(read->ns, read->owner), read->asked_at, outcome.status, now);
  // What was stopped before its end has found nothing.
  if (!outcome.status && outcome.status.error().kind == ErrorKind::Cancelled) return;
  if (outcome.sight) world.owner_sights().note(*std::move(outcome.sight), read->ns, read->owner, read->asked_at, now);
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

void Controller::State::note_removed(const Now& now) {
  // The leader sees it too, and writes down what follows; but it may end before that.
  constexpr Millis kRemembered = std::chrono::minutes(10);
  const auto note = [&](std::map<std::string, WallTime>& removed, const std::set<std::string>& names) {
    for (const auto& name : names) removed.insert_or_assign(name, now.wall);
    std::erase_if(removed, [&](const auto& entry) { return now.wall - entry.second > kRemembered; });
  };
  note(removed_rules, world.take_removed_rules());
  note(removed_taints, world.take_removed_taints());
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

/// The brake is written down with the incidents.
void Controller::State::note_brake() {
  if (std::exchange(brake_revision, brake.revision()) != brake.revision()) incidents.note_change();
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

/// Whether a brake is engaged that was not at the last plan: one may be released in the very turn in which another
/// engages.
bool Controller::State::notes_new_brake() {
  std::set<BrakeScope> engaged;
  for (const auto& [scope, brake_there] : brake.engaged()) engaged.insert(scope);
  return notes_new(braked, std::move(engaged));
}

/// Whether an eviction is revoked that was not at the last plan: one that has begun cannot be recalled, and is not
/// recalled again and again.
bool Controller::State::notes_new_revoked(std::set<std::string> found) { return notes_new(revoked, std::move(found)); }

void Controller::State::begin_trial(BrakeTrial trial, const std::string& node) {
  incidents.note_change();
  trial.revision = incidents.revision();
  brake.begin_trial(trial, node);
  brake_revision = brake.revision();
}

/// Without a namespace of our own nothing is written, and nothing waits for it.
std::optional<std::uint64_t> Controller::State::saved_revision() const {
  return policy->own_namespace.empty() ? std::optional(incidents.revision()) : state.file().saved;
}

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

Turn Controller::State::stand_by(const Now& now) {
  note_removed(now);
  std::erase_if(removed_rules, [](const auto& entry) { return may_be_card_rule(entry.first); });  // likewise
  removed_taints.clear();  // an untaint of the leader's looks the same, and leaves other incidents of the node open
  in_flight = 0;
  nodes_handed_over = 0;
  brakes_half_open = 0;
  return {.actions = {}, .wake_at = world.next_change_at(now), .recalls = false};
}

Controller::Controller() : state_(std::make_unique<State>()) {}
Controller::~Controller() = default;
Controller::Controller(Controller&&) noexcept = default;
Controller& Controller::operator=(Controller&&) noexcept = default;

bool Controller::take(std::span<Message> messages, const Now& raw) {
  // Whatever comes with it is read by the clock that it speaks of.
  for (const auto& message : messages) {
    if (const auto* seen = std::get_if<ServerClockSeen>(&message)) state_->clock.server_is_ahead(seen->ahead, raw);
  }
  const auto now = state_->believe(raw, recorder_.get());
  bool is_news = false;
  for (auto& message : messages) {
    if (recorder_) recorder_->hear(message);
    const bool changes = state_->take(std::move(message), now);
    if (recorder_) recorder_->heard(changes);
    is_news = changes || is_news;
  }
  const auto passed = now.mono - state_->planned_at.mono;
  // A wall clock that was set makes other times of those that are written in the cluster.
  const bool is_set = now.wall - state_->planned_at.wall > passed + kClockStep ||
                      now.wall - state_->planned_at.wall < passed - kClockStep;
  if (is_set) state_->touched.everything();
  // How long a clock has been in doubt decides when it is believed: also in a replay.
  if (recorder_) recorder_->took(raw, is_set || state_->clock.is_in_doubt());
  return is_news || is_set || state_->due_at <= now.mono + kAtOnce;
}

Turn Controller::plan(const Now& raw) {
  const auto now = state_->believe(raw, recorder_.get());
  state_->losses.advance(now);
  auto turn = plan_all(now);
  state_->planned_at = now;
  state_->due_at = std::min(turn.wake_at.value_or(MonoTime::max()), now.mono + kLongestPlan);
  if (recorder_) recorder_->planned(turn, verdicts(), raw);
  return turn;
}

FullPlan Controller::plan_from_nothing(const Now& now) const {
  Controller other;
  other.state_ = std::make_unique<State>(*state_);
  other.state_->standing = {};
  other.state_->touched.everything();
  other.state_->looks_everywhere = true;
  auto turn = other.plan(now);
  return {.turn = std::move(turn), .verdicts = other.verdicts(), .losses = other.losses(), .news = other.news()};
}

Turn Controller::turn(std::span<Message> messages, const Now& now) {
  (void)take(messages, now);
  return plan(now);
}

Turn Controller::plan_all(const Now& now) {
  auto& state = *state_;
  if (!state.leads) state.standing = {};
  if (!state.leads || !state.policy) state.touched.everything();
  if (!state.world.synced()) return {};
  state.clock.settle();
  state.blind = state.world.views().is_silent(kEveryView, now);
  state.world.refresh(now);
  if (!std::exchange(state.coverage_told, true)) state.coverage = coverage_of(state.world, *state.policy);
  state.doubts = state.checks.take(state.world, now);
  if (!state.leads) return state.stand_by(now);
  state.requests.learn(state.world, state.incidents.caps().charges(), now);
  if (state.policy) state.incidents.settle_charges(state.world, state.requests, *state.policy, now);
  state.requests.forget(state.world, now);
  // Without a policy there is nothing to decide, but a configuration that was rejected is still said.
  if (!state.policy && !state.rejected) return {};
  if (!state.policy) state.policy = std::make_shared<const Policy>();
  if (state.state.do_without_earlier(state.incidents, now)) state.note_loaded(now);
  if (const auto until = state.state.waits(state.policy->own_namespace, now)) {
    state.touched.everything();
    return {.actions = {}, .wake_at = until, .recalls = false};
  }
  const auto rejecting_nodes = find_rejecting_nodes(state.world, *state.policy, now);
  state.note_rejecting(rejecting_nodes);
  if (state.term_began) state.touched.everything();
  state.settle_doubted_untaints(now);
  auto focus = state.take_focus(now);
  state.look_at_devices(focus, now);
  const auto& affected_pods = state.affected_pods.all();
  auto in_focus = state.affected_pods.in(focus);
  state.brake.observe({.world = state.world,
                       .policy = *state.policy,
                       .affected_pods = affected_pods,
                       .records = state.incidents.records(),
                       .losses = state.requests.losses(),
                       .rejecting_nodes = rejecting_nodes,
                       .saved_revision = state.saved_revision(),
                       .now = now,
                       .focus = &focus,
                       .in_focus = &in_focus});
  state.note_brake();
  state.follow_brakes(focus, now);
  in_focus = state.affected_pods.in(focus);
  state.note_removed(now);
  state.incidents.observe({.world = state.world,
                           .policy = *state.policy,
                           .brake = state.brake,
                           .rejecting_nodes = rejecting_nodes,
                           .affected_pods = affected_pods,
                           .losses = state.requests.losses(),
                           .removed_rules = state.removed_rules,
                           .removed_taints = state.removed_taints,
                           .now = now,
                           .focus = &focus,
                           .in_focus = &in_focus,
                           .suspects = &state.suspects});
  state.removed_rules.clear();
  state.removed_taints.clear();
  const auto opened = state.incidents.take_opened();
  const bool suspects = state.look_at_suspects(opened, now);
  if (suspects) {
    focus.all = true;
    in_focus = state.affected_pods.in(focus);
  }
  auto rollouts = find_rollouts(affected_pods, state.world, now);
  // What was said for all of them is now to be said of each that is left.
  const auto stands = [&](const auto& one) { return rollouts.contains(one.first); };
  if (!focus.all && !std::ranges::all_of(state.rollouts, stands)) {
    focus.all = true;
    in_focus = state.affected_pods.in(focus);
  }
  state.rollouts = std::move(rollouts);
  // It is written down with the incidents.
  if (state.ailing.look(affected_pods, state.world, *state.policy, now)) state.incidents.note_change();
  state.incidents.follow_out_of_service(state.world, *state.policy, now, &focus);
  state.asked.drop_shown(state.world, state.incidents.caps());
  state.tell_world(focus, now);
  Caps caps({.world = state.world,
             .policy = *state.policy,
             .book = state.incidents.caps(),
             .requests = state.requests,
             .asked = state.asked,
             .now = now});
  auto node_cases = find_node_cases(state.world, *state.policy, state.incidents, &focus);
  state.coming.observe(state.world, state.requests, now);
  ViewsAsked views_asked;
  PlanInput input{.world = state.world,
                  .policy = *state.policy,
                  .requests = state.requests,
                  .brake = state.brake,
                  .rejecting_nodes = rejecting_nodes,
                  .affected_pods = affected_pods,
                  .incidents = state.incidents,
                  .node_cases = node_cases,
                  .coming = state.coming,
                  .caps = caps,
                  .saved_revision = state.saved_revision(),
                  .now = now,
                  .focus = &focus,
                  .in_focus = in_focus,
                  .suspects = &state.suspects,
                  .rollouts = &state.rollouts,
                  .ailing = &state.ailing.all(),
                  .unmatched = &state.affected_pods.unmatched(),
                  .handed = &state.handed,
                  .news = &state.bulletin.kept(),
                  .views_asked = &views_asked,
                  .looks_everywhere = state.looks_everywhere};
  const auto widen = [&] {
    input.in_focus = state.affected_pods.in(focus);
    node_cases = find_node_cases(state.world, *state.policy, state.incidents, &focus);
  };
  state.brakes_half_open = state.brake.count_half_open(state.policy->limits, now);
  std::optional<PlaceSearch> search(std::in_place, input);
  auto next_trial = eviction::choose_trial(input, *search);
  if (auto& choice = next_trial.choice) {
    state.begin_trial(std::move(choice->trial), choice->node);
    focus.all = true;
    widen();
  }
  state.in_flight = static_cast<std::size_t>(eviction::Budget(input).in_flight());
  auto evictions = eviction::plan(input, *search, state.standing.questions(focus));
  while (state.standing.add_changed(focus, evictions, state.world)) {
    widen();
    search.emplace(input);
    evictions = eviction::plan(input, *search, state.standing.questions(focus));
  }
  state.coming.note_offered(search->offered(), now);
  state.coming.note_crowded(search->crowded(), now);
  // A taint of this turn finds counted what is evicted in it.
  for (const auto& action : evictions.actions) {
    caps.take_eviction(action.key, action.device_node, 1, {action.workload});
  }
  auto taints = taint::plan(input);
  std::erase_if(state.untainting, [&](const std::string& node) { return focus.has_node(node); });
  state.untainting.insert(taints.untainting.begin(), taints.untainting.end());
  const bool intends = state.incidents.intend_untaint(state.world, state.untainting, &focus);
  std::set<std::string> going;
  for (const auto& action : evictions.actions) going.insert(action.uid);
  state.incidents.charge(std::move(evictions.charges), going, state.requests, now);
  auto jobs = job_retry::plan(input);
  auto handed = hand_over::plan(input);
  state.nodes_handed_over = handed.handed_over;
  const bool notes = !handed.changes.empty();
  if (notes) {
    state.incidents.note_change();
    state.handed.take(std::move(handed.changes), state.incidents.revision());
  }
  if (state.bulletin.look({.world = state.world,
                           .policy = *state.policy,
                           .incidents = state.incidents,
                           .requests = state.requests,
                           .saved_revision = state.saved_revision(),
                           .now = now,
                           .handed = &state.handed}))
    state.incidents.note_change();
  auto saving = incident_state::plan(input, state.state.file());
  auto verdicts = evictions.verdicts;
  for (const auto* more : {&taints.verdicts, &jobs.verdicts, &handed.verdicts, &saving.verdicts})
    verdicts.insert(verdicts.end(), more->begin(), more->end());
  auto of_owners = state.standing.about_owners(focus);
  of_owners.insert(of_owners.end(), verdicts.begin(), verdicts.end());
  std::ranges::sort(of_owners, {}, [](const Verdict& v) { return std::tie(v.subject, v.device, v.reason); });
  auto reads = owners::plan(input, of_owners, evictions.asks_owners);
  auto notices = notice::plan(input, verdicts, state.rejected);
  state.refused_since.keep(notices.verdicts);
  Decided decided;
  decided.now = now.mono;
  decided.take(evictions);
  decided.take(taints);
  decided.take(jobs);
  decided.take(handed);
  decided.take(saving);
  decided.take(notices);
  for (auto& [key, said] : decided.verdicts) name_containers(said, state.world);
  name_containers(decided.others, state.world);
  // Its incident opens, whatever holds the pod's eviction before that.
  for (const auto* affected : input.in_focus) {
    decided.wake(affected->key, affected->opens_at);
    if (affected->rolls_until) decided.wake(affected->key, *affected->rolls_until);
    // A wall time that is still ahead counts as now, and with each plan anew.
    if (affected->since.mono >= now.mono) decided.again.insert(affected->key);
    // Where the pods of its gang are decides what may be done, also before they are a unit.
    const bool waits_for_gang = affected->policy->enforce_on && affected->policy->evict &&
                                affected->policy->evict->groups_together && affected->pod().is_marked;
    if (waits_for_gang) decided.again.insert(affected->key);
  }
  state.asked_pods = input.in_focus.size();
  state.losses.look(state.world, state.incidents, opened, focus, decided.verdicts, handed, now);
  state.standing.replace(focus, std::move(decided), evictions, input.in_focus, views_asked, state.world,
                         state.incidents, state.brake);
  state.standing.replace_last({});
  auto told = state.status_desk.plan(input, state.standing.verdicts());
  std::ranges::move(state.of_webhook(now), std::back_inserter(told.verdicts));
  state.standing.replace_last(std::move(told.verdicts));

  const bool brakes = state.notes_new_brake();
  for (const auto& uid : state.revoked) {
    const auto* attempt = state.requests.eviction(uid);
    if (attempt != nullptr && attempt->state == Attempt::State::Sending && !focus.has(attempt->key))
      evictions.revoked.insert(uid);
  }
  const bool revokes = state.notes_new_revoked(std::move(evictions.revoked));
  Turn turn{.actions = {}, .wake_at = {}, .recalls = brakes || revokes};
  Wake wake;
  for (const auto& at :
       {next_trial.wake_at, evictions.wake_at, taints.wake_at, jobs.wake_at, handed.wake_at, saving.wake_at,
        reads.wake_at, notices.wake_at, told.wake_at, state.standing.wake_at(now), state.incidents.next_change_at(),
        state.world.next_change_at(now), state.brake.next_change_at(state.policy->limits, now),
        state.coming.next_change_at(now), state.checks.next_change_at(), state.ailing.next_change_at(),
        state.bulletin.next_change_at()}) {
    wake.note_after(now.mono, at);
  }
  // What was intended may be done once it is written; of what a suspect holds incidents begin or do not.
  if (intends || suspects || notes) wake.note(now.mono + kAtOnce);
  if (suspects) state.touched.everything();
  if (const auto at = state.suspects.next_change_at())
    wake.note_after(now.mono, now.mono + std::chrono::ceil<Millis>(*at - now.wall));
  for (const auto& [node, until] : state.doubted_untaints) wake.note_after(now.mono, until);
  turn.wake_at = wake.at();
  const auto add = [&](auto& actions) {
    for (auto& action : actions) turn.actions.push_back(as_action(std::move(action)));
  };
  add(notices.actions);
  add(taints.actions);
  add(jobs.actions);
  add(handed.actions);
  add(evictions.actions);
  add(reads.actions);
  add(saving.actions);
  add(told.actions);
  for (const auto& action : turn.actions) state.note_sent(action, now);
  return turn;
}

void Controller::record_to(std::shared_ptr<record::Recorder> recorder) { recorder_ = std::move(recorder); }

const std::vector<Verdict>& Controller::verdicts() const { return state_->standing.verdicts(); }

std::set<std::string> Controller::busy_nodes() const {
  if (!state_->leads) return {};
  return dhc::busy_nodes(state_->world, state_->incidents);
}

Overview Controller::overview(const Now& raw, const std::set<std::string>* nodes) const {
  const auto now = state_->clock.at(raw);
  const auto& state = *state_;
  if (!state.leads || !synced() || !state.policy) return {};
  const Caps caps({.world = state.world,
                   .policy = *state.policy,
                   .book = state.incidents.caps(),
                   .requests = state.requests,
                   .asked = state.asked,
                   .now = now});
  return overview_of({.world = state.world,
                      .policy = *state.policy,
                      .brake = state.brake,
                      .incidents = state.incidents,
                      .caps = caps,
                      .verdicts = state.standing.verdicts(),
                      .in_flight = state.in_flight,
                      .now = now,
                      .nodes = nodes});
}

ControllerStats Controller::stats() const {
  const auto& world = state_->world;
  ControllerStats stats;
  stats.pods = world.pods().size();
  stats.claims = world.claim_count();
  for (const auto& key : world.tracker().not_healthy()) {
    const auto* device = world.tracker().find(key);
    ++(device->health == k8s::Health::Unhealthy ? stats.devices_unhealthy : stats.devices_unknown);
  }
  stats.devices_healthy = world.tracker().devices().size() - world.tracker().not_healthy().size();
  stats.other_words = static_cast<std::size_t>(std::ranges::count_if(
      world.tracker().other_words(), [](const auto& entry) { return !entry.second.silent_since; }));
  if (state_->leads) stats.incidents = count_incidents(state_->incidents.records(), world);
  stats.losses = losses();
  stats.in_flight = state_->in_flight;
  stats.brakes_engaged = state_->brake.engaged().size();
  stats.nodes_handed_over = state_->nodes_handed_over;
  stats.brakes_half_open = state_->brakes_half_open;
  stats.asked = state_->asked_pods;
  stats.lost_replacements = world.lost_replacements().count();
  if (state_->policy) {
    const auto now = state_->planned_at.wall;
    stats.pauses = standing_pauses(*state_->policy, now).size() + (pause_of(*state_->policy, now) ? 1 : 0);
  }
  stats.synced = synced();
  stats.blind = state_->blind;
  stats.rules_api_version = world.inventory().rules_api_version();
  return stats;
}

LossFigures Controller::losses() const { return state_->losses.figures(); }

std::vector<Measured> Controller::take_measured() { return state_->losses.take_measured(); }

std::vector<ViewDoubt> Controller::take_doubts() { return std::exchange(state_->doubts, {}); }

std::vector<News> Controller::take_news() { return state_->bulletin.take(); }

const std::vector<News>& Controller::news() const { return state_->bulletin.ready(); }

const WebhookRules* Controller::webhook() const {
  const auto& state = *state_;
  return state.leads && state.policy && state.policy->limits.webhook ? &*state.policy->limits.webhook : nullptr;
}

std::vector<PolicyCoverage> Controller::take_coverage() { return std::exchange(state_->coverage, {}); }

bool Controller::synced() const { return state_->world.synced(); }

}  // namespace dhc
