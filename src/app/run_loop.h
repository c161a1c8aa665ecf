#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "app/controller.h"
#include "app/executor.h"
#include "app/live/live_feed.h"
#include "app/log.h"
#include "app/mailbox.h"
#include "app/metrics.h"
#include "app/status_store.h"

namespace dhc {

/// A message and when it reached this process.
struct Received {
  Message message;
  std::chrono::steady_clock::time_point at;
};

using Inbox = Mailbox<Received>;

/// Where a turn's results are shown.
struct Shown {
  StatusStore& status_store;
  Metrics& metrics;
  Log& log;
  LiveFeed& live;
  std::function<void(bool)> blind = [](bool) {};  ///< Whether a watch that steps rest on is silent.
  std::function<void(const ViewDoubt&)> doubt = [](const ViewDoubt&) {};  ///< A kind is to be listed afresh.
  /// Whom the webhook tells (null: nobody) and what; after each turn. Must not wait.
  std::function<void(const WebhookRules*, std::vector<News>)> tell = [](const WebhookRules*, std::vector<News>) {};
  std::function<void()> refresh = [] {};  ///< Brings the watches' state to status store and metrics; after each turn.
};

/// The loop around the controller: messages and the time go in, actions go to the executor. Decides nothing.
class RunLoop {
 public:
  RunLoop(Inbox& inbox, Executor& executor, Shown shown);

  /// Before `run`: the recorder sees all that comes in and is decided.
  void record_to(std::shared_ptr<record::Recorder> recorder) { controller_.record_to(std::move(recorder)); }

  /// Turns until stopped. One thread.
  void run(const std::stop_token& stop);

  /// Shows the outcomes that came after the last turn.
  void finish();

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;
  enum class Recall : std::uint8_t { OldOrders, Orders, Everything };
  /// True if a plan may follow from it.
  [[nodiscard]] bool take(std::vector<Received> batch, const Now& now);
  /// Plans and gives out what follows; when to plan again.
  [[nodiscard]] MonoTime plan(SteadyTime since, const Now& now);
  void withdraw(const Now& now);
  [[nodiscard]] std::vector<Action> recalled();
  void dispatch(const std::vector<Action>& actions, SteadyTime since);
  void show(const Now& now);
  void show(const Outcome& outcome);
  void show_figures();
  void show_live(const Now& now);
  void show_all_nodes(const Now& now);
  void show_busy_nodes(const Now& now);
  /// When the live page is shown something again; the maximum: nobody looks.
  [[nodiscard]] MonoTime live_at();

  Inbox& inbox_;
  Executor& executor_;
  Shown shown_;
  Controller controller_;
  std::vector<Outcome> dropped_;       // actions that found their lane full: told to the controller in the next turn
  Recall recall_ = Recall::OldOrders;  // before the next plan
  MonoTime figures_at_ = MonoTime::max();  // when to show figures again; the maximum: those shown are true
  MonoTime figures_shown_{};
  std::optional<std::uint64_t> live_term_;  // that the cluster was shown in
  bool live_is_old_ = true;                 // there was a plan since
  MonoTime live_shown_{};
  Millis live_pause_{};
  bool nodes_are_old_ = true;         // likewise; those on which nothing is wrong are shown more rarely
  MonoTime nodes_at_{};               // and not before
  std::set<std::string> busy_nodes_;  // when they were shown last
  std::shared_ptr<const std::vector<Verdict>> published_;
  std::optional<std::string> rules_api_version_;  // as it was last logged
};

}  // namespace dhc
