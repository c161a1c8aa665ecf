#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "app/record/line.h"
#include "base/error.h"

namespace dhc::record {

/// Where recordings go, and how much of them is kept.
struct RecordSettings {
  std::string folder;
  std::int64_t most_bytes = std::int64_t{512} << 20U;  ///< Of all recordings in the folder: the oldest go first.
};

/// Writes the lines of one run to files of its own, `RUN-0001.jsonl` and so on, on a thread of its own: who puts a line
/// never waits for a disk. A disk that is full, fails or is too slow ends the recording, and nothing else. Thread-safe.
class RecordFiles {
 public:
  /// A folder holds so many files' worth, so that one that goes takes no more.
  static constexpr std::int64_t kFiles = 8;
  /// What may wait for the disk, in bytes.
  static constexpr std::int64_t kMostWaiting = std::int64_t{128} << 20U;

  /// Makes the folder if it is not there, and the first file in it. `ended` is called once if the recording ends before
  /// this does, with the reason, on any thread. Errors: Invalid, the folder or file that cannot be made, and why.
  [[nodiscard]] static Result<std::unique_ptr<RecordFiles>> open(const RecordSettings& settings, const std::string& run,
                                                                 std::function<void(const std::string& why)> ended);
  /// Writes what is waiting; no longer than a second, whatever the disk does.
  ~RecordFiles();
  RecordFiles(const RecordFiles&) = delete;
  RecordFiles& operator=(const RecordFiles&) = delete;

  void put(Line line);

  /// So far.
  [[nodiscard]] std::int64_t bytes_written() const;

 private:
  struct Writer;
  explicit RecordFiles(std::shared_ptr<Writer> writer);
  std::shared_ptr<Writer> writer_;  // its thread may outlive this on a disk that hangs
};

}  // namespace dhc::record
