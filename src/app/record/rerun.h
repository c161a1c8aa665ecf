#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/controller.h"
#include "app/record/file_order.h"
#include "app/record/lines.h"
#include "app/record/reader.h"
#include "app/record/unlisted.h"

namespace dhc::record {

/// A plan that decided something else than the recording says.
struct Difference {
  WallTime at;
  std::string recorded;  ///< Its line; empty: nothing new was decided.
  std::string rerun;     ///< Likewise.
};

/// What a recording holds, and how it went again.
struct RerunReport {
  std::size_t runs = 0;
  std::size_t files = 0;
  std::vector<std::string> programs;  ///< The versions that wrote it, each once.
  std::optional<WallTime> from;
  std::optional<WallTime> to;
  std::size_t lines = 0;
  std::size_t plans = 0;
  std::map<std::string, std::size_t> actions;  ///< What was done, by the action's name, as recorded.
  std::size_t differences = 0;
  std::vector<Difference> first;  ///< The first of them.
  /// Runs whose first file is missing: what was remembered before is not known, so that they are not compared.
  std::size_t not_compared = 0;
};

/// Gives a recording to a Controller of its own, with the times of the recording, and compares what it decides. One
/// thread.
class Rerun {
 public:
  static constexpr std::size_t kMostShown = 20;

  /// The next line, of one file after the other. An error: as Reader says, or a file is missing between this one and
  /// the one before.
  [[nodiscard]] Status feed(std::string_view line);

  [[nodiscard]] const RerunReport& report() const { return report_; }

 private:
  [[nodiscard]] Status begin(const FileStep& file);
  void take(MessageStep step);
  void plan(const Now& now, const Stamp& stamp, std::string_view recorded);
  void note(const Now& now);

  Reader reader_;
  RerunReport report_;
  FileOrder order_;
  bool compares_ = false;  // the run is known from its start
  Controller controller_;
  Decisions decisions_;
  std::uint64_t actions_ = 0;
  std::map<std::uint64_t, Action> open_;  // not answered yet, by number
  std::vector<Message> inbox_;
  Unlisted unlisted_;
};

}  // namespace dhc::record
