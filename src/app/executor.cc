#include "app/executor.h"

#include <utility>

#include "reconcilers/eviction/execute.h"
#include "reconcilers/notice/execute.h"

namespace dhc {

namespace {
template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

// An eviction may take 35 s (the server retries for 10), and five may be in flight by default.
constexpr int kEvictionThreads = 4;
constexpr int kConditionThreads = 2;
// One at a time: Events are best effort, and this bounds what they cost the server.
constexpr int kEventThreads = 1;
constexpr std::size_t kLaneCapacity = 1024;
}  // namespace

Executor::Executor(const k8s::Client& client, std::string reporting_instance, Report report)
    : client_(client),
      reporting_instance_(std::move(reporting_instance)),
      report_(std::move(report)),
      evictions_(kLaneCapacity),
      conditions_(kLaneCapacity),
      events_(kLaneCapacity) {
  const auto start = [this](Lane& lane, int count) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this, &lane](const std::stop_token& stop) { work(lane, stop); });
    }
  };
  start(evictions_, kEvictionThreads);
  start(conditions_, kConditionThreads);
  start(events_, kEventThreads);
}

Executor::~Executor() { request_stop(); }

void Executor::request_stop() {
  // All first, then the join: they stop side by side.
  for (auto& thread : threads_) thread.request_stop();
}

std::vector<Action> Executor::withdraw_evictions() {
  std::vector<Action> actions;
  for (auto& order : evictions_.take_all()) actions.push_back(std::move(order.action));
  return actions;
}

bool Executor::submit(const Action& action, Moment since) {
  Order order{.action = action, .since = since};
  return lane_of(action).try_push(order);
}

Executor::Lane& Executor::lane_of(const Action& action) {
  return std::visit(Overloaded{[this](const eviction::EvictPod&) -> Lane& { return evictions_; },
                               [this](const notice::ApplyCondition&) -> Lane& { return conditions_; },
                               [this](const notice::EmitEvent&) -> Lane& { return events_; }},
                    action);
}

Status Executor::carry_out(const Action& action, const std::stop_token& stop) const {
  return std::visit(
      Overloaded{
          [&](const eviction::EvictPod& evict) { return eviction::execute(evict, client_, stop); },
          [&](const notice::ApplyCondition& condition) { return notice::execute(condition, client_, stop); },
          [&](const notice::EmitEvent& event) { return notice::execute(event, reporting_instance_, client_, stop); }},
      action);
}

void Executor::work(Lane& lane, const std::stop_token& stop) const {
  while (auto order = lane.pop(stop)) {
    const auto begun = stopwatch_now();
    auto status = carry_out(order->action, stop);
    report_({.outcome = {.action = std::move(order->action), .status = std::move(status)},
             .since = order->since,
             .begun = begun});
  }
}

}  // namespace dhc
