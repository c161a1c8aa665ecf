#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "app/message.h"
#include "domain/contract/verdict.h"
#include "domain/history/incident_table.h"

namespace dhc::test {

/// Counts what a run of random schedules reaches: each cell of the incident table, each gate of an eviction with each
/// reason by which it holds a pod, and each reason that is told of anything. One at a time; without one nothing is
/// counted. At its end it writes the counts into the folder `coverage` beside the program, or the one that DHC_COVERAGE
/// names, as `tools/schedule_coverage.py` reads them; cells that were never reached stand there with 0.
class Coverage {
 public:
  /// Of the schedules of this kind with these numbers, `end` excluded.
  Coverage(std::string kind, int first, int end);
  ~Coverage();
  Coverage(const Coverage&) = delete;
  Coverage& operator=(const Coverage&) = delete;

  /// The one that is there, or null.
  [[nodiscard]] static Coverage* running() { return running_; }

  void begin_schedule(int seed);

  /// Whether the recordings of this schedule are replayed: of one of so many, by its number, so that one that runs
  /// alone fails as it did among others, or of the only one that is asked for.
  [[nodiscard]] bool replays(int one_of) const { return seed_ % one_of == 0 || end_ - first_ == 1; }

  /// While it lives, steps of incidents count: what compares plans with others takes them a second time.
  class Counting {
   public:
    Counting() { is_counting_ = true; }
    ~Counting() { is_counting_ = false; }
    Counting(const Counting&) = delete;
    Counting& operator=(const Counting&) = delete;
  };

  /// An event has met an incident in this phase.
  static void note_step(IncidentPhase phase, IncidentEvent event);
  /// What a turn says and does. A verdict counts when it begins, not again while it stands.
  void look(std::span<const Verdict> verdicts, std::span<const Action> actions);

 private:
  struct Count {
    std::uint64_t times = 0;
    std::uint64_t schedules = 0;
    bool in_this = false;
  };
  void note(Count& count) const;
  void write() const;

  static inline Coverage* running_ = nullptr;
  static inline bool is_counting_ = false;

  std::string kind_;
  int first_;
  int end_;
  int seed_ = 0;
  using Standing = std::tuple<std::string, std::string, std::string_view, Reason>;
  std::set<Standing> standing_;
  std::map<std::pair<IncidentPhase, IncidentEvent>, Count> steps_;
  std::map<std::pair<std::string_view, Reason>, Count> gates_;
  std::map<Reason, Count> reasons_;
};

}  // namespace dhc::test
