#include "base/believed_clock.h"

namespace dhc {

void BelievedClock::server_is_ahead(Millis ahead, const Now& raw) {
  const auto offset = offset_of(raw);
  word_ = {.server = offset + ahead, .of = offset, .agrees = std::chrono::abs(ahead) <= kApart};
}

Now BelievedClock::take(const Now& raw) {
  const auto offset = offset_of(raw);
  // What it has said before a step is not about this clock.
  const bool has_answered = word_ && std::chrono::abs(offset - word_->of) <= kApart;
  if (!believed_ || !is_settled_) {
    believed_ = has_answered && !word_->agrees ? word_->server : offset;
  } else if (std::chrono::abs(offset - *believed_) <= kApart) {
    believed_ = offset;
    doubted_since_.reset();
  } else if (!doubted_since_ || std::chrono::abs(offset - doubted_) > kApart || (has_answered && !word_->agrees)) {
    // A machine that slept has the server on its side, and a clock that was set wrongly has not.
    doubted_since_ = raw.mono;
    doubted_ = offset;
  } else if (raw.mono - *doubted_since_ >= (has_answered ? kStands : kUnanswered)) {
    believed_ = offset;
    doubted_since_.reset();
  }
  return at(raw);
}

Now BelievedClock::at(const Now& raw) const {
  if (!believed_) return raw;
  return {.mono = raw.mono, .wall = WallTime(raw.mono.time_since_epoch() + *believed_)};
}

Millis BelievedClock::server_ahead() {
  if (!word_ || !believed_) return server_ahead_;
  const auto ahead = std::chrono::duration_cast<Millis>(word_->server - *believed_);
  if (std::chrono::abs(ahead - server_ahead_) >= Seconds(1)) server_ahead_ = ahead;
  return server_ahead_;
}

}  // namespace dhc
