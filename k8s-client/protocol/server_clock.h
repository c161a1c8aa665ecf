#pragma once
#include <optional>
#include <string_view>

#include "base/now.h"

namespace dhc::k8s {

/// How far the API server's clock is ahead of ours, from the Date header of its answers. A Date has whole seconds and
/// was written somewhere between sending and receiving, so one answer gives a range; the ranges of several narrow it.
/// When one contradicts the others, a clock was set, and only the newest counts. **Source:** RFC 9110 6.6.1.
class ServerClock {
 public:
  /// An answer with this Date (as the header says it; what cannot be read is ignored), by our wall clock.
  void answered(std::string_view date, WallTime sent, WallTime received);

  /// The middle of what is possible; negative: the server's clock is behind. None: no answer had a Date.
  [[nodiscard]] std::optional<Millis> ahead() const;

  /// What is to be taken into account from now on, if it is a second or more from what was taken last: less is not told
  /// apart, being what a Date can be wrong by.
  [[nodiscard]] std::optional<Millis> news() const;
  void take(Millis ahead) { taken_ = ahead; }

 private:
  struct Range {
    std::chrono::microseconds least;
    std::chrono::microseconds most;
  };
  std::optional<Range> range_;
  Millis taken_{0};
};

/// Beyond this operators are told.
inline constexpr Millis kMuchAhead = Seconds(5);

/// What is worth to be taken into account: less than a second is not, being what a Date can be wrong by.
[[nodiscard]] constexpr Millis relevant_ahead(Millis ahead) {
  return ahead >= Seconds(1) || ahead <= -Seconds(1) ? ahead : Millis::zero();
}

}  // namespace dhc::k8s
