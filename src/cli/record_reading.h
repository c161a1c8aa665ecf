#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace dhc::cli {

/// The files of recordings in folders (`*.jsonl`, by name, which is by time) and those named themselves. An error names
/// what is not there.
[[nodiscard]] Result<std::vector<std::string>> recordings_of(const std::vector<std::string>& paths);

/// Gives every line to `feed`, in order. A file whose last line is torn, as a crash leaves it, ends before it; `remark`
/// is told. An error of `feed` comes back with file and line.
[[nodiscard]] Status read_lines(const std::vector<std::string>& files,
                                const std::function<Status(std::string_view line)>& feed,
                                const std::function<void(std::string)>& remark);

}  // namespace dhc::cli
