#include "domain/contract/operator_time.h"

#include <fmt/format.h>

#include "base/printable.h"
#include "base/rfc3339.h"

namespace dhc {

std::expected<WallTime, std::string> operator_time(std::string_view text, WallTime now) {
  constexpr std::size_t kLongestShown = 60;
  constexpr std::string_view kRemedy = "write the present time: date -u +%Y-%m-%dT%H:%M:%SZ";
  const auto at = parse_rfc3339(text);
  if (!at) {
    return std::unexpected(
        fmt::format("\"{}\" is not an RFC 3339 time; {}", printable_cut(text, kLongestShown), kRemedy));
  }
  if (*at <= now) return *at;
  return std::unexpected(fmt::format("{} is ahead of the controller's clock; {}", format_rfc3339(*at), kRemedy));
}

}  // namespace dhc
