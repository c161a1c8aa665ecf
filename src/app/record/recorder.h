#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/controller.h"
#include "app/message.h"
#include "app/record/line.h"
#include "app/record/lines.h"
#include "app/record/times.h"

namespace dhc::record {

/// Stands beside a Controller and writes down, in order, every message that may matter, every plan with its time, and
/// what it decided that was new: so much that a Controller of the same build decides the same from it. Left out is what
/// the Controller has dropped itself. It decides nothing, and nothing is read from it. One thread.
class Recorder {
 public:
  /// Takes each line; what it cannot keep is its own affair.
  using Sink = std::function<void(Line)>;
  explicit Recorder(Sink sink) : sink_(std::move(sink)) {}

  /// A message, before the Controller takes it,
  void hear(Message& message);
  /// and after that, whether it changed anything.
  void heard(bool changes);
  /// All messages of a turn are taken. `matters`: the time alone has changed something.
  void took(const Now& now, bool matters);
  void planned(const Turn& turn, const std::vector<Verdict>& verdicts, const Now& now);

 private:
  [[nodiscard]] Stamp stamp(const Now& now);
  [[nodiscard]] std::uint64_t take_number(const Action& action);
  void put_idle();

  Sink sink_;
  std::optional<Base> base_;
  std::vector<Line> lines_;  // of the message that is being taken
  bool always_ = false;      // it is kept whatever it changes
  bool heard_any_ = false;   // since the last `took`
  std::vector<Stamp> idle_;
  Decisions decisions_;
  std::uint64_t actions_ = 0;
  std::multimap<std::string, std::uint64_t> open_;  // not answered yet
};

}  // namespace dhc::record
