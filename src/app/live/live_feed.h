#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "app/live/overview_log.h"
#include "app/status_store.h"
#include "app/stream.h"

namespace dhc {

/// Between the loop, which shows the overview, and the streams of the live page, which read it. Without a reader it
/// keeps nothing and asks for nothing. Thread-safe.
class LiveFeed {
 public:
  /// `status_store` outlives this. `wall` is the time that pages count by; none: the machine's.
  explicit LiveFeed(const StatusStore& status_store, std::function<WallTime()> wall = {})
      : status_store_(status_store), wall_(std::move(wall)) {}

  /// Called, on a reader's thread, when the first reader comes: there is something to show. Set before any comes.
  void on_first_reader(std::function<void()> call) { first_reader_ = std::move(call); }

  // the loop's side
  /// A number while somebody looks, or did within the last 30 s, another one for each time that begins; none: nobody
  /// does, and nothing need be shown.
  [[nodiscard]] std::optional<std::uint64_t> wanted();
  /// Shows a part to every reader; `some` as OverviewLog takes it.
  void show(OverviewLog::Part part, Overview overview, std::string_view some = {});
  /// Every reader is told that this process ends, and no more come in.
  void close();

  // the server's side
  /// A reader that has everything up to this place (Last-Event-ID; empty: nothing); none: no more may come. The bell is
  /// rung from any thread when the reader may have more to say.
  [[nodiscard]] std::optional<StreamReader> open(std::string_view place, std::function<void()> bell);

 private:
  class Reader;
  void ring();
  [[nodiscard]] Now now() const;

  static constexpr Seconds kLinger{30};

  const StatusStore& status_store_;
  const std::function<WallTime()> wall_;
  std::function<void()> first_reader_ = [] {};
  std::mutex mutex_;
  std::optional<OverviewLog> log_;                        // none: nobody looks
  std::uint64_t term_ = 0;                                // of the log, or of the last one
  std::map<const Reader*, std::function<void()>> bells_;  // of each reader
  std::optional<MonoTime> left_at_;                       // when the last reader left; none: there are some
  bool closed_ = false;
};

}  // namespace dhc
