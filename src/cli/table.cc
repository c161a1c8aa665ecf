#include "cli/table.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/rfc3339.h"

namespace dhc::cli {

namespace {
using Json = nlohmann::ordered_json;

/// Columns on a terminal: bytes that begin a character.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

void put(std::string& out, const Json& json, std::size_t depth);

void put_member(std::string& out, const std::string& head, const Json& value, std::size_t depth) {
  out += std::string(depth * 2, ' ') + head;
  const bool is_block = (value.is_object() || value.is_array()) && !value.empty();
  if (!is_block) {
    out += " " + json_text(value) + "\n";
    return;
  }
  if (head != "-") out += "\n";
  if (head != "-") return put(out, value, value.is_array() ? depth : depth + 1);
  // The first line of an element stands beside its dash.
  std::string element;
  put(element, value, depth + 1);
  out += " " + element.substr((depth + 1) * 2);
}

void put(std::string& out, const Json& json, std::size_t depth) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) put_member(out, key + ":", value, depth);
  } else if (json.is_array()) {
    for (const auto& value : json) put_member(out, "-", value, depth);
  } else {
    out += json_text(json) + "\n";
  }
}

}  // namespace

std::string table_of(const std::vector<Line>& lines) {
  std::vector<std::size_t> widths;
  for (const auto& line : lines) {
    if (line.size() == 1) continue;
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], width_of(line[i]));
  }
  std::string text;
  for (const auto& line : lines) {
    std::string one;
    if (line.size() == 1) one = line.front();
    for (std::size_t i = 0; line.size() > 1 && i < line.size(); ++i)
      one += line[i] + std::string(widths[i] + 2 - width_of(line[i]), ' ');
    text += one.substr(0, one.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string age_text(Millis age) {
  const auto seconds = std::max<std::int64_t>(std::chrono::floor<Seconds>(age).count(), 0);
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  constexpr std::int64_t kDay = 24 * kHour;
  const auto two = [](std::int64_t large, char unit, std::int64_t small, char small_unit) {
    return small == 0 ? fmt::format("{}{}", large, unit) : fmt::format("{}{}{}{}", large, unit, small, small_unit);
  };
  if (seconds < kMinute) return fmt::format("{}s", seconds);
  if (seconds < kHour) return two(seconds / kMinute, 'm', seconds % kMinute, 's');
  if (seconds < kDay) return two(seconds / kHour, 'h', seconds % kHour / kMinute, 'm');
  if (seconds < 10 * kDay) return two(seconds / kDay, 'd', seconds % kDay / kHour, 'h');
  return fmt::format("{}d", seconds / kDay);
}

std::string due_text(const std::optional<WallTime>& at, WallTime now) {
  if (!at) return "-";
  if (*at <= now) return "due";
  return "in " + age_text(std::chrono::ceil<Seconds>(*at - now));
}

std::string time_text(const std::optional<WallTime>& at) { return at ? format_rfc3339(*at) : "-"; }

std::string or_dash(std::string text) { return text.empty() ? "-" : text; }

std::string yaml_text(const Json& json) {
  std::string out;
  put(out, json, 0);
  return out;
}

}  // namespace dhc::cli
