#include "domain/tuning/published_traces.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <ranges>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_read.h"
#include "base/rfc3339.h"

namespace dhc::tuning {

namespace {

double days_of(const Span& span) { return Days(span.to - span.from).count(); }

/// The moments of a trace that counts in days from its own beginning.
WallTime day(double days) {
  constexpr WallTime kBegin = std::chrono::sys_days(std::chrono::year(2024) / 3 / 30);
  return kBegin + std::chrono::round<std::chrono::microseconds>(Days(days));
}

template <class Spans>
void sort_by_beginning(Spans& spans) {
  std::ranges::sort(spans, {}, [](const auto& span) { return std::pair(span.from, span.to); });
}

/// The same time in spans that do not touch.
std::vector<Span> merged(std::vector<Span> spans) {
  sort_by_beginning(spans);
  std::vector<Span> apart;
  for (const Span& span : spans) {
    if (apart.empty() || span.from > apart.back().to) {
      apart.push_back(span);
    } else {
      apart.back().to = std::max(apart.back().to, span.to);
    }
  }
  return apart;
}

/// A row's seven fields; nothing if there are others.
std::optional<std::array<std::string_view, 7>> fields_of(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::array<std::string_view, 7> fields;
  std::size_t count = 0;
  for (const auto part : line | std::views::split(',')) {
    if (count == fields.size()) return std::nullopt;
    fields[count++] = std::string_view(part.begin(), part.end());
  }
  if (count != fields.size()) return std::nullopt;
  return fields;
}

/// `2019-08-01 20:07:33`; the machine's own clock, read as UTC.
std::optional<WallTime> titan_time(std::string_view text) {
  std::string time(text);
  if (time.size() != 19) return std::nullopt;
  time[10] = 'T';
  return parse_rfc3339(time + "Z");
}

struct Card {
  std::vector<Span> lives;
  std::vector<Fault> faults;
};

FaultTrace trace_of(std::map<std::string, Card> cards) {
  FaultTrace trace{.unit = "cards", .devices = cards.size(), .has_lengths = false};
  trace.from = WallTime::max();
  trace.to = WallTime::min();
  const auto note = [&](WallTime from, WallTime to) {
    trace.from = std::min(trace.from, from);
    trace.to = std::max(trace.to, to);
  };
  for (auto& [name, card] : cards) {
    auto lives = merged(std::move(card.lives));
    for (const Span& life : lives) {
      trace.device_days += days_of(life);
      note(life.from, life.to);
    }
    for (const Fault& fault : card.faults) note(fault.from, fault.to);
    if (card.faults.empty()) continue;
    sort_by_beginning(card.faults);
    trace.broken.push_back({name, std::move(lives), std::move(card.faults)});
  }
  trace.known[{}] = static_cast<std::int64_t>(trace.devices);
  trace.remarks = {
      "The trace tells when a card was taken out, not for how long it was bad: what `after` would have done cannot be "
      "told from it, nor what a hold that ends before the repair would have."};
  return trace;
}

}  // namespace

std::expected<FaultTrace, std::string> read_infinitehbd(std::string_view json) {
  constexpr std::size_t kServers = 400;
  constexpr double kMostDays = 36'500;
  const auto events = read_json<nlohmann::json>(json);
  if (!events.is_array() || events.empty()) return std::unexpected("no JSON list of events");
  std::map<std::tuple<std::string, std::string>, std::deque<double>> open;  // beginnings, by server and fault
  std::map<std::string, std::vector<Fault>> faults;
  double last = 0;
  std::size_t number = 0;
  try {
    for (const auto& event : events) {
      ++number;
      const auto server = event.at("node_id").get<std::string>();
      const auto time = event.at("event_time").get<double>();
      if (!(time >= 0 && time <= kMostDays))
        return std::unexpected(fmt::format("event {}: event_time is {}, no day from 0 to {}", number, time, kMostDays));
      last = std::max(last, time);
      const auto& fault = event.at("fault_type");
      if (fault.at("Class").get<std::string>() != "GPU") continue;
      auto& beginnings = open[{server, fault.dump()}];
      if (event.at("event_type").get<std::string>() == "fault_start") {
        beginnings.push_back(time);
      } else if (beginnings.empty()) {
        return std::unexpected(fmt::format("server {}: a fault ends on day {} that has not begun", server, time));
      } else if (time < beginnings.front()) {
        return std::unexpected(fmt::format("event {}: server {}: a fault ends on day {}, before it begins on day {}",
                                           number, server, time, beginnings.front()));
      } else {
        faults[server].push_back({day(beginnings.front()), day(time)});
        beginnings.pop_front();
      }
    }
  } catch (const nlohmann::json::exception& error) {
    return std::unexpected(fmt::format("event {}: {}", number, error.what()));
  }
  FaultTrace trace{.unit = "servers", .devices = kServers, .device_days = static_cast<double>(kServers) * last};
  trace.from = day(0);
  trace.to = day(last);
  trace.known[{}] = kServers;
  trace.remarks = {
      "The trace names servers, not GPUs: two faults of a server may be two GPUs. For single GPUs repeat failures are "
      "a "
      "bound from above."};
  for (auto& [server, spans] : faults) {
    sort_by_beginning(spans);
    trace.broken.push_back({server, {{day(0), day(last)}}, std::move(spans)});
  }
  return trace;
}

std::expected<FaultTrace, std::string> read_titan(std::string_view csv) {
  std::map<std::string, Card> cards;
  std::size_t row = 0;
  for (const auto part : csv | std::views::split('\n')) {
    const std::string_view line(part.begin(), part.end());
    if (++row == 1 || line.empty()) continue;
    const auto fields = fields_of(line);
    if (!fields) return std::unexpected(fmt::format("line {} has not seven fields", row));
    const auto& [serial, place, inserted, removed, duration, out, event] = *fields;
    const auto end = titan_time(removed);
    const auto begin = titan_time(inserted);
    if (!end || (!begin && !inserted.empty())) return std::unexpected(fmt::format("line {}: no time", row));
    Card& card = cards[std::string(serial)];
    if (begin && *begin > *end) return std::unexpected(fmt::format("line {}: removed before it was inserted", row));
    if (begin) card.lives.push_back({*begin, *end});
    if (!event.empty()) card.faults.push_back({*end, *end});
  }
  return trace_of(std::move(cards));
}

std::expected<FaultTrace, std::string> read_published(std::string_view text) {
  const auto begin = text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  if (begin.starts_with('[')) return read_infinitehbd(text);
  if (begin.starts_with("SN,location,insert,remove,")) return read_titan(text);
  return std::unexpected(
      "no trace that can be read: give InfiniteHBD's fault_trace.json, Titan's gc_full.csv, or a folder or file "
      "that 'run --record' has written");
}

}  // namespace dhc::tuning
