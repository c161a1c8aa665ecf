#include "domain/tuning/grid.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ranges>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest_word.h"
#include "domain/policy/config.h"

namespace dhc::tuning {

namespace {

using std::chrono::hours;
using std::chrono::minutes;

/// A key that can be swept: a document with one value of it, and where its value goes.
struct Axis {
  std::string_view key;
  std::string_view document;  ///< The value stands for `@`.
  void (*clear)(Grid&);
  void (*add)(Grid&, const Config&);
};

template <class T>
void add_once(std::vector<T>& values, T value) {
  if (std::ranges::find(values, value) == values.end()) values.push_back(value);
}

constexpr std::string_view kAfter = "spec: {match: {}, taint: {device: NoSchedule}, after: @}";
constexpr std::string_view kHold = "spec: {match: {}, taint: {device: NoSchedule}, recover: {hold: @}}";
constexpr std::string_view kHalfLife = "spec: {match: {}, taint: {device: NoSchedule}, recover: {halfLife: @}}";
constexpr std::string_view kLemons = "spec: {match: {}, taint: {device: NoSchedule}, recover: {quarantineAbove: @}}";

// clang-format off
const std::array<Axis, 13> kAxes = {{
    {"after", kAfter, [](Grid& g) { g.after.clear(); }, [](Grid& g, const Config& c) { add_once(g.after, c.policies[0].after); }},
    {"brake.atLeast", "spec: {brake: {atLeast: @}}", [](Grid& g) { g.brake_at_least.clear(); }, [](Grid& g, const Config& c) { add_once(g.brake_at_least, c.limits.brake_at_least); }},
    {"brake.percent", "spec: {brake: {percent: @}}", [](Grid& g) { g.brake_percent.clear(); }, [](Grid& g, const Config& c) { add_once(g.brake_percent, c.limits.brake_percent); }},
    {"brake.within", "spec: {brake: {within: @}}", [](Grid& g) { g.brake_within.clear(); }, [](Grid& g, const Config& c) { add_once(g.brake_within, c.limits.brake_within); }},
    {"caps.cluster.atLeast", "spec: {caps: {cluster: {atLeast: @}}}", [](Grid& g) { g.cap_cluster.at_least.clear(); }, [](Grid& g, const Config& c) { add_once(g.cap_cluster.at_least, c.limits.cap_cluster.at_least); }},
    {"caps.cluster.percent", "spec: {caps: {cluster: {percent: @}}}", [](Grid& g) { g.cap_cluster.percent.clear(); }, [](Grid& g, const Config& c) { add_once(g.cap_cluster.percent, c.limits.cap_cluster.percent); }},
    {"caps.node.atLeast", "spec: {caps: {node: {atLeast: @}}}", [](Grid& g) { g.cap_node.at_least.clear(); }, [](Grid& g, const Config& c) { add_once(g.cap_node.at_least, c.limits.cap_node.at_least); }},
    {"caps.node.percent", "spec: {caps: {node: {percent: @}}}", [](Grid& g) { g.cap_node.percent.clear(); }, [](Grid& g, const Config& c) { add_once(g.cap_node.percent, c.limits.cap_node.percent); }},
    {"caps.perDay.atLeast", "spec: {caps: {perDay: {atLeast: @}}}", [](Grid& g) { g.cap_per_day.at_least.clear(); }, [](Grid& g, const Config& c) { add_once(g.cap_per_day.at_least, c.limits.cap_per_day.at_least); }},
    {"caps.perDay.percent", "spec: {caps: {perDay: {percent: @}}}", [](Grid& g) { g.cap_per_day.percent.clear(); }, [](Grid& g, const Config& c) { add_once(g.cap_per_day.percent, c.limits.cap_per_day.percent); }},
    {"halfLife", kHalfLife, [](Grid& g) { g.half_life.clear(); }, [](Grid& g, const Config& c) { add_once(g.half_life, c.policies[0].recover.half_life); }},
    {"hold", kHold, [](Grid& g) { g.hold.clear(); }, [](Grid& g, const Config& c) { add_once(g.hold, c.policies[0].recover.hold); }},
    {"quarantineAbove", kLemons, [](Grid& g) { g.quarantine_above.clear(); }, [](Grid& g, const Config& c) { add_once(g.quarantine_above, c.policies[0].recover.quarantine_above); }},
}};
// clang-format on

std::string document_of(const Axis& axis, std::string_view value) {
  const bool is_policy = axis.document.contains("match");
  const auto at = axis.document.find('@');
  return fmt::format("apiVersion: device-health.io/v1alpha1\nkind: {}\nmetadata: {{name: {}}}\n{}{}{}\n",
                     is_policy ? "DeviceHealthPolicy" : "ControllerLimits", is_policy ? "sweep" : "default",
                     axis.document.substr(0, at), value, axis.document.substr(at + 1));
}

/// What could end the document's value, or be more than one.
bool is_plain(std::string_view value) {
  return !value.empty() && std::ranges::all_of(value, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' ||
           c == '%' || c == '+';
  });
}

std::size_t factor(std::size_t values) { return std::max<std::size_t>(values, 1); }

}  // namespace

