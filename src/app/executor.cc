#include "app/executor.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "app/carry_out.h"
#include "app/describe.h"

namespace dhc {

namespace {
constexpr int kTaintThreads = 2;
constexpr int kJobThreads = 2;
constexpr int kObjectThreads = 2;
// One at a time: an older state must not arrive after a newer one.
constexpr int kStateThreads = 1;
// Likewise; on its own, so that no eviction waits behind it for its charge.
constexpr int kStatusThreads = 1;
// One at a time: Events are best effort, and this bounds what they cost the server.
constexpr int kEventThreads = 1;
// An API that does not answer keeps one busy for half a minute at most.
constexpr int kReadThreads = 2;
constexpr std::size_t kLaneCapacity = 1024;
}  // namespace

Executor::Executor(const k8s::Client& client, std::string reporting_instance, Report report)
    : client_(client),
      reporting_instance_(std::move(reporting_instance)),
      report_(std::move(report)),
      evictions_(kLaneCapacity),
      taints_(kLaneCapacity),
      jobs_(kLaneCapacity),
      objects_(kLaneCapacity),
      conditions_(kLaneCapacity),
      state_(kLaneCapacity),
      status_(kLaneCapacity),
      events_(kLaneCapacity),
      reads_(kLaneCapacity),
      old_(4 * kLaneCapacity) {
  const auto start = [this](Lane& lane, int count) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this, &lane](const std::stop_token& stop) { work(lane, stop); });
    }
  };
  start(evictions_, kEvictionThreads);
  start(taints_, kTaintThreads);
  start(jobs_, kJobThreads);
  start(objects_, kObjectThreads);
  start(conditions_, kConditionThreads);
  start(state_, kStateThreads);
  start(status_, kStatusThreads);
  start(events_, kEventThreads);
  start(reads_, kReadThreads);
}

Executor::~Executor() { request_stop(); }

void Executor::request_stop() {
  // All first, then the join: they stop side by side.
  for (auto& thread : threads_) thread.request_stop();
}

bool Executor::drain(Millis patience) {
  std::unique_lock lock(mutex_);
  draining_ = true;
  (void)withdraw_all();
  return idle_.wait_for(lock, patience, [this] { return busy_ == 0; });
}

std::vector<Action> Executor::withdraw(std::initializer_list<Lane*> lanes, SteadyTime until) {
  std::vector<Action> actions;
  for (auto* lane : lanes) {
    for (auto& order : lane->take_while([&](const Order& one) { return one.given < until; })) {
      actions.push_back(std::move(order.action));
      if (holds_orders(*lane) || lane == &old_) --orders_;
    }
  }
  return actions;
}

std::vector<Action> Executor::withdraw_old_orders() {
  auto actions = withdraw({&old_});
  for (auto* lane : {&evictions_, &taints_, &jobs_, &objects_}) {
    auto more = withdraw({lane}, stopwatch_now() - longest_order(*lane));
    std::ranges::move(more, std::back_inserter(actions));
  }
  return actions;
}

std::vector<Action> Executor::withdraw_orders() { return withdraw({&old_, &evictions_, &taints_, &jobs_, &objects_}); }

bool Executor::holds_orders(const Lane& lane) const {
  return &lane == &evictions_ || &lane == &taints_ || &lane == &jobs_ || &lane == &objects_;
}

Millis Executor::longest_order(const Lane& lane) const {
  return &lane == &evictions_ ? kLongestEvictionOrder : kLongestOrder;
}

std::vector<Action> Executor::withdraw_all() {
  return withdraw(
      {&old_, &evictions_, &taints_, &jobs_, &objects_, &conditions_, &state_, &status_, &events_, &reads_});
}

bool Executor::submit(const Action& action, SteadyTime since) {
  Order order{.action = action, .since = since, .given = stopwatch_now()};
  auto& lane = lane_of(action);
  const bool is_order = holds_orders(lane);
  if (is_order) ++orders_;
  const bool pushed = lane.try_push(order);
  if (is_order && !pushed) --orders_;
  return pushed;
}

Executor::Lane& Executor::lane_of(const Action& action) {
  switch (facts_of(action).queue) {
    case Queue::Evictions:
      return evictions_;
    case Queue::Taints:
      return taints_;
    case Queue::Jobs:
      return jobs_;
    case Queue::Objects:
      return objects_;
    case Queue::Conditions:
      return conditions_;
    case Queue::State:
      return state_;
    case Queue::StatusMap:
      return status_;
    case Queue::Reads:
      return reads_;
    case Queue::Events:
      break;
  }
  return events_;
}

void Executor::work(Lane& lane, const std::stop_token& stop) {
  while (auto order = lane.pop(stop)) {
    const bool is_order = holds_orders(lane);
    // There is room for all that fit into their lanes.
    if (is_order && stopwatch_now() - order->given > longest_order(lane) && old_.try_push(*order)) continue;
    if (is_order) --orders_;
    {
      const std::lock_guard lock(mutex_);
      if (draining_) continue;  // it was on its way from the lane while that was emptied
      ++busy_;
    }
    attempt(*std::move(order), stop);
    const std::lock_guard lock(mutex_);
    if (--busy_ == 0) idle_.notify_all();
  }
}

void Executor::attempt(Order order, const std::stop_token& stop) {
  const auto begun = stopwatch_now();
  report_({.outcome = carry_out(std::move(order.action), client_, reporting_instance_, stop),
           .since = order.since,
           .begun = begun});
}

}  // namespace dhc
