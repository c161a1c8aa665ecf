#include "k8s-client/protocol/retry_after.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "base/digit.h"

namespace dhc::k8s {
namespace {

constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// All of `text` as digits.
std::optional<int> digits(std::string_view text) {
  if (text.empty() || !std::ranges::all_of(text, is_digit)) return std::nullopt;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The punctuation of IMF-fixdate stands at fixed places: `Sun, 06 Nov 1994 08:49:37 GMT`.
bool has_fixdate_shape(std::string_view text) {
  return text.size() == 29 && text.substr(3, 2) == ", " && text[7] == ' ' && text[11] == ' ' && text[16] == ' ' &&
         text[19] == ':' && text[22] == ':' && text.substr(25) == " GMT";
}

}  // namespace

std::optional<WallTime> parse_http_date(std::string_view text) {
  if (!has_fixdate_shape(text)) return std::nullopt;
  const auto* const month = std::ranges::find(kMonths, text.substr(8, 3));
  const auto day = digits(text.substr(5, 2));
  const auto year = digits(text.substr(12, 4));
  const auto hour = digits(text.substr(17, 2));
  const auto minute = digits(text.substr(20, 2));
  const auto second = digits(text.substr(23, 2));
  if (month == kMonths.end() || !day || !year || !hour || !minute || !second) return std::nullopt;
  if (*hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  const auto month_number = static_cast<unsigned>(month - kMonths.begin()) + 1;
  const auto date =
      std::chrono::year(*year) / std::chrono::month(month_number) / std::chrono::day(static_cast<unsigned>(*day));
  if (!date.ok()) return std::nullopt;
  return WallTime(std::chrono::sys_days(date)) + std::chrono::hours(*hour) + std::chrono::minutes(*minute) +
         Seconds(*second);
}

std::optional<Millis> parse_retry_after(std::string_view value, std::optional<std::string_view> date) {
  value = trimmed(value);
  if (value.empty()) return std::nullopt;
  if (std::ranges::all_of(value, is_digit)) {
    std::int64_t seconds = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), seconds);
    // Too large for the type is still a clear wish: as long as we grant.
    if (error != std::errc() || seconds > kMaxRetryAfter / Seconds(1)) return kMaxRetryAfter;
    return Seconds(seconds);
  }
  const auto when = parse_http_date(value);
  const auto sent = date ? parse_http_date(trimmed(*date)) : std::nullopt;
  if (!when || !sent) return std::nullopt;
  return std::clamp(std::chrono::duration_cast<Millis>(*when - *sent), Millis::zero(), kMaxRetryAfter);
}

}  // namespace dhc::k8s
