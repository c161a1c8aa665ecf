#include "bench/fleet_year/faults.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/fleet_year/dice.h"

namespace dhc::year {
namespace {

constexpr std::size_t kServers = 400;

Millis days(double count) {
  return std::chrono::round<Millis>(std::chrono::duration<double, std::ratio<86400>>(count));
}

/// A card and its cable serve one GPU, and a stress test names one; what is unknown is counted as one device.
bool breaks_server(const std::string& level, const std::string& fault_class) {
  static const std::set<std::string, std::less<>> kOneDevice = {"GPU", "NIC", "Parameter Plane Cable",
                                                                "Stress Test Failure"};
  const bool unknown =
      fault_class == "Unknown Error" || (level == "Hardware Failure" && fault_class == "Other Failures");
  return !unknown && !kOneDevice.contains(fault_class);
}

}  // namespace

std::expected<FaultTrace, std::string> read_faults(std::string_view json) {
  const auto events = nlohmann::json::parse(json, nullptr, false);
  if (!events.is_array() || events.empty()) return std::unexpected("no JSON list of events");
  FaultTrace trace{.faults = {}, .length = {}, .servers = kServers};
  std::map<std::pair<std::string, std::string>, std::deque<double>> open;  // beginnings, by server and fault
  try {
    for (const auto& event : events) {
      const auto server = event.at("node_id").get<std::string>();
      const auto time = event.at("event_time").get<double>();
      const auto& fault = event.at("fault_type");
      trace.length = std::max(trace.length, days(time));
      auto& beginnings = open[{server, fault.dump()}];
      if (event.at("event_type").get<std::string>() == "fault_start") {
        beginnings.push_back(time);
        continue;
      }
      if (beginnings.empty()) {
        return std::unexpected(fmt::format("server {}: a fault ends on day {} that has not begun", server, time));
      }
      const auto fault_class = fault.at("Class").get<std::string>();
      trace.faults.push_back({.server = server,
                              .from = days(beginnings.front()),
                              .to = days(time),
                              .what = fmt::format("{}: {}", fault_class, fault.at("Desc").get<std::string>()),
                              .of_server = breaks_server(fault.at("Level").get<std::string>(), fault_class)});
      beginnings.pop_front();
    }
  } catch (const nlohmann::json::exception& error) {
    return std::unexpected(error.what());
  }
  // Of one moment in the trace's order.
  std::multimap<Millis, ServerFault> by_time;
  for (auto& fault : trace.faults) by_time.emplace(fault.from, std::move(fault));
  trace.faults.clear();
  for (auto& [from, fault] : by_time) trace.faults.push_back(std::move(fault));
  return trace;
}

Millis median_length(const FaultTrace& trace) {
  std::vector<Millis> lengths;
  for (const auto& fault : trace.faults) lengths.push_back(fault.to - fault.from);
  if (lengths.empty()) return {};
  std::ranges::sort(lengths);
  return lengths[(lengths.size() - 1) / 2];
}

std::vector<Fault> spread(const FaultTrace& trace, const Spread& how, std::uint64_t seed) {
  Dice dice(seed);
  // Which server of the trace is which of the fleet is chance too, because pools differ.
  std::vector<int> numbers(static_cast<std::size_t>(how.nodes));
  std::iota(numbers.begin(), numbers.end(), 0);
  for (auto i = numbers.size(); i > 1; --i) {
    std::swap(numbers[i - 1], numbers[static_cast<std::size_t>(dice.below(static_cast<int>(i)))]);
  }
  std::map<std::string, std::pair<int, int>> places;  // number and weak device
  std::vector<Fault> faults;
  for (const auto& told : trace.faults) {
    if (how.length > Millis::zero() && told.from >= how.length) continue;
    const auto [place, fresh] = places.try_emplace(told.server);
    if (fresh) place->second = {numbers[(places.size() - 1) % numbers.size()], dice.below(how.devices)};
    Fault fault{.from = told.from,
                .to = how.length > Millis::zero() ? std::min(told.to, how.length) : told.to,
                .node = place->second.first,
                .devices = {},
                .of_server = told.of_server,
                .what = told.what};
    const bool again = dice.share() < how.again;
    const int first = again ? place->second.second : dice.below(how.devices);
    const int count = told.of_server ? how.devices : std::min(how.per_fault, how.devices);
    for (int i = 0; i < count; ++i) fault.devices.push_back((first + i) % how.devices);
    if (fault.to > fault.from) faults.push_back(std::move(fault));
  }
  return faults;
}

}  // namespace dhc::year
