#include "base/backoff.h"

#include <algorithm>

namespace dhc {

Millis Backoff::next(MonoTime now, double chance) {
  if (!(chance >= 0.0 && chance < 1.0)) chance = 0.5;
  const bool forgotten = bound_ == Millis::zero() || now - waited_until_ >= limits_.forgets_after;
  bound_ = forgotten ? limits_.first : std::min(bound_ * 2, limits_.cap);
  const auto drawn = Millis(static_cast<Millis::rep>(chance * static_cast<double>(bound_.count())));
  const auto wait = std::max(drawn, limits_.floor);
  waited_until_ = now + wait;
  return wait;
}

}  // namespace dhc
