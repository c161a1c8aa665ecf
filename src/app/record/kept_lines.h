#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/record/line.h"

namespace dhc::record {

/// Where a line stands in its file.
struct Span {
  std::int64_t offset = 0;
  std::int64_t size = 0;
};

/// Which lines of a file are needed to begin another one: the last of each object that is there, and of whatever else
/// the latest word counts of. It keeps places, not texts.
class KeptLines {
 public:
  /// A line was written at `offset`.
  void note(const Line& line, std::int64_t offset);

  /// What a new file begins with, after its first line. A list says how many objects follow: its text is made anew from
  /// the old one, which `count` says.
  struct Part {
    What what = What::File;
    std::string key;
    Span span;
    std::optional<std::int64_t> count = {};  ///< Of a list.
  };
  [[nodiscard]] std::vector<Part> parts() const;

  /// Whether a new file may begin after the last line.
  [[nodiscard]] bool may_end() const { return may_end_; }

 private:
  std::map<std::string, Span, std::less<>> lists_;    // by kind
  std::map<std::string, Span, std::less<>> objects_;  // by kind and UID
  std::map<std::string, Span, std::less<>> words_;    // of watches, by kind and name
  std::map<What, Span> latest_;
  bool may_end_ = false;
};

/// The text of a list with another count of objects.
[[nodiscard]] std::string with_count(std::string_view list, std::int64_t count);

}  // namespace dhc::record
