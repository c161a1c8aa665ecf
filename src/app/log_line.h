#pragma once
#include <span>
#include <string>
#include <string_view>

namespace dhc {

/// One named value, already text; numbers stand without quotes.
struct LogPair {
  std::string_view key;
  std::string_view value;
  bool is_number = false;
};

/// `key=value key="two words"`: a value is quoted if it is empty or has a space, quote, `=` or control character;
/// control characters are escaped as in JSON, so that a line stays one line.
[[nodiscard]] std::string text_line(std::span<const LogPair> pairs);

/// `{"key":"value",...}` in the given order; bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string json_line(std::span<const LogPair> pairs);

}  // namespace dhc
