#pragma once
#include <chrono>
#include <optional>

#include "base/now.h"

namespace dhc {

/// The wall clock that is decided by. What is written down (holds, penalties, what counts of a day) is measured on the
/// wall clock, and a clock that is wrong for a moment would end it for good. So a step is not believed at once:
/// a process begins with the API server's clock where ours is apart from it, and goes on by the steady clock; what ours
/// says after a step counts when it has stood for a minute and the API server agrees, or has said nothing for an hour.
class BelievedClock {
 public:
  /// A difference that is no drift and no correction.
  static constexpr Millis kApart = std::chrono::minutes(5);
  /// How long a step must stand,
  static constexpr Millis kStands = std::chrono::minutes(1);
  /// and if the API server says nothing: it cannot be reached, or its answers have no Date.
  static constexpr Millis kUnanswered = std::chrono::hours(1);

  /// How far the API server's clock is ahead of the one that says this time. To be told again after a step.
  void server_is_ahead(Millis ahead, const Now& raw);
  /// From now on what has been taken in rests on this clock: what the API server says of it later changes it no more.
  void settle() { is_settled_ = true; }
  /// The time to decide by.
  Now take(const Now& raw);
  /// The same, of a time that has been taken.
  [[nodiscard]] Now at(const Now& raw) const;
  /// Whether the clock that was taken last says another time than the one that is believed.
  [[nodiscard]] bool is_in_doubt() const { return doubted_since_.has_value(); }
  /// How far the API server's clock is ahead of the believed one. It changes by a second or more, or not at all: the
  /// clocks run a little apart from turn to turn.
  [[nodiscard]] Millis server_ahead();

 private:
  using Offset = WallTime::duration;  // of the wall clock to the steady one
  [[nodiscard]] static Offset offset_of(const Now& raw) {
    return raw.wall.time_since_epoch() - raw.mono.time_since_epoch();
  }

  /// What the server has said last.
  struct Word {
    Offset server;
    Offset of;  ///< The clock that it was compared with.
    bool agrees;
  };
  std::optional<Word> word_;
  Millis server_ahead_{0};
  bool is_settled_ = false;
  std::optional<Offset> believed_;
  std::optional<MonoTime> doubted_since_;
  Offset doubted_{};  // since when it has stood so
};

}  // namespace dhc
