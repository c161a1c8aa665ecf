#include "domain/contract/operator_time.h"

#include <fmt/format.h>

#include "base/printable.h"
#include "base/rfc3339.h"

namespace dhc {

namespace {

constexpr std::string_view kRemedy = "write the present time: date -u +%Y-%m-%dT%H:%M:%SZ";

}  // namespace

std::expected<WallTime, std::string> operator_time(std::string_view text, WallTime now) {
  constexpr std::size_t kLongestShown = 60;
  if (const auto at = parse_rfc3339(text)) return operator_time(*at, now);
  return std::unexpected(
      fmt::format("\"{}\" is not an RFC 3339 time; {}", printable_cut(text, kLongestShown), kRemedy));
}

std::expected<WallTime, std::string> operator_time(WallTime at, WallTime now) {
  if (at <= now) return at;
  return std::unexpected(fmt::format("{} is ahead of the controller's clock; {}", format_rfc3339(at), kRemedy));
}

}  // namespace dhc
