#include "cli/plugin/views.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/rfc3339.h"

namespace dhc::cli {

namespace {
using Json = nlohmann::ordered_json;

bool is_in(const std::string& pod, std::string_view ns) { return ns.empty() || pod.starts_with(std::string(ns) + "/"); }

bool is_held_in(const StatusDevice& device, std::string_view ns) {
  return ns.empty() || std::ranges::any_of(device.holders, [&](const auto& pod) { return is_in(pod, ns); });
}

std::string age_since(const std::optional<WallTime>& since, WallTime now) {
  return since ? age_text(std::chrono::floor<Millis>(now - *since)) : "-";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

std::string first_words(const std::string& text, std::size_t limit = 60) {
  return text.size() <= limit ? text : text.substr(0, text.find_last_of(' ', limit)) + " ...";
}

Line device_line(const Sight& sight, const DeviceRow& row, bool is_wide) {
  const auto& device = *row.device;
  const auto [scope, name] = name_of(device);
  const auto next_at = row.verdict == nullptr ? std::optional<WallTime>() : row.verdict->next_at;
  Line line = {or_dash(device.node),
               name,
               or_dash(scope),
               device.health,
               age_since(device.since, sight.now),
               or_dash(row.holder),
               or_dash(device.policy.empty() && row.verdict != nullptr ? row.verdict->policy : device.policy),
               row.verdict == nullptr ? "-" : next_step(*row.verdict),
               due_text(next_at, sight.now)};
  if (!is_wide) return line;
  line.push_back(time_text(next_at));
  line.push_back(or_dash(device.taint));
  line.push_back(or_dash(row.verdict == nullptr ? "" : row.verdict->gate));
  line.push_back(or_dash(device.said));
  return line;
}

std::string state_of(const StatusDevice& device) {
  if (device.opened_at && !device.acknowledged.empty()) return "Acknowledged";
  if (device.opened_at) return device.quarantined ? "Open, quarantined" : "Open";
  if (device.quarantined) return "Quarantined";
  return device.probation_until ? "Probation" : "Closed";
}

bool is_incident(const StatusDevice& device) {
  return device.opened_at || device.probation_until || device.quarantined;
}

Json next_object(const StatusVerdict* verdict) {
  if (verdict == nullptr) return nullptr;
  auto json = verdict_object(*verdict);
  json["nextStep"] = next_step(*verdict);
  return json;
}

std::vector<const StatusDevice*> lemons_of(const Sight& sight) {
  std::vector<const StatusDevice*> found;
  for (const auto& device : sight.status.devices) {
    if (device.incidents > 0) found.push_back(&device);
  }
  // Of equals the first in the status stays the first.
  std::ranges::sort(found, {}, [&](const StatusDevice* device) {
    return std::tuple(!device->quarantined, -penalty_now(sight, *device), device);
  });
  return found;
}

/// What another incident would do.
std::string lemon_state(const Sight& sight, const StatusDevice& device) {
  if (device.quarantined) return "quarantined";
  const auto* policy = policy_named(sight.status, device.policy);
  if (policy != nullptr && penalty_now(sight, device) + 1 > policy->quarantine_above) return "the next quarantines";
  return device.opened_at ? "open" : device.probation_until ? "probation" : "-";
}

std::optional<WallTime> last_incident(const StatusDevice& device) {
  if (!device.history.empty()) return device.history.back().at;
  return device.opened_at ? device.opened_at : device.penalty_at;
}

}  // namespace

std::vector<DeviceRow> device_rows(const Sight& sight, std::string_view ns) {
  std::vector<DeviceRow> rows;
  for (const auto& device : sight.status.devices) {
    if (!is_held_in(device, ns)) continue;
    // What is healthy again is shown by `incidents` and `lemons`.
    if (device.health == "Healthy" && !device.opened_at && !device.quarantined) continue;
    if (device.health == "Unreported" && !is_incident(device)) continue;
    if (device.holders.empty()) {
      rows.push_back({.device = &device, .holder = {}, .verdict = main_verdict(sight.status, device, {})});
    }
    for (const auto& pod : device.holders) {
      if (!is_in(pod, ns)) continue;
      const auto* verdict = main_verdict(sight.status, device, pod);
      if (verdict == nullptr) verdict = main_verdict(sight.status, device, {});
      rows.push_back({.device = &device, .holder = pod, .verdict = verdict});
    }
  }
  return rows;
}

std::vector<Line> devices_lines(const Sight& sight, std::string_view ns, bool is_wide) {
  std::vector<Line> lines = {
      {"NODE", "DEVICE", "DRIVER/RESOURCE", "HEALTH", "SINCE", "HOLDER", "POLICY", "NEXT STEP", "WHEN"}};
  if (is_wide) lines.front().insert(lines.front().end(), {"AT", "TAINT", "GATE", "SAID"});
  for (const auto& row : device_rows(sight, ns)) lines.push_back(device_line(sight, row, is_wide));
  return lines;
}

std::vector<Line> incidents_lines(const Sight& sight, std::string_view ns, bool is_wide) {
  std::vector<Line> lines = {{"NODE", "DEVICE", "STATE", "OPENED", "INCIDENTS", "HOLDERS", "TAINT", "ENDS", "SAID"}};
  if (is_wide) lines.front().insert(lines.front().end(), {"POLICY", "AT", "MESSAGE"});
  for (const auto& device : sight.status.devices) {
    if (!is_incident(device) || !is_held_in(device, ns)) continue;
    const auto* verdict = main_verdict(sight.status, device, {});
    const auto ends = device.probation_until ? device.probation_until
                      : verdict == nullptr   ? std::optional<WallTime>()
                                             : verdict->next_at;
    lines.push_back({or_dash(device.node), name_of(device).name, state_of(device),
                     age_since(device.opened_at, sight.now), fmt::format("{}", device.incidents),
                     or_dash(joined(device.holders)), or_dash(device.taint), due_text(ends, sight.now),
                     or_dash(is_wide ? device.said : first_words(device.said))});
    if (!is_wide) continue;
    lines.back().push_back(or_dash(device.policy));
    lines.back().push_back(time_text(ends));
    lines.back().push_back(or_dash(verdict == nullptr ? "" : verdict->message));
  }
  return lines;
}

std::vector<Line> lemons_lines(const Sight& sight, bool is_wide) {
  std::vector<Line> lines = {{"NODE", "DEVICE", "INCIDENTS", "PENALTY", "LIMIT", "STATE", "LAST"}};
  if (is_wide) lines.front().insert(lines.front().end(), {"AT", "POLICY", "KEY"});
  for (const auto* device : lemons_of(sight)) {
    const auto* policy = policy_named(sight.status, device->policy);
    lines.push_back({or_dash(device->node), name_of(*device).name, fmt::format("{}", device->incidents),
                     fmt::format("{:.2f}", penalty_now(sight, *device)),
                     policy == nullptr ? "-" : fmt::format("{}", policy->quarantine_above), lemon_state(sight, *device),
                     age_since(last_incident(*device), sight.now)});
    if (!is_wide) continue;
    lines.back().push_back(time_text(last_incident(*device)));
    lines.back().push_back(or_dash(device->policy));
    lines.back().push_back(device->device);
  }
  return lines;
}

Json devices_json(const Sight& sight, std::string_view ns) {
  Json json = {{"controller", controller_json(sight)}, {"devices", Json::array()}};
  for (const auto& row : device_rows(sight, ns)) {
    auto one = device_object(sight, *row.device);
    one["holder"] = row.holder.empty() ? Json() : Json(row.holder);
    one["next"] = next_object(row.verdict);
    json["devices"].push_back(std::move(one));
  }
  return json;
}

Json incidents_json(const Sight& sight, std::string_view ns) {
  Json json = {{"controller", controller_json(sight)}, {"incidents", Json::array()}};
  for (const auto& device : sight.status.devices) {
    if (!is_incident(device) || !is_held_in(device, ns)) continue;
    auto one = device_object(sight, device);
    one["state"] = state_of(device);
    one["next"] = next_object(main_verdict(sight.status, device, {}));
    json["incidents"].push_back(std::move(one));
  }
  return json;
}

Json lemons_json(const Sight& sight) {
  Json json = {{"controller", controller_json(sight)}, {"lemons", Json::array()}};
  for (const auto* device : lemons_of(sight)) {
    auto one = device_object(sight, *device);
    const auto* policy = policy_named(sight.status, device->policy);
    one["limit"] = policy == nullptr ? Json() : Json(policy->quarantine_above);
    one["state"] = lemon_state(sight, *device);
    json["lemons"].push_back(std::move(one));
  }
  return json;
}

Json device_object(const Sight& sight, const StatusDevice& device) {
  Json json = {{"device", device.device},
               {"node", device.node},
               {"health", device.health},
               {"since", nullptr},
               {"said", device.said},
               {"policy", device.policy},
               {"taint", device.taint},
               {"holders", device.holders},
               {"incidentOpenedAt", nullptr},
               {"acknowledged", device.acknowledged},
               {"quarantined", device.quarantined},
               {"probationUntil", nullptr},
               {"incidents", device.incidents},
               {"penalty", std::round(penalty_now(sight, device) * 100) / 100},
               {"history", Json::array()}};
  if (device.since) json["since"] = format_rfc3339(*device.since);
  if (device.opened_at) json["incidentOpenedAt"] = format_rfc3339(*device.opened_at);
  if (device.probation_until) json["probationUntil"] = format_rfc3339(*device.probation_until);
  for (const auto& one : device.history)
    json["history"].push_back({{"at", format_rfc3339(one.at)}, {"said", one.said}});
  return json;
}

Json verdict_object(const StatusVerdict& verdict) {
  Json json = {{"subject", {{"kind", verdict.kind}, {"namespace", verdict.ns}, {"name", verdict.name}}},
               {"device", verdict.device},
               {"policy", verdict.policy},
               {"mode", nullptr},
               {"gate", nullptr},
               {"reason", verdict.reason},
               {"message", verdict.message},
               {"since", format_rfc3339(verdict.since)},
               {"nextStepAt", nullptr}};
  if (!verdict.mode.empty()) json["mode"] = verdict.mode;
  if (!verdict.gate.empty()) json["gate"] = verdict.gate;
  if (verdict.next_at) json["nextStepAt"] = format_rfc3339(*verdict.next_at);
  return json;
}

double penalty_now(const Sight& sight, const StatusDevice& device) {
  const auto* policy = policy_named(sight.status, device.policy);
  if (policy == nullptr || policy->half_life <= Seconds(0) || !device.penalty_at) return device.penalty;
  const auto age = std::chrono::duration<double>(std::max(sight.now - *device.penalty_at, WallTime::duration(0)));
  return device.penalty * std::exp2(-age / std::chrono::duration<double>(policy->half_life));
}

const StatusPolicy* policy_named(const ClusterStatus& status, std::string_view name) {
  const auto found = std::ranges::find(status.policies, name, &StatusPolicy::name);
  return found == status.policies.end() ? nullptr : &*found;
}

}  // namespace dhc::cli
