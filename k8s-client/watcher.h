#pragma once
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/now.h"
#include "k8s-client/client.h"
#include "k8s-client/protocol/delivery.h"
#include "k8s-client/protocol/watch_requests.h"
#include "k8s-client/protocol/watch_session.h"
#include "k8s-client/protocol/watch_status.h"

namespace dhc::k8s {

/// What a watcher calls, all on its own thread.
struct WatcherCalls {
  /// Reads both clocks.
  std::function<Now()> clock;
  /// Takes a delivery; may block to push back, and then has to return when the program stops.
  std::function<void(Delivery)> deliver;
  /// Told of each answer to a list, and when its request began. May be empty.
  std::function<void(const Response&, const Now& sent)> answered = {};
  /// Told when the state changes, when a request or stream has ended, and about once a second while events come in.
  /// May be empty.
  std::function<void(const WatchStatus&)> show;
};

/// Watches one target on a thread of its own: does what WatchSession says, sends through `client`, waits. It decides
/// nothing. An exception on the thread ends the process: a watch that is silently dead is worse than a restart.
class Watcher {
 public:
  /// Starts at once.
  Watcher(WatchTarget target, std::shared_ptr<const Client> client, WatcherCalls calls);
  /// Asks to stop, then joins: within 100 ms, unless `deliver` blocks.
  ~Watcher() = default;
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  /// Asks to stop without waiting for it, so that several watchers can stop at the same time. Any thread.
  void request_stop() { thread_.request_stop(); }

  /// Somebody has seen that what was delivered is wrong: ends what is under way and lists afresh, at most once a
  /// minute. Any thread.
  void doubt(std::string why);

  /// Somebody wants to know at once what the server has: ends what is under way and lists afresh. Any thread.
  void list_afresh();

  [[nodiscard]] const WatchTarget& target() const { return target_; }

  /// As of the last bytes read. Any thread.
  [[nodiscard]] WatchStatus status() const;

 private:
  /// Who ends what is under way: this watcher's end, or a wish, which ends one request or wait and no more.
  struct Stops {
    std::stop_token all;
    std::stop_token step;
  };
  void run(const std::stop_token& stop);
  [[nodiscard]] std::stop_source begin_step();
  void interrupt();
  void tell_wishes(WatchSession& session);
  void note_listing(bool is_listing);
  void list(const Request& request, WatchSession& session, const Stops& stops);
  void stream(const Request& request, WatchSession& session, const Stops& stops);
  void pause(Millis time, const std::stop_token& step);
  void hand_over(const std::stop_token& stop);
  void publish(const WatchSession& session, bool show_anyway);
  [[nodiscard]] double chance();

  const WatchTarget target_;
  const std::shared_ptr<const Client> client_;
  const WatcherCalls calls_;

  // Touched by the watcher's thread alone.
  std::mt19937 random_;
  std::vector<Delivery> out_;
  MonoTime shown_at_{};

  mutable std::mutex mutex_;
  std::condition_variable_any stopped_;
  WatchStatus status_;                // Under mutex_.
  std::optional<std::string> doubt_;  // Likewise.
  bool afresh_ = false;               // Likewise: it is to be listed.
  bool is_listing_ = false;           // Likewise: the request under way is a list.
  std::stop_source step_;             // Likewise: ends the request or wait under way.

  std::jthread thread_;  // Last: it uses all the others.
};

}  // namespace dhc::k8s
