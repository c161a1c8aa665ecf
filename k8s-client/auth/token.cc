#include "k8s-client/auth/token.h"

#include <algorithm>

#include <fmt/format.h>

namespace dhc::k8s {

Result<std::string> clean_token(std::string_view text, std::string_view where) {
  constexpr std::string_view kSpace = " \t\r\n";
  constexpr std::size_t kMost = std::size_t{64} * 1024;
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) {
    return fail(ErrorKind::Invalid, fmt::format("{}: the token is empty; write a token there", where));
  }
  text = text.substr(first, text.find_last_not_of(kSpace) - first + 1);
  if (text.size() > kMost) {
    return fail(ErrorKind::Invalid,
                fmt::format("{}: {} bytes are too long for a token; is it another file?", where, text.size()));
  }
  const auto bad = std::ranges::find_if(text, [](char c) { return c < '!' || c > '~'; });
  if (bad != text.end()) {
    return fail(ErrorKind::Invalid,
                fmt::format("{}: byte {} is not allowed in a token; write the token alone, on one line", where,
                            bad - text.begin() + 1));
  }
  return std::string(text);
}

}  // namespace dhc::k8s
