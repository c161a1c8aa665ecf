#pragma once
#include <cstdint>
#include <limits>
#include <optional>

#include "base/now.h"

namespace dhc {

/// A token bucket. One that starts empty gives nobody a fresh budget by a restart or a change of leader (invariant I3).
class TokenBucket {
 public:
  enum class Start : std::uint8_t { Empty, Full };
  TokenBucket() = default;
  explicit TokenBucket(Start start) : level_(start == Start::Full ? std::numeric_limits<std::int64_t>::max() : 0) {}

  /// Sets the rate, which is also the bucket's size; the first call starts the clock.
  void set_rate(std::int64_t per_minute, MonoTime now);

  /// Tokens that may be taken now.
  [[nodiscard]] std::int64_t available(MonoTime now) const;

  /// Takes `count` tokens; the caller has asked `available` first.
  void take(std::int64_t count, MonoTime now);

  /// Gives back what a refused request did not use.
  void give_back(std::int64_t count, MonoTime now);

  /// When `count` tokens will be there (a full bucket is enough); none if the rate is 0.
  [[nodiscard]] std::optional<MonoTime> ready_at(std::int64_t count, MonoTime now) const;

 private:
  [[nodiscard]] std::int64_t level_at(MonoTime now) const;

  static constexpr std::int64_t kScale = 60'000;  // one token, in tokens-per-minute times milliseconds
  std::int64_t per_minute_ = 0;
  std::int64_t level_ = 0;
  std::optional<MonoTime> filled_at_;
};

}  // namespace dhc
