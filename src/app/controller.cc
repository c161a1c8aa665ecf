#include "app/controller.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "app/describe.h"
#include "app/turn/state.h"
#include "domain/findings/pauses.h"

namespace dhc {

namespace {

/// What an NTP daemon corrects without a jump is no other clock.
constexpr Millis kClockStep = Seconds(1);

}  // namespace

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
  return is_news || is_set || state_->due_at <= now.mono + State::kAtOnce;
}

Turn Controller::plan(const Now& raw) {
  const auto now = state_->believe(raw, recorder_.get());
  state_->losses.advance(now);
  auto turn = state_->plan(now);
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
  const Caps caps(state.cap_input(now));
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
