#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/now.h"

namespace dhc {

/// What is measured.
enum class Span : std::uint8_t {
  ToNotice,       ///< From the report of the bad device to its pod's condition.
  ToTaint,        ///< To its taint.
  ToEviction,     ///< To its pod's eviction.
  ToReplacement,  ///< Until a replacement of the evicted pod runs.
  NodeInterval,   ///< From one incident of a node to its next.
};
inline constexpr std::array<Span, 5> kSpans = {Span::ToNotice, Span::ToTaint, Span::ToEviction, Span::ToReplacement,
                                               Span::NodeInterval};

/// One time that was measured.
struct Measured {
  Span span;
  Millis took{0};
  friend bool operator==(const Measured&, const Measured&) = default;
};

/// Measures how long steps take. Bounded, also where nobody takes what was measured.
class StepTimes {
 public:
  /// Evictions whose replacements are waited for, nodes that are remembered, and what nobody has taken.
  static constexpr std::size_t kMost = 10'000;
  /// How long a replacement is waited for.
  static constexpr Millis kLongestWait = std::chrono::hours(1);

  void measure(Span span, WallTime since, const Now& now);
  /// The pod of this controller (its identity, may be empty) is evicted for a device that was bad since then.
  void evicted(const std::string& uid, const std::string& owner, WallTime bad_since, WallTime sent_at, const Now& now);
  /// A pod of this controller, made then, runs: it replaces the pod that has waited the longest.
  void runs(const std::string& uid, const std::string& owner, WallTime made_at, const Now& now);
  /// Whether a replacement is waited for, and whose.
  [[nodiscard]] bool is_waiting() const { return !waiting_.empty(); }
  [[nodiscard]] std::set<std::string> waiting() const;
  /// Forgets what has been waited for too long.
  void forget(const Now& now);
  /// Forgets all that goes on.
  void turn_over();

  /// An incident of the node at this time, of which there was word before.
  void recall(const std::string& node, WallTime opened_at);
  /// Incidents of devices of the node open now.
  void opened(const std::string& node, const Now& now);

  /// What was measured since the last call.
  [[nodiscard]] std::vector<Measured> take() { return std::exchange(measured_, {}); }
  /// How much was measured in all, in the order of `kSpans`.
  [[nodiscard]] const std::array<std::int64_t, kSpans.size()>& counts() const { return counts_; }

 private:
  struct Evicted {
    std::string uid;
    WallTime bad_since;
    WallTime sent_at;
  };
  struct Waiting {
    std::deque<Evicted> evicted;    // oldest first
    std::set<std::string> counted;  // UIDs of pods that have replaced one
  };
  std::map<std::string, Waiting> waiting_;  // by the controller's identity
  std::size_t waiting_count_ = 0;
  std::map<std::string, WallTime> last_incident_;  // by node
  std::vector<Measured> measured_;
  std::array<std::int64_t, kSpans.size()> counts_{};
};

}  // namespace dhc
