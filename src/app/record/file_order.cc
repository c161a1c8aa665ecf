#include "app/record/file_order.h"

#include <variant>

#include <fmt/format.h>

namespace dhc::record {

Result<bool> FileOrder::begin(const FileStep& file) {
  const bool goes_on = file.run == run_;
  if (goes_on && file.number != file_ + 1) {
    return fail(ErrorKind::Invalid,
                fmt::format("file {} of the run {} comes after file {}: a file between them is missing; bring it back, "
                            "or replay the files from this one on alone",
                            file.number, file.run, file_));
  }
  run_ = file.run;
  file_ = file.number;
  repeats_ = goes_on;
  return !goes_on;
}

Result<bool> FileOrder::plays(const Step& step) {
  if (run_.empty()) return fail(ErrorKind::Malformed, "a recording begins with a line `recording`");
  if (!repeats_) return true;
  repeats_ = !std::holds_alternative<BegunStep>(step);
  return false;
}

}  // namespace dhc::record
