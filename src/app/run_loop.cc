#include "app/run_loop.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "app/clock.h"
#include "app/memory.h"
#include "app/outcome_log.h"
#include "app/verdict_changes.h"

namespace dhc {

namespace {
// Many messages a turn while a list arrives, few enough that a turn stays short.
constexpr std::size_t kBatch = 4096;
// A plan that asks for the past must not make the loop spin.
constexpr Millis kShortestWait{2};
constexpr Millis kWaitAfterDrop{100};
// A turn that took longer than this is followed by a rest as long as it was too long: what comes meanwhile shares the
// next one.
constexpr Millis kQuickTurn{20};
constexpr Millis kLongestRest{100};
// Figures are counted for people and scrapers, who look less often.
constexpr Millis kShowFigures{250};
// The live page: news soon, the rest once a second; and whoever looks takes at most a twentieth of the loop's time: a
// fortieth for what is decided and the nodes on which something is wrong, so that news are there within a second
// however large the cluster is, and one for all other nodes.
constexpr Millis kShowLive{200};
constexpr Millis kShowFacts{1000};
constexpr int kLiveShare = 40;

bool is_list(const Received& received) {
  const auto* delivery = std::get_if<k8s::Delivery>(&received.message);
  return delivery != nullptr && std::holds_alternative<k8s::Snapshot>(*delivery);
}

void log_coverage(Log& log, const PolicyCoverage& one) {
  if (one.devices > 0) {
    return log.info(
        "policy covers devices",
        {{"policy", one.policy}, {"mode", to_string(one.mode)}, {"devices", one.devices}, {"held", one.held}});
  }
  log.warn(
      "policy covers no device that is known now: does its match name a resource or driver, and nodes, of this "
      "cluster?",
      {{"policy", one.policy}, {"mode", to_string(one.mode)}, {"devices", 0}});
}
}  // namespace

RunLoop::RunLoop(Inbox& inbox, Executor& executor, Shown shown)
    : inbox_(inbox),
      executor_(executor),
      shown_(std::move(shown)),
      published_(std::make_shared<const std::vector<Verdict>>()) {}

void RunLoop::run(const std::stop_token& stop) {
  MonoTime plan_at = mono_now();
  MonoTime rests_until = plan_at;
  std::optional<SteadyTime> since;  // of what has not been planned yet
  while (true) {
    auto batch = inbox_.pop_batch(kBatch, std::min({plan_at, figures_at_, live_at()}), stop);
    if (stop.stop_requested()) return;
    const auto arrived = batch.empty() ? stopwatch_now() : batch.front().at;
    const Now now = read_now();
    const bool lists = std::ranges::any_of(batch, is_list);
    if (take(std::move(batch), now)) {
      since = since.value_or(arrived);
      // A pause or a lost Lease rests for nobody.
      plan_at = std::min(plan_at, recall_ == Recall::OldOrders ? rests_until : now.mono);
    }
    if (now.mono >= plan_at) {
      plan_at = plan(std::exchange(since, std::nullopt).value_or(arrived), now);
      const bool is_at_once = plan_at <= now.mono;
      const MonoTime end = mono_now();
      rests_until = end + std::clamp<Millis>(end - now.mono - kQuickTurn, Millis(0), kLongestRest);
      if (!is_at_once) plan_at = std::max(plan_at, rests_until);
    }
    if (lists) give_back_memory();
    if (now.mono >= figures_at_) show_figures();
    if (now.mono >= live_at()) show_live(now);
  }
}

MonoTime RunLoop::plan(SteadyTime since, const Now& now) {
  withdraw(now);
  Turn turn = controller_.plan(now);
  if (turn.recalls) {
    recall_ = Recall::Orders;
    withdraw(now);
  }
  dispatch(turn.actions, since);
  show(now);
  live_is_old_ = nodes_are_old_ = true;
  figures_at_ = std::min(figures_at_, figures_shown_ + kShowFigures);
  if (turn.recalls) return now.mono;
  if (!dropped_.empty()) return now.mono + kWaitAfterDrop;
  // Orders that have waited too long are decided anew, whether anything has happened or not.
  const Millis stands = executor_.has_orders() ? Executor::kLongestOrder : Millis(Controller::kLongestPlan);
  const MonoTime next = std::min(turn.wake_at.value_or(MonoTime::max()), now.mono + stands);
  return std::max(next, now.mono + kShortestWait);
}

void RunLoop::finish() {
  for (const auto& received : inbox_.take_all()) {
    if (const auto* outcome = std::get_if<Outcome>(&received.message)) show(*outcome);
  }
}

bool RunLoop::take(std::vector<Received> batch, const Now& now) {
  std::vector<Message> messages;
  messages.reserve(batch.size() + dropped_.size());
  for (auto& outcome : std::exchange(dropped_, {})) messages.emplace_back(std::move(outcome));
  for (auto& received : batch) messages.push_back(std::move(received.message));
  for (const auto& message : messages) {
    if (const auto* outcome = std::get_if<Outcome>(&message)) show(*outcome);
    const auto* leading = std::get_if<Leading>(&message);
    if (leading != nullptr && !leading->leads) recall_ = Recall::Everything;
    // A pause must find no order waiting.
    const bool is_policy = std::holds_alternative<PolicyChanged>(message);
    if (is_policy && recall_ == Recall::OldOrders) recall_ = Recall::Orders;
    const auto* delivery = std::get_if<k8s::Delivery>(&message);
    const auto* bad = delivery == nullptr ? nullptr : std::get_if<k8s::Unreadable>(delivery);
    if (bad != nullptr) log_unreadable(shown_.log, *bad);
  }
  return controller_.take(messages, now);
}

/// What is not begun is planned anew. Not shown: nothing was tried.
void RunLoop::withdraw(const Now& now) {
  std::vector<Message> messages;
  for (auto& action : recalled()) {
    messages.emplace_back(Outcome{.action = std::move(action), .status = fail(ErrorKind::Cancelled, "not sent")});
  }
  (void)controller_.take(messages, now);
}

std::vector<Action> RunLoop::recalled() {
  switch (std::exchange(recall_, Recall::OldOrders)) {
    case Recall::Everything:
      return executor_.withdraw_all();
    case Recall::Orders:
      return executor_.withdraw_orders();
    case Recall::OldOrders:
      break;
  }
  return executor_.withdraw_old_orders();
}

void RunLoop::dispatch(const std::vector<Action>& actions, SteadyTime since) {
  for (const auto& action : actions) {
    if (executor_.submit(action, since)) continue;
    dropped_.push_back({.action = action, .status = fail(ErrorKind::TooManyRequests, "our own queue is full")});
  }
}

void RunLoop::show(const Outcome& outcome) {
  shown_.metrics.count(outcome);
  log_outcome(shown_.log, outcome);
}

void RunLoop::show(const Now& now) {
  for (const auto& one : controller_.take_coverage()) log_coverage(shown_.log, one);
  for (const auto& doubt : controller_.take_doubts()) shown_.doubt(doubt);
  for (const auto& measured : controller_.take_measured()) shown_.metrics.show(measured);
  shown_.tell(controller_.webhook(), controller_.take_news());
  const auto& verdicts = controller_.verdicts();
  if (verdicts != *published_) {
    const auto changes = changes_between(*published_, verdicts);
    for (const auto& verdict : changes.begun) log_verdict(shown_.log, verdict);
    for (const auto& verdict : changes.ended) log_verdict_ended(shown_.log, verdict);
    published_ = std::make_shared<const std::vector<Verdict>>(verdicts);
    shown_.status_store.show(published_);
  }
  shown_.status_store.turn_done(now.mono);
}

MonoTime RunLoop::live_at() {
  const auto term = shown_.live.wanted();
  if (!term) return MonoTime::max();
  if (term != live_term_) return MonoTime::min();
  const auto at = live_shown_ + (live_is_old_ ? live_pause_ : std::max(live_pause_, kShowFacts));
  return nodes_are_old_ ? std::min(at, nodes_at_) : at;
}

void RunLoop::show_live(const Now& now) {
  const auto term = shown_.live.wanted();
  const auto pause_after = [began = mono_now()] { return std::max(kShowLive, (mono_now() - began) * kLiveShare); };
  shown_.refresh();
  shown_.live.show(OverviewLog::Part::Facts, overview_of_facts(shown_.status_store.facts(), now));
  if (term != live_term_ || (nodes_are_old_ && now.mono >= nodes_at_)) {
    show_all_nodes(now);
    nodes_at_ = mono_now() + pause_after();
  } else {
    if (live_is_old_) show_busy_nodes(now);
    live_pause_ = pause_after();
  }
  live_is_old_ = false;
  live_term_ = term;
  live_shown_ = mono_now();
}

void RunLoop::show_all_nodes(const Now& now) {
  shown_.live.show(OverviewLog::Part::Cluster, controller_.overview(now));
  busy_nodes_ = controller_.busy_nodes();
  nodes_are_old_ = false;
}

void RunLoop::show_busy_nodes(const Now& now) {
  auto busy = controller_.busy_nodes();
  // Where nothing is wrong any more that is news too.
  auto nodes = std::exchange(busy_nodes_, busy);
  nodes.merge(busy);
  auto overview = controller_.overview(now, &nodes);
  // Who judges nothing any more shows nothing.
  const std::string_view some = overview.empty() ? std::string_view() : kNodeEntry;
  shown_.live.show(OverviewLog::Part::Cluster, std::move(overview), some);
}

void RunLoop::show_figures() {
  figures_shown_ = mono_now();
  figures_at_ = MonoTime::max();
  const auto stats = controller_.stats();
  if (stats.synced && rules_api_version_ != stats.rules_api_version) {
    rules_api_version_ = stats.rules_api_version;
    shown_.log.info("capability",
                    {{"kind", "DeviceTaintRule"},
                     {"apiVersion", stats.rules_api_version.empty() ? std::string_view("none")
                                                                    : std::string_view(stats.rules_api_version)}});
  }
  shown_.metrics.show(stats, *published_);
  shown_.blind(stats.blind);
  shown_.refresh();
}

}  // namespace dhc
