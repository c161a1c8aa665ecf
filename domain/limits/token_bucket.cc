#include "domain/limits/token_bucket.h"

#include <algorithm>

namespace dhc {

std::int64_t TokenBucket::level_at(MonoTime now) const {
  if (!filled_at_ || per_minute_ <= 0) return level_;
  // A long sleep must not overflow: past the time that fills the bucket, however deep in debt it was, nothing is
  // gained.
  const auto full_after = (per_minute_ * kScale - level_ + per_minute_ - 1) / per_minute_;
  const auto gone = std::clamp<std::int64_t>((now - *filled_at_).count(), 0, std::max<std::int64_t>(full_after, 0));
  return std::min(per_minute_ * kScale, level_ + gone * per_minute_);
}

void TokenBucket::set_rate(std::int64_t per_minute, MonoTime now) {
  level_ = std::min(level_at(now), per_minute * kScale);
  filled_at_ = now;
  per_minute_ = per_minute;
}

std::int64_t TokenBucket::available(MonoTime now) const { return std::max<std::int64_t>(0, level_at(now)) / kScale; }

void TokenBucket::take(std::int64_t count, MonoTime now) {
  level_ = level_at(now) - count * kScale;
  filled_at_ = now;
}

void TokenBucket::give_back(std::int64_t count, MonoTime now) { take(-count, now); }

std::optional<MonoTime> TokenBucket::ready_at(std::int64_t count, MonoTime now) const {
  if (per_minute_ <= 0) return std::nullopt;
  const auto missing = std::min(count, per_minute_) * kScale - level_at(now);
  if (missing <= 0) return now;
  return now + Millis((missing + per_minute_ - 1) / per_minute_);
}

}  // namespace dhc
