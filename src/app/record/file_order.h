#pragma once
#include <cstdint>
#include <string>

#include "app/record/reader.h"
#include "base/error.h"

namespace dhc::record {

/// Which run and file the lines of a recording are of, and whether all files are there.
class FileOrder {
 public:
  /// Whether another run begins with the file. Invalid: a file between it and the one before is missing.
  [[nodiscard]] Result<bool> begin(const FileStep& file);

  /// Whether the step is to be played: what repeats the end of the file before is not. Malformed: no file has begun.
  [[nodiscard]] Result<bool> plays(const Step& step);

 private:
  std::string run_;
  std::int64_t file_ = 0;
  bool repeats_ = false;
};

}  // namespace dhc::record
