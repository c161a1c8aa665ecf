#pragma once
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace dhc::k8s {

/// The longest line of a watch that is read. etcd's default limit for one object is 1.5 MiB.
inline constexpr std::size_t kMaxLineBytes = 8UL * 1024 * 1024;

/// Cuts a stream of bytes, arriving in any pieces, into lines, and holds at most `cap` bytes of an unfinished one. A
/// line longer than `cap` is reported once and skipped to its newline: the lines after it are not affected.
class LineSplitter {
 public:
  explicit LineSplitter(std::size_t cap = kMaxLineBytes) : cap_(cap) {}

  /// Calls `line(std::string_view)` for each line that is now complete, without its newline, and `too_long()` once for
  /// each line that is not. The views live until `line` returns.
  template <class Line, class TooLong>
  void feed(std::string_view bytes, Line&& line, TooLong&& too_long) {
    while (!bytes.empty()) {
      const auto* const newline = static_cast<const char*>(std::memchr(bytes.data(), '\n', bytes.size()));
      const auto length = newline != nullptr ? static_cast<std::size_t>(newline - bytes.data()) : bytes.size();
      take(bytes.substr(0, length), newline != nullptr, line, too_long);
      bytes.remove_prefix(newline != nullptr ? length + 1 : length);
    }
  }

  /// Bytes held of a line that has not ended.
  [[nodiscard]] std::size_t held() const { return partial_.size(); }

  /// Forgets the unfinished line: the next stream starts with a line of its own.
  void reset() {
    partial_ = std::string();
    skipping_ = false;
  }

 private:
  template <class Line, class TooLong>
  void take(std::string_view piece, bool ends, Line& line, TooLong& too_long) {
    if (!skipping_ && piece.size() > cap_ - partial_.size()) {
      partial_ = std::string();
      skipping_ = true;
      too_long();
    }
    if (skipping_) {
      skipping_ = !ends;
    } else if (!ends) {
      partial_.append(piece);
    } else if (partial_.empty()) {
      line(piece);
    } else {
      partial_.append(piece);
      // Taken out first, so that `line` may call `reset`.
      const std::string whole = std::exchange(partial_, std::string());
      line(std::string_view(whole));
    }
  }

  std::size_t cap_;
  std::string partial_;
  bool skipping_ = false;
};

}  // namespace dhc::k8s
