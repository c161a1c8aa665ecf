#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/controller.h"
#include "app/message.h"
#include "app/record/line.h"
#include "app/record/times.h"
#include "domain/contract/verdict.h"

namespace dhc::record {

/// `20261125T073901Z`: the run's names in the order of time.
[[nodiscard]] std::string name_of_time(WallTime at);

/// The first line of a file: which run of which program it is of, and which of its files, from 1.
[[nodiscard]] Line file_line(std::string_view run, std::int64_t number);

/// Whether a file that begins so is a recording of this program, of whatever version.
[[nodiscard]] bool is_recording(std::string_view start);
/// How much of its start tells that.
inline constexpr std::size_t kTellingStart = 64;

[[nodiscard]] Line base_line(const Base& base);
[[nodiscard]] Line take_line(const Stamp& stamp);
[[nodiscard]] Line idle_line(std::span<const Stamp> stamps);
[[nodiscard]] Line begun_line();

/// The lines of what enters the controller; `answers` is the number of the action that an Outcome answers, 0: of none
/// that is known. Pods that can hold no device and report of none are left out of lists.
void put_message(Message& message, std::uint64_t answers, std::vector<Line>& out);

/// Says which action it is, to match it with its answer.
[[nodiscard]] std::string action_key(const Action& action);

/// What each plan decided that the one before it had not.
class Decisions {
 public:
  /// None: no action, and the verdicts are the same.
  [[nodiscard]] std::optional<Line> line(const Turn& turn, const std::vector<Verdict>& verdicts, const Stamp& stamp);

 private:
  std::vector<Verdict> said_;
};

}  // namespace dhc::record
