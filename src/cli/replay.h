#pragma once
#include "cli/command_line.h"
#include "cli/printed.h"

namespace dhc::cli {

/// Exit code of a replay that decides otherwise than its recording says.
inline constexpr int kDiffers = 4;

/// `replay`: gives recordings to the same core again. 0: it decides the same; `kDiffers`: it does not; 1: a recording
/// cannot be read, with its file and line. With another configuration: what that would have done; 1 if it has mistakes.
[[nodiscard]] Printed replay(const ReplayOptions& options);

}  // namespace dhc::cli
