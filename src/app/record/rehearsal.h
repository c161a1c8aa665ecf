#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/controller.h"
#include "app/record/file_order.h"
#include "app/record/ledger.h"
#include "app/record/other_past.h"
#include "app/record/reader.h"
#include "app/record/unlisted.h"
#include "base/error.h"

namespace dhc::record {

/// What one configuration did, or would have done.
struct Side {
  std::size_t evictions = 0;
  std::size_t taints = 0;
  std::size_t credits = 0;
  Hours held_bad = 0;    ///< Device-hours of pods while a device of theirs was called Unhealthy.
  Hours work_ended = 0;  ///< Device-hours of the evicted pods until then: their work, if they never saved it.
};

/// One pod, device, node or Job, and what became of it.
struct Fate {
  enum class Of : std::uint8_t { Eviction, Taint, Credit };
  Of of = Of::Eviction;
  Subject subject;
  std::string device;
  std::optional<WallTime> bad_at;  ///< Of a pod: when a device of it was first called Unhealthy.
  std::optional<WallTime> then;    ///< When it was evicted, tainted or credited, as recorded; none: it was not.
  std::optional<WallTime> now;     ///< Likewise with the other configuration.
  std::string then_why;            ///< Of a pod: the reason of the last verdict about it.
  std::string now_why;
  std::string now_message;  ///< And its sentence.
};

struct RehearsalReport {
  std::size_t runs = 0;
  std::size_t left_out = 0;  ///< Runs that overlap with one that was played.
  std::optional<WallTime> from;
  std::optional<WallTime> to;
  std::vector<std::string> policies_then;  ///< Name and mode of the recorded ones, each once.
  Side then;
  Side now;
  std::vector<Fate> fates;  ///< By the time of the first thing that happened.
};

/// How much later or earlier is still the same.
inline constexpr Millis kSameTime = Seconds(5);

/// Plays a recording to a controller with another configuration. One thread.
class Rehearsal {
 public:
  /// `wanted` may act as far as its policies say, whatever the recorded controller was allowed.
  explicit Rehearsal(Policy wanted);

  /// The next line; errors as Rerun's.
  [[nodiscard]] Status feed(std::string_view line);

  /// Once, after the last line.
  [[nodiscard]] RehearsalReport finish();

 private:
  struct Sent {  // by the recorded controller
    std::string name;
    Subject subject;
    std::string device;
    std::int64_t raised_by = 0;
  };
  using Key = std::pair<Fate::Of, std::string>;

  [[nodiscard]] Status begin(const FileStep& file);
  void take(MessageStep step);
  void take_answer(const Outcome& outcome, std::uint64_t number);
  void take_all(const Now& recorded);
  void note_plan(const Now& recorded);
  void pass_to(WallTime when);
  void turn();
  void deliver(std::vector<k8s::Delivery>&& deliveries);
  void answer(const Action& action);
  void note_verdicts();
  [[nodiscard]] Fate& fate(Fate::Of of, const Subject& subject, const std::string& key);

  Reader reader_;
  RehearsalReport report_;
  Policy wanted_;
  Controller controller_;
  OtherPast past_;
  Ledger then_;
  Ledger now_;
  std::vector<Verdict> said_;

  FileOrder order_;
  bool is_timed_ = false;         // the run's first time is known
  bool left_out_ = false;         // the run overlaps with one that was played
  std::vector<Message> waiting_;  // of the recording, until their time is known
  std::vector<Message> inbox_;    // for the controller
  Unlisted unlisted_;
  std::optional<Now> begun_;  // the first time of all, by the first run's clocks
  Now at_;                    // by the same clocks
  std::optional<MonoTime> wake_at_;
  bool wants_state_ = false;                  // the recorded controller had something to remember by
  bool has_state_ = false;                    // and it was read
  std::uint64_t actions_ = 0;                 // of the recorded controller in this run
  std::map<std::uint64_t, Sent> sent_;        // not answered yet
  std::map<std::string, OwnerSight> sights_;  // by owner_key
  std::map<Key, Fate> fates_;
};

}  // namespace dhc::record
