#pragma once
#include <string>

#include "cli/command_line.h"

namespace dhc::cli {

/// What a command printed and how it ends.
struct Printed {
  int code = 0;
  std::string out;
  std::string err;
};

/// `validate`: reads all files as one configuration. Every mistake as `FILE:LINE:COLUMN: what; remedy` and code 1, or a
/// summary, each warning on standard error, and code 0.
[[nodiscard]] Printed validate(const ValidateOptions& options);

}  // namespace dhc::cli
