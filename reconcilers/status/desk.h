#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "reconcilers/shared/plan_input.h"
#include "reconcilers/status/action.h"

namespace dhc::status {

/// Between two writes at least,
inline constexpr Millis kShortestPause = Seconds(10);
/// and so many without a longer wait; then one is added every `kRefill`: 60 in any hour at most.
inline constexpr int kBurst = 10;
inline constexpr Millis kRefill = Seconds(72);
static_assert(kBurst + std::chrono::hours(1) / kRefill == 60);
/// A status that does not change is applied again this often, which changes nothing on the server, so that one that was
/// deleted or overwritten comes back.
inline constexpr Millis kRepeat = std::chrono::hours(1);

/// When the status is written. One for each term.
class Desk {
 public:
  /// Writes the status where it is another than was accepted last, in every mode (invariant I7), if the policy asks for
  /// it and we know our own namespace. `verdicts` are those of this turn.
  [[nodiscard]] Planned<WriteStatus> plan(const PlanInput& input, std::span<const Verdict> verdicts);

  /// It is on its way, or what became of it.
  void note_sent(const WriteStatus& written, const Now& now);
  void note_done(const WriteStatus& written, const Status& answer, const Now& now);

 private:
  /// Cheap signs that the status is another.
  struct Signs {
    std::uint64_t revision = 0;
    std::size_t verdicts = 0;
    std::size_t not_healthy = 0;
    friend bool operator==(const Signs&, const Signs&) = default;
  };
  [[nodiscard]] MonoTime next_write_at() const;

  std::string sent_;
  std::optional<std::string> accepted_;
  std::optional<MonoTime> sent_at_;
  std::optional<MonoTime> accepted_at_;  // with `accepted_`
  std::optional<MonoTime> looked_at_;
  Signs signs_;
  std::optional<MonoTime> paid_until_;  // each write pays for `kRefill`
};

}  // namespace dhc::status
