#include "app/controller.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <variant>

#include "domain/brake.h"
#include "domain/exposure.h"
#include "domain/ledger.h"
#include "domain/scene.h"
#include "domain/world.h"
#include "reconcilers/eviction/limits.h"
#include "reconcilers/eviction/plan.h"
#include "reconcilers/notice/plan.h"

namespace dhc {

struct Controller::State {
  World world;
  Ledger ledger;
  Brake brake;
  std::shared_ptr<const Policy> policy;
  std::optional<notice::RejectedConfig> rejected;
  std::vector<Verdict> verdicts;
  std::size_t in_flight = 0;

  void take(Message&& message, const Now& now);
  void take(Outcome&& outcome, const Now& now);
  void note_sent(const Action& action, const Now& now);
  [[nodiscard]] std::vector<std::string> holders_of(const eviction::EvictPod& evict) const;
};

namespace {

std::string event_key(const notice::EmitEvent& event) { return event.regarding.ns + "/" + event.name; }

}  // namespace

void Controller::State::take(Message&& message, const Now& now) {
  if (auto* delivery = std::get_if<k8s::Delivery>(&message)) {
    world.apply(std::move(*delivery), now);
  } else if (auto* outcome = std::get_if<Outcome>(&message)) {
    take(std::move(*outcome), now);
  } else if (auto* changed = std::get_if<PolicyChanged>(&message)) {
    policy = std::move(changed->policy);
    rejected.reset();
    ledger.tokens().set_rate(policy->limits.evictions_per_minute, now.mono);
  } else if (auto* refused = std::get_if<PolicyRejected>(&message)) {
    rejected = notice::RejectedConfig{
        .why = std::move(refused->why), .source = std::move(refused->source), .since = moment_of(now)};
  }
}

void Controller::State::take(Outcome&& outcome, const Now& now) {
  if (const auto* evict = std::get_if<eviction::EvictPod>(&outcome.action)) {
    const auto* record = world.pod(evict->uid);
    ledger.eviction_done(evict->uid, outcome.status, record == nullptr ? "" : record->pod.meta.resource_version, now);
  } else if (const auto* condition = std::get_if<notice::ApplyCondition>(&outcome.action)) {
    ledger.condition_done(condition->uid, outcome.status, now);
  } else if (const auto* event = std::get_if<notice::EmitEvent>(&outcome.action)) {
    ledger.event_done(event_key(*event), outcome.status, now);
  }
}

std::vector<std::string> Controller::State::holders_of(const eviction::EvictPod& evict) const {
  for (const auto& holding : world.pod(evict.uid)->holdings) {
    if (to_string(holding.key) == evict.device) return world.tracker().find(holding.key)->holders;
  }
  return {evict.uid};
}

void Controller::State::note_sent(const Action& action, const Now& now) {
  if (const auto* evict = std::get_if<eviction::EvictPod>(&action)) {
    ledger.eviction_sent(world.pod(evict->uid)->pod, evict->device, holders_of(*evict), now);
    if (!evict->shared_claim_uid.empty()) ledger.claim_emptied(evict->shared_claim_uid);
  } else if (const auto* condition = std::get_if<notice::ApplyCondition>(&action)) {
    ledger.condition_sent(world.pod(condition->uid)->pod, now);
  } else if (const auto* event = std::get_if<notice::EmitEvent>(&action)) {
    ledger.event_sent(event_key(*event), now);
  }
}

Controller::Controller() : state_(std::make_unique<State>()) {}
Controller::~Controller() = default;
Controller::Controller(Controller&&) noexcept = default;
Controller& Controller::operator=(Controller&&) noexcept = default;

Turn Controller::turn(std::span<Message> messages, const Now& now) {
  auto& state = *state_;
  for (auto& message : messages) state.take(std::move(message), now);
  if (!state.world.synced()) return {};
  state.world.refresh(now);
  state.ledger.learn(state.world, now);
  state.ledger.forget(state.world, now);
  // Without a policy there is nothing to decide, but a configuration that was rejected is still said.
  if (!state.policy && !state.rejected) return {};
  if (!state.policy) state.policy = std::make_shared<const Policy>();
  state.brake.observe(state.world, *state.policy, now);
  const auto exposures = find_exposures(state.world, *state.policy, now);
  const Scene scene{.world = state.world,
                    .policy = *state.policy,
                    .ledger = state.ledger,
                    .brake = state.brake,
                    .exposures = exposures,
                    .now = now};
  state.in_flight = static_cast<std::size_t>(eviction::Budget(scene).in_flight());
  auto evictions = eviction::plan(scene);
  auto notices = notice::plan(scene, evictions.verdicts, state.rejected);

  Turn turn;
  Wake wake;
  for (const auto& at : {evictions.wake_at, notices.wake_at, state.world.next_change_at(now),
                         state.brake.next_change_at(state.policy->limits)}) {
    if (at && *at > now.mono) wake.note(at);
  }
  turn.wake_at = wake.at();
  for (auto& action : notices.actions) {
    std::visit([&](auto&& value) { turn.actions.emplace_back(std::forward<decltype(value)>(value)); },
               std::move(action));
  }
  for (auto& action : evictions.actions) turn.actions.emplace_back(std::move(action));
  state.verdicts = std::move(evictions.verdicts);
  state.verdicts.insert(state.verdicts.end(), std::make_move_iterator(notices.verdicts.begin()),
                        std::make_move_iterator(notices.verdicts.end()));
  std::ranges::sort(state.verdicts, {}, [](const Verdict& v) { return std::tie(v.subject, v.device, v.reason); });
  for (const auto& action : turn.actions) state.note_sent(action, now);
  return turn;
}

const std::vector<Verdict>& Controller::verdicts() const { return state_->verdicts; }

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
  stats.in_flight = state_->in_flight;
  stats.brakes_engaged = state_->brake.engaged().size();
  stats.synced = synced();
  return stats;
}

bool Controller::synced() const { return state_->world.synced(); }

}  // namespace dhc
