// What comes in: the cluster as the watches show it, the configuration, an election.
#include <utility>
#include <variant>

#include "app/turn/state.h"
#include "domain/limits/write_keys.h"
#include "reconcilers/eviction/limits.h"
#include "reconcilers/hand_over/plan.h"
#include "reconcilers/incident_state/plan.h"
#include "reconcilers/owners/plan.h"
#include "reconcilers/shared/hold_reasons.h"

namespace dhc {

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
  if (!leads) return state.end_term();
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
  is_reloaded = true;
  for (auto& [name, at] : std::exchange(told_rules, {})) removed_rules.insert_or_assign(name, at);
  for (auto& [name, at] : std::exchange(told_taints, {})) removed_taints.insert_or_assign(name, at);
  world.note_homes(incidents.homes());
  world.recall_incidents(incidents.open_incidents(policy.get()));
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
  bulletin.forget_unwritten();
  bulletin.recall(state.take_news(), now);
  auto noted = state.take_ailing();
  ailing = AilingPods(noted, now);
  world.note_ailing(std::move(noted));
  if (auto brakes = state.take_brakes()) brake.load(*std::move(brakes), now);
  brake.recall_onsets(incidents.records(), world, now);
}

}  // namespace dhc
