#include "domain/policy/config_duration.h"

#include <array>
#include <cstdint>

#include <fmt/format.h>

namespace dhc {

namespace {

struct Unit {
  std::string_view name;
  std::int64_t millis;
};
constexpr std::array<Unit, 4> kUnits = {{{"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}}};
constexpr std::int64_t kLongestMillis = std::int64_t{30} * 24 * 3'600'000;

std::size_t count_of(std::string_view text, bool digits) {
  std::size_t count = 0;
  while (count < text.size() && (text[count] >= '0' && text[count] <= '9') == digits) ++count;
  return count;
}

std::string why_no_unit(std::string_view unit) {
  if (unit.empty()) return "a duration needs a unit";
  if (unit == "d" || unit == "w" || unit == "y") return "durations have no days; 1 day is 24h";
  if (unit == "us" || unit == "ns" || unit == "\u00b5s") return "finer than a millisecond";
  if (unit == ".") return "durations have no fractions; 1.5h is 1h30m";
  return fmt::format("'{}' is no unit of time", unit);
}

}  // namespace

std::expected<Millis, std::string> parse_duration(std::string_view text) {
  if (text.empty()) return std::unexpected("an empty duration");
  if (text.starts_with('-') || text.starts_with('+')) return std::unexpected("a duration has no sign");
  std::int64_t total = 0;
  std::size_t next_unit = 0;
  while (!text.empty()) {
    const std::size_t digits = count_of(text, true);
    const std::size_t letters = count_of(text.substr(digits), false);
    const std::string_view unit = text.substr(digits, letters);
    if (digits == 0) return std::unexpected(fmt::format("a number should stand before '{}'", unit));
    std::size_t which = 0;
    while (which < kUnits.size() && kUnits[which].name != unit) ++which;
    if (which == kUnits.size()) return std::unexpected(why_no_unit(unit));
    if (which < next_unit) return std::unexpected("units go from large to small, each once");
    next_unit = which + 1;
    std::int64_t number = 0;
    for (const char digit : text.substr(0, digits)) {
      number = number * 10 + (digit - '0');
      if (number > kLongestMillis) return std::unexpected("longer than 30 days (720h)");
    }
    total += number * kUnits[which].millis;
    if (total > kLongestMillis) return std::unexpected("longer than 30 days (720h)");
    text.remove_prefix(digits + letters);
  }
  return Millis(total);
}

std::string format_duration(Millis duration) {
  std::string text;
  std::int64_t rest = duration.count();
  for (const Unit& unit : kUnits) {
    const std::int64_t count = rest / unit.millis;
    if (count > 0) text += fmt::format("{}{}", count, unit.name);
    rest %= unit.millis;
  }
  return text.empty() ? "0s" : text;
}

}  // namespace dhc
