// What is to be done, by what is known: each reconciler plans, and what it decides stands until something touches it.
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "app/turn/state.h"
#include "app/verdict_containers.h"
#include "base/wake.h"
#include "domain/contract/our_taint.h"
#include "domain/incidents/node_case.h"
#include "reconcilers/eviction/limits.h"
#include "reconcilers/eviction/plan.h"
#include "reconcilers/eviction/trial.h"
#include "reconcilers/hand_over/plan.h"
#include "reconcilers/incident_state/plan.h"
#include "reconcilers/job_retry/plan.h"
#include "reconcilers/notice/plan.h"
#include "reconcilers/owners/plan.h"
#include "reconcilers/shared/place_search.h"
#include "reconcilers/shared/plan_input.h"
#include "reconcilers/taint/plan.h"

namespace dhc {

namespace {

template <class A>
Action as_action(A&& action) {
  return std::forward<A>(action);
}
template <class... A>
Action as_action(std::variant<A...>&& action) {
  return std::visit([](auto&& value) -> Action { return std::forward<decltype(value)>(value); }, std::move(action));
}

/// Whether something is found that was not known.
template <class Key>
bool notes_new(std::set<Key>& known, std::set<Key> found) {
  const bool is_new = !std::ranges::includes(known, found);
  known = std::move(found);
  return is_new;
}

}  // namespace

/// Without a namespace of our own nothing is written, and nothing waits for it.
std::optional<std::uint64_t> Controller::State::saved_revision() const {
  return policy->own_namespace.empty() ? std::optional(incidents.revision()) : state.file().saved;
}

CapInput Controller::State::cap_input(const Now& now) const {
  return {
      .world = world, .policy = *policy, .book = incidents.caps(), .requests = requests, .asked = asked, .now = now};
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

Turn Controller::State::stand_by(const Now& now) {
  note_removed(now);
  std::erase_if(removed_rules, [](const auto& entry) { return may_be_card_rule(entry.first); });  // likewise
  removed_taints.clear();  // an untaint of the leader's looks the same, and leaves other incidents of the node open
  in_flight = 0;
  nodes_handed_over = 0;
  brakes_half_open = 0;
  return {.actions = {}, .wake_at = world.next_change_at(now), .recalls = false};
}

/// One plan, in the order of docs/architecture.md.
class Controller::State::Planning {
 public:
  Planning(State& state, const Now& now)
      : state_(state), now_(now), rejecting_nodes_(find_rejecting_nodes(state.world, *state.policy, now)) {}

  Turn run() {
    choose_focus();
    look_at_brake();
    look_at_incidents();
    Caps caps(state_.cap_input(now_));
    node_cases_ = find_node_cases(state_.world, *state_.policy, state_.incidents, &focus_);
    state_.coming.observe(state_.world, state_.requests, now_);
    auto input = input_with(caps);
    plan_evictions(input);
    // A taint of this turn finds counted what is evicted in it.
    for (const auto& action : evictions_.actions)
      caps.take_eviction(action.key, action.device_node, 1, {action.workload});
    plan_taints(input);
    plan_jobs_and_nodes(input);
    say(input);
    keep(input);
    return turn();
  }

 private:
  void choose_focus() {
    state_.note_rejecting(rejecting_nodes_);
    if (state_.term_began) state_.touched.everything();
    state_.settle_doubted_untaints(now_);
    focus_ = state_.take_focus(now_);
    state_.look_at_devices(focus_, now_);
    in_focus_ = state_.affected_pods.in(focus_);
  }

  void widen_to_all() {
    focus_.all = true;
    in_focus_ = state_.affected_pods.in(focus_);
  }

  /// Before the incidents: none opens under an engaged brake.
  void look_at_brake() {
    state_.brake.observe({.world = state_.world,
                          .policy = *state_.policy,
                          .affected_pods = state_.affected_pods.all(),
                          .records = state_.incidents.records(),
                          .losses = state_.requests.losses(),
                          .rejecting_nodes = rejecting_nodes_,
                          .saved_revision = state_.saved_revision(),
                          .now = now_,
                          .focus = &focus_,
                          .in_focus = &in_focus_});
    state_.note_brake();
    state_.follow_brakes(focus_, now_);
    in_focus_ = state_.affected_pods.in(focus_);
  }

  void look_at_incidents() {
    const auto& affected = state_.affected_pods.all();
    state_.note_removed(now_);
    state_.incidents.observe({.world = state_.world,
                              .policy = *state_.policy,
                              .brake = state_.brake,
                              .rejecting_nodes = rejecting_nodes_,
                              .affected_pods = affected,
                              .losses = state_.requests.losses(),
                              .removed_rules = state_.removed_rules,
                              .removed_taints = state_.removed_taints,
                              .now = now_,
                              .focus = &focus_,
                              .in_focus = &in_focus_,
                              .suspects = &state_.suspects});
    state_.note_told_removals();
    opened_ = state_.incidents.take_opened();
    suspects_ = state_.look_at_suspects(opened_, now_);
    if (suspects_) widen_to_all();
    auto found = find_rollouts(affected, state_.world, now_);
    // What was said for all of them is now to be said of each that is left.
    const auto stands = [&](const auto& one) { return found.contains(one.first); };
    if (!focus_.all && !std::ranges::all_of(state_.rollouts, stands)) widen_to_all();
    state_.rollouts = std::move(found);
    // It is written down with the incidents.
    if (state_.ailing.look(affected, state_.world, *state_.policy, now_)) state_.incidents.note_change();
    state_.incidents.follow_out_of_service(state_.world, *state_.policy, now_, &focus_);
    state_.asked.drop_shown(state_.world, state_.incidents.caps());
    state_.tell_world(focus_, now_);
  }

  [[nodiscard]] PlanInput input_with(const Caps& caps) {
    return {.world = state_.world,
            .policy = *state_.policy,
            .requests = state_.requests,
            .brake = state_.brake,
            .rejecting_nodes = rejecting_nodes_,
            .affected_pods = state_.affected_pods.all(),
            .incidents = state_.incidents,
            .node_cases = node_cases_,
            .coming = state_.coming,
            .caps = caps,
            .saved_revision = state_.saved_revision(),
            .now = now_,
            .focus = &focus_,
            .in_focus = in_focus_,
            .suspects = &state_.suspects,
            .rollouts = &state_.rollouts,
            .ailing = &state_.ailing.all(),
            .unmatched = &state_.affected_pods.unmatched(),
            .handed = &state_.handed,
            .news = &state_.bulletin.kept(),
            .views_asked = &views_asked_,
            .looks_everywhere = state_.looks_everywhere};
  }

  /// The focus has become wider.
  void widen(PlanInput& input) {
    input.in_focus = state_.affected_pods.in(focus_);
    node_cases_ = find_node_cases(state_.world, *state_.policy, state_.incidents, &focus_);
  }

  void plan_evictions(PlanInput& input) {
    state_.brakes_half_open = state_.brake.count_half_open(state_.policy->limits, now_);
    std::optional<PlaceSearch> search(std::in_place, input);
    auto next_trial = eviction::choose_trial(input, *search);
    wake_.note_after(now_.mono, next_trial.wake_at);
    if (auto& choice = next_trial.choice) {
      state_.begin_trial(std::move(choice->trial), choice->node);
      focus_.all = true;
      widen(input);
    }
    state_.in_flight = static_cast<std::size_t>(eviction::Budget(input).in_flight());
    evictions_ = eviction::plan(input, *search, state_.standing.questions(focus_));
    while (state_.standing.add_changed(focus_, evictions_, state_.world)) {
      widen(input);
      search.emplace(input);
      evictions_ = eviction::plan(input, *search, state_.standing.questions(focus_));
    }
    state_.coming.note_offered(search->offered(), now_);
    state_.coming.note_crowded(search->crowded(), now_);
  }

  void plan_taints(const PlanInput& input) {
    taints_ = taint::plan(input);
    std::erase_if(state_.untainting, [&](const std::string& node) { return focus_.has_node(node); });
    state_.untainting.insert(taints_.untainting.begin(), taints_.untainting.end());
    intends_ = state_.incidents.intend_untaint(state_.world, state_.untainting, &focus_);
    std::set<std::string> going;
    for (const auto& action : evictions_.actions) going.insert(action.uid);
    state_.incidents.charge(std::move(evictions_.charges), going, state_.requests, now_);
  }

  void plan_jobs_and_nodes(const PlanInput& input) {
    jobs_ = job_retry::plan(input);
    handed_ = hand_over::plan(input);
    state_.nodes_handed_over = handed_.handed_over;
    notes_ = !handed_.changes.empty();
    if (notes_) {
      state_.incidents.note_change();
      state_.handed.take(std::move(handed_.changes), state_.incidents.revision());
    }
    const bool is_news = state_.bulletin.look({.world = state_.world,
                                               .policy = *state_.policy,
                                               .incidents = state_.incidents,
                                               .requests = state_.requests,
                                               .saved_revision = state_.saved_revision(),
                                               .now = now_,
                                               .handed = &state_.handed});
    if (is_news) state_.incidents.note_change();
    saving_ = incident_state::plan(input, state_.state.file());
  }

  /// What all of them have to say, and the reads that this asks for.
  void say(const PlanInput& input) {
    auto verdicts = evictions_.verdicts;
    for (const auto* more : {&taints_.verdicts, &jobs_.verdicts, &handed_.verdicts, &saving_.verdicts})
      verdicts.insert(verdicts.end(), more->begin(), more->end());
    auto of_owners = state_.standing.about_owners(focus_);
    of_owners.insert(of_owners.end(), verdicts.begin(), verdicts.end());
    std::ranges::sort(of_owners, {}, [](const Verdict& v) { return std::tie(v.subject, v.device, v.reason); });
    reads_ = owners::plan(input, of_owners, evictions_.asks_owners);
    notices_ = notice::plan(input, verdicts, state_.rejected);
    state_.refused_since.keep(notices_.verdicts);
  }

  void keep(const PlanInput& input) {
    auto decided = take_decided(input);
    state_.asked_pods = input.in_focus.size();
    state_.losses.look(state_.world, state_.incidents, opened_, focus_, decided.verdicts, handed_, now_);
    state_.standing.replace(focus_, std::move(decided), evictions_, input.in_focus, views_asked_, state_.world,
                            state_.incidents, state_.brake);
    state_.standing.replace_last({});
    told_ = state_.status_desk.plan(input, state_.standing.verdicts());
    std::ranges::move(state_.of_webhook(now_), std::back_inserter(told_.verdicts));
    state_.standing.replace_last(std::move(told_.verdicts));
  }

  [[nodiscard]] Decided take_decided(const PlanInput& input) {
    Decided decided;
    decided.now = now_.mono;
    decided.take(evictions_);
    decided.take(taints_);
    decided.take(jobs_);
    decided.take(handed_);
    decided.take(saving_);
    decided.take(notices_);
    for (auto& [key, said] : decided.verdicts) name_containers(said, state_.world);
    name_containers(decided.others, state_.world);
    // Its incident opens, whatever holds the pod's eviction before that.
    for (const auto* affected : input.in_focus) {
      decided.wake(affected->key, affected->opens_at);
      if (affected->rolls_until) decided.wake(affected->key, *affected->rolls_until);
      // A wall time that is still ahead counts as now, and with each plan anew.
      if (affected->since.mono >= now_.mono) decided.again.insert(affected->key);
      // Where the pods of its gang are decides what may be done, also before they are a unit.
      const bool waits_for_gang = affected->policy->enforce_on && affected->policy->evict &&
                                  affected->policy->evict->groups_together && affected->pod().is_marked;
      if (waits_for_gang) decided.again.insert(affected->key);
    }
    return decided;
  }

  /// Whether what was ordered before, and is not begun, must not be.
  [[nodiscard]] bool recalls() {
    const bool brakes = state_.notes_new_brake();
    for (const auto& uid : state_.revoked) {
      const auto* attempt = state_.requests.eviction(uid);
      if (attempt != nullptr && attempt->state == Attempt::State::Sending && !focus_.has(attempt->key))
        evictions_.revoked.insert(uid);
    }
    const bool revokes = state_.notes_new_revoked(std::move(evictions_.revoked));
    return brakes || revokes;
  }

  void note_wakes() {
    for (const auto& at :
         {evictions_.wake_at, taints_.wake_at, jobs_.wake_at, handed_.wake_at, saving_.wake_at, reads_.wake_at,
          notices_.wake_at, told_.wake_at, state_.standing.wake_at(now_), state_.incidents.next_change_at(),
          state_.world.next_change_at(now_), state_.brake.next_change_at(state_.policy->limits, now_),
          state_.coming.next_change_at(now_), state_.checks.next_change_at(), state_.ailing.next_change_at(),
          state_.bulletin.next_change_at()}) {
      wake_.note_after(now_.mono, at);
    }
    // What was intended may be done once it is written; of what a suspect holds incidents begin or do not.
    if (intends_ || suspects_ || notes_) wake_.note(now_.mono + kAtOnce);
    if (suspects_) state_.touched.everything();
    if (const auto at = state_.suspects.next_change_at())
      wake_.note_after(now_.mono, now_.mono + std::chrono::ceil<Millis>(*at - now_.wall));
    for (const auto& [node, until] : state_.doubted_untaints) wake_.note_after(now_.mono, until);
  }

  [[nodiscard]] Turn turn() {
    Turn turn{.actions = {}, .wake_at = {}, .recalls = recalls()};
    note_wakes();
    turn.wake_at = wake_.at();
    const auto add = [&](auto& actions) {
      for (auto& action : actions) turn.actions.push_back(as_action(std::move(action)));
    };
    add(notices_.actions);
    add(taints_.actions);
    add(jobs_.actions);
    add(handed_.actions);
    add(evictions_.actions);
    add(reads_.actions);
    add(saving_.actions);
    add(told_.actions);
    for (const auto& action : turn.actions) state_.note_sent(action, now_);
    return turn;
  }

  State& state_;
  const Now& now_;
  RejectingNodes rejecting_nodes_;
  Focus focus_;
  std::vector<const AffectedPod*> in_focus_;
  std::set<DeviceKey> opened_;  // whose incidents have just begun
  NodeCases node_cases_;
  ViewsAsked views_asked_;
  eviction::Plan evictions_;
  taint::TaintPlan taints_;
  Planned<job_retry::JobAction> jobs_;
  hand_over::Plan handed_;
  Planned<incident_state::WriteState> saving_;
  Planned<owners::ReadOwner> reads_;
  Planned<notice::NoticeAction> notices_;
  Planned<status::WriteStatus> told_;
  Wake wake_;
  bool suspects_ = false;  // others than before
  bool intends_ = false;   // an untaint that is written down first
  bool notes_ = false;     // an object that is written down first
};

Turn Controller::State::plan(const Now& now) {
  if (!leads) standing = {};
  if (!leads || !policy) touched.everything();
  if (!world.synced()) return {};
  clock.settle();
  blind = world.views().is_silent(kEveryView, now);
  world.refresh(now);
  if (!std::exchange(coverage_told, true)) coverage = coverage_of(world, *policy);
  doubts = checks.take(world, now);
  if (!leads) return stand_by(now);
  requests.learn(world, incidents.caps().charges(), now);
  if (policy) incidents.settle_charges(world, requests, *policy, now);
  requests.forget(world, now);
  // Without a policy there is nothing to decide, but a configuration that was rejected is still said.
  if (!policy && !rejected) return {};
  if (!policy) policy = std::make_shared<const Policy>();
  if (state.do_without_earlier(incidents, now)) note_loaded(now);
  if (const auto until = state.waits(policy->own_namespace, now)) {
    touched.everything();
    return {.actions = {}, .wake_at = until, .recalls = false};
  }
  return Planning(*this, now).run();
}

}  // namespace dhc
