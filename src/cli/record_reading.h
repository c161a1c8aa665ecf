#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/moment.h"

namespace dhc::cli {

/// The files of recordings in folders (`*.jsonl`, by name, which is by time) and those named themselves. An error names
/// what is not there.
[[nodiscard]] Result<std::vector<std::string>> recordings_of(const std::vector<std::string>& paths);

/// Gives every line to `feed`, in order. A file whose last line is torn, as a crash leaves it, ends before it; `remark`
/// is told. An error of `feed` comes back with file and line.
[[nodiscard]] Status read_lines(const std::vector<std::string>& files,
                                const std::function<Status(std::string_view line)>& feed,
                                const std::function<void(std::string)>& remark);

/// Likewise of several logs whose lines have times: those of all files in the order of time, and within a file in its
/// own, so that the logs of several servers are one, and rotated files may be named in any order. `time_of` is not
/// asked of a single file; a line without a time follows the one before it.
[[nodiscard]] Status read_lines_by_time(const std::vector<std::string>& files,
                                        const std::function<std::optional<WallTime>(std::string_view line)>& time_of,
                                        const std::function<Status(std::string_view line)>& feed,
                                        const std::function<void(std::string)>& remark);

}  // namespace dhc::cli
