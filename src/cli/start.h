#pragma once
#include <span>

namespace dhc::cli {

/// The program: reads its arguments and runs the command. The result is the exit code.
[[nodiscard]] int start(std::span<const char* const> arguments);

}  // namespace dhc::cli
