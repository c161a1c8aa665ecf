#include "simulator/api_time.h"

#include <fmt/format.h>

namespace dhc::sim {
namespace {

std::string without_zone(WallTime when) {
  const auto day = std::chrono::floor<std::chrono::days>(when);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss time{std::chrono::floor<std::chrono::seconds>(when - day)};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), time.hours().count(),
                     time.minutes().count(), time.seconds().count());
}

bool fits(std::string_view text, std::string_view pattern) {
  if (text.size() != pattern.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (pattern[i] == '0' ? !digit : text[i] != pattern[i]) return false;
  }
  return true;
}

}  // namespace

std::string api_time(WallTime when) { return without_zone(when) + "Z"; }

std::string api_micro_time(WallTime when) {
  const auto micros = (when - std::chrono::floor<std::chrono::seconds>(when)).count();
  return fmt::format("{}.{:06}Z", without_zone(when), micros);
}

bool is_micro_time(std::string_view text) {
  return fits(text, "0000-00-00T00:00:00.000000Z") || fits(text, "0000-00-00T00:00:00.000000+00:00") ||
         fits(text, "0000-00-00T00:00:00.000000-00:00");
}

}  // namespace dhc::sim
