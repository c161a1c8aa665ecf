#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "app/mailbox.h"
#include "app/message.h"
#include "k8s-client/client.h"

namespace dhc {

/// Carries actions out on a few threads, in lanes, so that an eviction never waits behind a slow Event. One
/// attempt an action, one Outcome an action. Thread-safe.
class Executor {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;

  /// What became of an action, and when its call began; called on a lane's thread.
  struct Done {
    Outcome outcome;
    SteadyTime since;  ///< As it was given to `submit`.
    SteadyTime begun;
  };
  using Report = std::function<void(Done)>;

  /// `reporting_instance` stands in Events and the status: our pod's name or the host's. `client` outlives the
  /// executor.
  Executor(const k8s::Client& client, std::string reporting_instance, Report report);

  /// Stops all calls under way (within 100 ms) and joins the threads; what was still queued has no outcome.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Queues the action, whose cause was received at `since`. False if its lane is full: the action is dropped, and the
  /// caller reports that.
  [[nodiscard]] bool submit(const Action& action, SteadyTime since);

  /// A taint, a Job's retry or an object by which a node is handed over is not begun later than this after it was
  /// given: it is decided anew. Without any wait the threads would have nothing to do while a turn plans.
  static constexpr Millis kLongestOrder{100};
  /// Nor an eviction, which looks at its pod again before it is sent.
  static constexpr Millis kLongestEvictionOrder{1000};

  /// An eviction may take 35 s (the server retries for 10); the limits say how many there are.
  static constexpr int kEvictionThreads = 16;
  static constexpr int kConditionThreads = 8;

  /// Takes back the evictions, taints, Jobs' retries and objects that no thread has begun in that time, so that they
  /// are decided anew: a recovery or a newer pod must not find old orders waiting. They have no outcome; the caller
  /// makes one.
  [[nodiscard]] std::vector<Action> withdraw_old_orders();

  /// Takes back all evictions, taints, Jobs' retries and objects that no thread has begun.
  [[nodiscard]] std::vector<Action> withdraw_orders();

  /// Whether any of those waits for its thread, or to be taken back: then `withdraw_old_orders` has something to do by
  /// `kLongestOrder`.
  [[nodiscard]] bool has_orders() const { return orders_ > 0; }

  /// Takes back everything that no thread has begun: of a term that has ended nothing may be sent in the next one.
  [[nodiscard]] std::vector<Action> withdraw_all();

  /// Takes back everything that no thread has begun and begins nothing more; waits so long for the calls under way.
  /// True if all are over and their outcomes have been reported; else the server may still be at work on one.
  [[nodiscard]] bool drain(Millis patience);

  /// Asks all threads to stop, and does not wait.
  void request_stop();

 private:
  struct Order {
    Action action;
    SteadyTime since;
    SteadyTime given;
  };
  using Lane = Mailbox<Order>;
  [[nodiscard]] std::vector<Action> withdraw(std::initializer_list<Lane*> lanes, SteadyTime until = SteadyTime::max());
  /// Whether orders in this lane grow too old.
  [[nodiscard]] bool holds_orders(const Lane& lane) const;
  [[nodiscard]] Millis longest_order(const Lane& lane) const;
  [[nodiscard]] Lane& lane_of(const Action& action);
  void work(Lane& lane, const std::stop_token& stop);
  void attempt(Order order, const std::stop_token& stop);

  const k8s::Client& client_;
  const std::string reporting_instance_;
  const Report report_;
  Lane evictions_;
  Lane taints_;
  Lane jobs_;
  Lane objects_;
  Lane conditions_;
  Lane state_;
  Lane status_;
  Lane events_;
  Lane reads_;
  Lane old_;                     // orders that a thread found too old to begin
  std::atomic<int> orders_ = 0;  // neither begun nor taken back, also while a thread has one in its hand
  std::mutex mutex_;
  std::condition_variable idle_;
  int busy_ = 0;                       // calls under way; under mutex_
  bool draining_ = false;              // under mutex_
  std::vector<std::jthread> threads_;  // last: they use all of the above
};

}  // namespace dhc