Grid default_grid() {
  Grid grid;
  grid.after = {Millis(0),  Seconds(10), Seconds(30), Seconds(60), minutes(2),
                minutes(5), minutes(10), minutes(15), minutes(30), hours(1)};
  grid.hold = {hours(1), hours(4), hours(12), hours(24), hours(48), hours(72), hours(168)};
  grid.half_life = {hours(72), hours(168), hours(336), hours(504), hours(720)};
  grid.quarantine_above = {1, 1.25, 1.5, 1.75, 2, 2.25, 2.5, 3, 4, 5, 10};
  grid.brake_percent = {10, 20, 30, 50};
  grid.brake_at_least = {2, 3, 5};
  grid.brake_within = {minutes(5), minutes(15), hours(1)};
  grid.cap_cluster.percent = {1, 2, 5, 10, 20};
  grid.cap_node.percent = {25, 50, 100};
  grid.cap_per_day.percent = {1, 2, 5, 10};
  return grid;
}

std::expected<void, std::string> take_axis(Grid& grid, std::string_view text) {
  const auto split = text.find('=');
  const auto key = text.substr(0, split);
  std::vector<std::string_view> keys;
  for (const auto& axis : kAxes) keys.push_back(axis.key);
  const auto axis = std::ranges::find(kAxes, key, &Axis::key);
  if (axis == kAxes.end()) {
    const auto near = nearest_word(key, keys);
    return std::unexpected(fmt::format("'{}' cannot be swept{}: write one of {}", key,
                                       near.empty() ? "" : fmt::format(", did you mean '{}'?", near),
                                       fmt::join(keys, ", ")));
  }
  if (split == std::string_view::npos || split + 1 == text.size())
    return std::unexpected(fmt::format("'{}' has no values: write {}=VALUE,VALUE", text, key));
  axis->clear(grid);
  for (const auto part : text.substr(split + 1) | std::views::split(',')) {
    const std::string_view value(part.begin(), part.end());
    if (!is_plain(value))
      return std::unexpected(fmt::format("{}: '{}' is no value; write {}=VALUE,VALUE", key, value, key));
    const std::array<ConfigFile, 1> file = {{{.name = "--sweep", .text = document_of(*axis, value)}}};
    const auto config = parse_config(file);
    if (!config) {
      const auto& mistake = config.error().front();
      return std::unexpected(fmt::format("{}={}: {}; {}", key, value, mistake.message, mistake.remedy));
    }
    axis->add(grid, *config);
  }
  return {};
}

std::expected<void, std::string> check_size(const Grid& grid) {
  const auto choices = factor(grid.hold.size()) * factor(grid.half_life.size()) * factor(grid.quarantine_above.size());
  const auto brakes =
      factor(grid.brake_percent.size()) * factor(grid.brake_at_least.size()) * factor(grid.brake_within.size());
  const auto most = std::max({choices, brakes, grid.after.size()});
  if (most <= kMostChoices) return {};
  return std::unexpected(fmt::format("{} choices are more than {}: give fewer values to a key", most, kMostChoices));
}

}  // namespace dhc::tuning
