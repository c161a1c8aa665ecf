#pragma once
#include "cli/command_line.h"
#include "cli/printed.h"

namespace dhc::cli {

/// `tune`: tries rules over the faults of a trace or of recordings, and prints those that no other beats. 1: a file
/// cannot be read, with its place; the configuration has mistakes; or there is nothing to try.
[[nodiscard]] Printed tune(const TuneOptions& options);

}  // namespace dhc::cli
