#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/error.h"
#include "domain/limits/token_bucket.h"

namespace dhc {

/// What has been tried of reads of owners: how many fit, whose turn it is, and what waits after a failure.
class OwnerReads {
 public:
  /// How long a read whose answer does not come keeps the next one of its namespace waiting. **Source:** a read is at
  /// most seven requests of 5 s each, and waits for a thread before that.
  static constexpr Millis kUnanswered = std::chrono::minutes(2);

  [[nodiscard]] TokenBucket& tokens() { return tokens_; }
  [[nodiscard]] const TokenBucket& tokens() const { return tokens_; }

  /// An owner in this namespace is being read; `key` is its `owner_key`.
  void sent(const std::string& ns, const std::string& key, const Now& now);
  /// How the read that was sent at `asked_at` ended. What nobody waits for changes nothing: a second answer, or one to
  /// a read of an earlier term.
  void done(const std::string& ns, const std::string& key, MonoTime asked_at, const Status& status, const Now& now);

  /// Until when a read under way keeps the namespace from the next: one at a time, so that owners whose API does not
  /// answer hold no thread that another tenant's needs; none: the next may be sent.
  [[nodiscard]] std::optional<MonoTime> busy_until(const std::string& ns, const Now& now) const;
  /// When the last one of this namespace was sent; the beginning of time if none was within the hour.
  [[nodiscard]] MonoTime last_of(const std::string& ns) const;
  /// Until when this owner is left alone after a failure; the beginning of time: it has not failed.
  [[nodiscard]] MonoTime not_before(const std::string& key) const;

  /// Forgets what no longer holds anything back.
  void forget(const Now& now);

 private:
  struct LastRead {
    MonoTime at;
    std::string under_way;  // empty: none
  };
  struct Failure {
    int in_a_row = 0;
    MonoTime not_before;
  };

  TokenBucket tokens_{TokenBucket::Start::Full};
  std::map<std::string, LastRead> reads_;    // by namespace
  std::map<std::string, Failure> failures_;  // by owner
};

}  // namespace dhc
