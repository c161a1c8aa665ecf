#pragma once
#include "base/now.h"

namespace dhc {

/// Bounds of a `Backoff`.
struct BackoffLimits {
  Millis first = Millis(800);                      ///< The widest first wait.
  Millis cap = Seconds(30);                        ///< The widest wait of all.
  Millis floor = Millis(100);                      ///< The shortest wait, whatever chance says: bounds the rate.
  Millis forgets_after = std::chrono::minutes(2);  ///< Without a failure for this long, it starts again.
};

/// Waits that double from failure to failure, each drawn evenly between the floor and its bound (full jitter), so that
/// clients that failed together do not come back together. **Source:** client-go's reflector: 0.8 s, 2, 30 s, 2 min.
class Backoff {
 public:
  explicit Backoff(BackoffLimits limits = {}) : limits_(limits) {}

  /// The wait after a failure at `now`; `chance` is in [0,1), anything else counts as 0.5.
  [[nodiscard]] Millis next(MonoTime now, double chance);

  /// Things went well: the next failure is a first one.
  void reset() { *this = Backoff(limits_); }

  [[nodiscard]] const BackoffLimits& limits() const { return limits_; }

 private:
  BackoffLimits limits_;
  Millis bound_{0};          ///< Of the last wait; 0: none.
  MonoTime waited_until_{};  ///< From when on things may have been well.
};

}  // namespace dhc
