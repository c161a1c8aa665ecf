#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "app/message.h"
#include "app/record/times.h"
#include "base/error.h"

namespace dhc::record {

/// A file begins.
struct FileStep {
  std::string run;
  std::int64_t number = 1;  ///< Of this run's files.
  std::string program;      ///< The version of whoever wrote it.
};
/// The lines that repeat what the file before ended with are over.
struct BegunStep {};
/// A message to be taken with the next TakeStep.
struct MessageStep {
  Message message;
  std::uint64_t answers = 0;  ///< Of an Outcome: the number of the action, which the line does not tell; 0: not known.
};
struct TakeStep {
  Now now;
};
/// A plan that had something new.
struct PlanStep {
  Now now;
  Stamp stamp;
};
/// Plans that had nothing new.
struct IdleStep {
  std::vector<Now> times;
};
/// A line that says nothing alone.
struct NoStep {};

using Step = std::variant<NoStep, FileStep, BegunStep, MessageStep, TakeStep, PlanStep, IdleStep>;

/// An action or a verdict of a plan, as the recording tells it.
struct Told {
  enum class Of : std::uint8_t { Action, Begun, Ended };
  Of of = Of::Action;
  std::string name;    ///< Of an action what is done, of a verdict the reason.
  Subject subject;     ///< Of an action the object that is written.
  std::string device;  ///< Or what else it is about.
  std::string policy = {};
  std::string effect = {};  ///< Of a taint.
  std::string message = {};
  std::int64_t raised_by = 0;  ///< Of a patch of a Job: its limit.
};

/// Reads the lines of a recording, in order. One thread.
class Reader {
 public:
  Reader();
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// Malformed: it is no line of a recording, and why; Invalid: it is of a newer program.
  [[nodiscard]] Result<Step> read(std::string_view line);

  /// What the last line, a PlanStep's, tells.
  [[nodiscard]] std::vector<Told> told() const;

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace dhc::record
