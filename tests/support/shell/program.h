#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

#include "base/now.h"

namespace dhc::test {

/// The controller's own binary as a process, its output kept in memory. Killed at the end of the test if it still runs.
class Program {
 public:
  using Environment = std::vector<std::pair<std::string, std::string>>;

  /// Starts `$DHC_BINARY` (else build/dev's) with these arguments; `input` is its standard input. Nothing of our
  /// environment is passed on but PATH.
  explicit Program(std::vector<std::string> arguments, std::string_view input = {},
                   const Environment& environment = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// The exit code (128 + the signal that ended it), or -1 if it still runs after that time.
  [[nodiscard]] int ended(Millis within);
  [[nodiscard]] std::string out() const;
  [[nodiscard]] std::string err() const;
  void signal(int number) const;
  /// True as soon as this holds, false if the program ended or the time is over without it.
  [[nodiscard]] bool await(const std::function<bool()>& condition, Millis within);
  /// Waits for a text on standard error.
  [[nodiscard]] bool says(std::string_view text, Millis within);

 private:
  [[nodiscard]] bool reap(Millis within);

  int out_ = -1;
  int err_ = -1;
  pid_t pid_ = -1;
  int handle_ = -1;
  int code_ = -1;
};

/// A folder of its own for one test, gone with it.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  /// Writes a file in it and gives its path.
  std::string write(const std::string& name, std::string_view text) const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace dhc::test
