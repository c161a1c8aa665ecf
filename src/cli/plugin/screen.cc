#include "cli/plugin/screen.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "base/rfc3339.h"
#include "cli/plugin/views.h"
#include "cli/table.h"

namespace dhc::cli {

namespace {

constexpr std::string_view kKeys = "q quit  up/down, PgUp/PgDn, Home scroll";
constexpr std::string_view kReset = "\x1b[0m";
constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kRed = "\x1b[31m";
constexpr std::string_view kYellow = "\x1b[33m";
constexpr std::string_view kReverse = "\x1b[7m";

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }

/// Whole characters that fit.
std::string cut(const std::string& line, std::size_t columns) {
  std::size_t shown = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (begins_character(line[i]) && ++shown > columns) return line.substr(0, i);
  }
  return line;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

/// How old what is shown may be, and where there is more. **Source:** the pace of reconcilers/status.
std::string age_of(const Sight& sight) {
  if (!sight.written_at) return {};
  return fmt::format("; written {} ago, a change comes within 10 s, within 72 s while changes go on",
                     age_text(std::chrono::floor<Millis>(sight.now - *sight.written_at)));
}

std::string way_to_page(const Sight& sight) {
  const auto pod = sight.leader->substr(0, sight.leader->rfind('_'));
  return fmt::format("to the second: kubectl -n {} port-forward {} 8082, then http://127.0.0.1:8082/", sight.ns, pod);
}

std::vector<std::string> head_of(const Sight& sight) {
  const auto& status = sight.status;
  std::vector<std::string> head = {
      fmt::format("device-health  {}  {} bad, {} unknown, {} incidents open, {} quarantined", format_rfc3339(sight.now),
                  status.devices_unhealthy, status.devices_unknown, status.incidents_open, status.quarantined),
      fmt::format("leader {}, mode {}{}", sight.leader && !sight.leader->empty() ? *sight.leader : "none", status.mode,
                  age_of(sight))};
  for (auto& note : notes_of(sight)) head.push_back(std::move(note));
  for (const auto& verdict : status.verdicts) {
    if (verdict.reason == "BrakeEngaged") head.push_back(fmt::format("BRAKE {}: {}", verdict.name, verdict.message));
  }
  if (sight.leader && !sight.leader->empty()) head.push_back(way_to_page(sight));
  head.emplace_back();
  return head;
}

/// What is urgent first: on a narrow terminal the ends of lines are cut.
std::vector<Line> urgent_first(const std::vector<Line>& lines) {
  constexpr std::array<std::size_t, 9> kOrder = {0, 1, 3, 4, 7, 8, 5, 6, 2};
  std::vector<Line> ordered;
  for (const auto& line : lines) {
    ordered.emplace_back();
    for (const auto column : kOrder) ordered.back().push_back(line.at(column));
  }
  return ordered;
}

std::string_view colour_of(const std::string& line) {
  if (line.find(" Unhealthy ") != std::string::npos) return kRed;
  if (line.find(" Unknown ") != std::string::npos) return kYellow;
  return {};
}

}  // namespace

Screen screen_of(const Sight& sight, const ScreenSize& size, std::size_t first, bool is_coloured) {
  Screen screen;
  const auto paint = [&](std::string_view colour, const std::string& line) {
    auto text = cut(line, size.columns);
    screen.lines.push_back(is_coloured && !colour.empty() ? fmt::format("{}{}{}", colour, text, kReset) : text);
  };
  auto head = head_of(sight);
  // On a small terminal the table has half of it.
  if (head.size() > std::max<std::size_t>(size.rows / 2, 1)) head.resize(std::max<std::size_t>(size.rows / 2, 1));
  for (std::size_t i = 0; i < head.size(); ++i) {
    const bool is_warning =
        head[i].starts_with("warning") || head[i].starts_with("PAUSED") || head[i].starts_with("BRAKE");
    paint(i == 0 ? kBold : is_warning ? kYellow : std::string_view(), head[i]);
  }
  const auto table = lines_of(table_of(urgent_first(devices_lines(sight, {}, false))));
  const auto rows = table.size() - 1;
  const auto taken = head.size() + 2;  // its header, and the keys
  const auto room = size.rows > taken ? size.rows - taken : 0;
  screen.first = std::min(first, rows > room ? rows - room : 0);
  if (room > 0) paint(kReverse, table.front());
  for (std::size_t i = screen.first; i < std::min(rows, screen.first + room); ++i)
    paint(colour_of(table[i + 1]), table[i + 1]);
  if (rows == 0 && room > 0) paint({}, "No device is bad.");
  if (screen.lines.size() < size.rows) {
    const auto shown = std::min(rows, screen.first + room);
    paint({}, fmt::format("{}-{} of {}  {}", rows == 0 ? 0 : screen.first + 1, shown, rows, kKeys));
  }
  return screen;
}

std::string screen_bytes(const Screen& screen) {
  std::string bytes = "\x1b[H";
  for (std::size_t i = 0; i < screen.lines.size(); ++i) {
    bytes += screen.lines[i] + "\x1b[K";
    if (i + 1 < screen.lines.size()) bytes += "\r\n";
  }
  return bytes + "\x1b[J";
}

}  // namespace dhc::cli
