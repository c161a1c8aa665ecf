#include "domain/contract/cluster_status.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_field.h"
#include "base/json_put.h"
#include "base/json_read.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "base/rfc3339.h"

namespace dhc {

namespace {
using Json = nlohmann::ordered_json;

constexpr std::int64_t kFormat = 1;
constexpr std::size_t kShortMessage = 120;
/// No message of ours is longer, and no driver's word may fill the page.
constexpr std::size_t kLongestMessage = 1024;
/// For what stands around the lists, and for the numbers of what is left out.
constexpr std::size_t kFrame = 1024;

struct Level {
  bool histories = true;
  std::size_t message_limit = kLongestMessage;
  bool minor_must_fit = false;
};
/// From everything to the least.
constexpr std::array<Level, 4> kLevels = {
    {{true, kLongestMessage, true}, {false, kLongestMessage, false}, {false, kShortMessage, false}, {false, 0, false}}};

Json json_of(const StatusVerdict& verdict, const Level& level, bool with_device) {
  Json subject = {{"kind", verdict.kind}};
  put(subject, "namespace", verdict.ns);
  subject["name"] = verdict.name;
  Json json = {{"subject", std::move(subject)}};
  put(json, "node", verdict.node);
  put(json, "job", verdict.job);
  if (with_device) put(json, "device", verdict.device);
  put(json, "policy", verdict.policy);
  put(json, "mode", verdict.mode);
  json["reason"] = verdict.reason;
  put(json, "gate", verdict.gate);
  if (level.message_limit > 0) put(json, "message", printable_cut(verdict.message, level.message_limit));
  json["since"] = format_rfc3339(verdict.since);
  put(json, "nextStepAt", verdict.next_at);
  return json;
}

Json json_of(const StatusDevice& device, const Level& level) {
  Json json = {{"device", device.device}};
  put(json, "node", device.node);
  json["health"] = device.health;
  put(json, "since", device.since);
  if (level.message_limit > 0) put(json, "said", printable_cut(device.said, level.message_limit));
  put(json, "policy", device.policy);
  if (!device.holders.empty()) json["holders"] = device.holders;
  put(json, "taint", device.taint);
  put(json, "openedAt", device.opened_at);
  put(json, "acknowledged", device.acknowledged);
  if (device.quarantined) json["quarantined"] = true;
  put(json, "probationUntil", device.probation_until);
  put(json, "closedAt", device.closed_at);
  if (level.message_limit > 0) put(json, "closedBecause", printable_cut(device.closed_because, level.message_limit));
  if (device.incidents != 0) json["incidents"] = device.incidents;
  if (device.penalty_at) json["penalty"] = device.penalty;
  put(json, "penaltyAt", device.penalty_at);
  if (device.is_minor) json["minor"] = true;
  if (!level.histories || device.history.empty()) return json;
  json["history"] = Json::array();
  for (const auto& incident : device.history) {
    json["history"].push_back(
        {{"at", format_rfc3339(incident.at)}, {"said", printable_cut(incident.said, kShortMessage)}});
  }
  return json;
}

/// One part of the text: a device with the verdicts about it, or one verdict.
struct Part {
  const StatusDevice* device = nullptr;
  std::vector<const StatusVerdict*> verdicts;
  bool is_minor = false;
};

/// What is said of no pod, node or Job stands first.
bool is_of_the_controller(const StatusVerdict& verdict) {
  return verdict.device.empty() && verdict.kind != "Pod" && verdict.kind != "Node" && verdict.kind != "Job";
}

std::vector<Part> parts_of(const ClusterStatus& status) {
  std::vector<Part> first;
  std::vector<Part> devices;
  std::vector<Part> others;
  std::vector<Part> minor;
  std::map<std::string_view, std::vector<const StatusVerdict*>> by_device;
  for (const auto& device : status.devices) by_device.try_emplace(device.device);
  for (const auto& verdict : status.verdicts) {
    const auto at = verdict.device.empty() ? by_device.end() : by_device.find(verdict.device);
    if (at != by_device.end()) {
      at->second.push_back(&verdict);
    } else {
      (is_of_the_controller(verdict) ? first : others).push_back({.device = nullptr, .verdicts = {&verdict}});
    }
  }
  for (const auto& device : status.devices) {
    (device.is_minor ? minor : devices)
        .push_back({.device = &device,
                    .verdicts = std::exchange(by_device.at(device.device), {}),
                    .is_minor = device.is_minor});
  }
  for (auto* more : {&devices, &others, &minor}) std::ranges::move(*more, std::back_inserter(first));
  return first;
}

/// The lists as text, as far as they fit.
struct Filled {
  std::string devices;
  std::string verdicts;
  std::size_t left_devices = 0;
  std::size_t left_verdicts = 0;
  bool all_fit = true;  ///< That must, at its level.
};

Filled fill(std::span<const Part> parts, const Level& level, std::size_t room) {
  Filled filled;
  bool is_full = false;
  for (const auto& part : parts) {
    std::string text;
    if (!is_full && part.device != nullptr) {
      auto json = json_of(*part.device, level);
      if (!part.verdicts.empty()) json["verdicts"] = Json::array();
      for (const auto* verdict : part.verdicts) json["verdicts"].push_back(json_of(*verdict, level, false));
      text = json_text(json);
    } else if (!is_full) {
      text = json_text(json_of(*part.verdicts.front(), level, true));
    }
    auto& list = part.device != nullptr ? filled.devices : filled.verdicts;
    is_full = is_full || filled.devices.size() + filled.verdicts.size() + text.size() + 1 > room;
    if (!is_full) {
      list += (list.empty() ? "" : ",") + text;
      continue;
    }
    if (part.device != nullptr) ++filled.left_devices;
    filled.left_verdicts += part.verdicts.size();
    filled.all_fit = filled.all_fit && part.is_minor && !level.minor_must_fit;
  }
  return filled;
}

Json json_of(const StatusPause& pause) {
  Json json = {{"why", printable_cut(pause.why, kLongestMessage)}};
  put(json, "until", pause.until);
  return json;
}

Json head_of(const ClusterStatus& status) {
  Json json = {{"format", kFormat}, {"version", status.program}, {"mode", status.mode}, {"pause", nullptr}};
  if (status.pause) json["pause"] = json_of(*status.pause);
  json["pauses"] = Json::array();
  for (const auto& pause : status.pauses) json["pauses"].push_back(json_of(pause));
  json["counts"] = {{"devicesUnhealthy", status.devices_unhealthy},
                    {"devicesUnknown", status.devices_unknown},
                    {"incidentsOpen", status.incidents_open},
                    {"quarantined", status.quarantined}};
  json["policies"] = Json::array();
  for (const auto& policy : status.policies) {
    json["policies"].push_back({{"name", policy.name},
                                {"mode", policy.mode},
                                {"quarantineAbove", policy.quarantine_above},
                                {"halfLifeSeconds", policy.half_life.count()}});
  }
  return json;
}

Json json_of(const StatusCut& cut) {
  Json json = Json::object();
  if (cut.histories) json["histories"] = true;
  put(json, "messageLimit", cut.message_limit);
  if (cut.messages) json["messages"] = true;
  put(json, "devices", cut.devices);
  put(json, "verdicts", cut.verdicts);
  put(json, "policies", cut.policies);
  return json;
}

std::optional<WallTime> time_at(const Json& json, std::string_view key) {
  const auto text = json_string(json, {key});
  return text.empty() ? std::nullopt : parse_rfc3339(text);
}

std::int64_t number_at(const Json& json, JsonPath path) {
  const auto* found = json_field(json, path);
  return found != nullptr && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

std::size_t count_at(const Json& json, JsonPath path) {
  return static_cast<std::size_t>(std::max<std::int64_t>(number_at(json, path), 0));
}

double fraction_at(const Json& json, std::string_view key) {
  const auto* found = json_field(json, {key});
  return found != nullptr && found->is_number() ? found->get<double>() : 0;
}

StatusPause read_status_pause(const Json& json) {
  return {.why = json_string(json, {"why"}), .until = time_at(json, "until")};
}

StatusVerdict read_verdict(const Json& json) {
  return {.kind = json_string(json, {"subject", "kind"}),
          .ns = json_string(json, {"subject", "namespace"}),
          .name = json_string(json, {"subject", "name"}),
          .node = json_string(json, {"node"}),
          .job = json_string(json, {"job"}),
          .device = json_string(json, {"device"}),
          .policy = json_string(json, {"policy"}),
          .mode = json_string(json, {"mode"}),
          .reason = json_string(json, {"reason"}),
          .gate = json_string(json, {"gate"}),
          .message = json_string(json, {"message"}),
          .since = time_at(json, "since").value_or(WallTime{}),
          .next_at = time_at(json, "nextStepAt")};
}

StatusDevice read_device(const Json& json) {
  StatusDevice device{.device = json_string(json, {"device"}),
                      .node = json_string(json, {"node"}),
                      .health = json_string(json, {"health"}),
                      .since = time_at(json, "since"),
                      .said = json_string(json, {"said"}),
                      .policy = json_string(json, {"policy"}),
                      .holders = {},
                      .taint = json_string(json, {"taint"}),
                      .opened_at = time_at(json, "openedAt"),
                      .acknowledged = json_string(json, {"acknowledged"}),
                      .quarantined = json_true(json, {"quarantined"}),
                      .probation_until = time_at(json, "probationUntil"),
                      .closed_at = time_at(json, "closedAt"),
                      .closed_because = json_string(json, {"closedBecause"}),
                      .incidents = number_at(json, {"incidents"}),
                      .penalty = fraction_at(json, "penalty"),
                      .penalty_at = time_at(json, "penaltyAt"),
                      .history = {},
                      .is_minor = json_true(json, {"minor"})};
  for (const auto& holder : json_list(json, {"holders"})) {
    if (holder.is_string()) device.holders.push_back(holder.get<std::string>());
  }
  for (const auto& incident : json_list(json, {"history"})) {
    device.history.push_back(
        {.at = time_at(incident, "at").value_or(WallTime{}), .said = json_string(incident, {"said"})});
  }
  return device;
}

StatusCut read_cut(const Json& json) {
  return {.histories = json_true(json, {"leftOut", "histories"}),
          .message_limit = count_at(json, {"leftOut", "messageLimit"}),
          .messages = json_true(json, {"leftOut", "messages"}),
          .devices = count_at(json, {"leftOut", "devices"}),
          .verdicts = count_at(json, {"leftOut", "verdicts"}),
          .policies = count_at(json, {"leftOut", "policies"})};
}

}  // namespace

std::string status_text(const ClusterStatus& status, std::size_t limit) {
  const auto parts = parts_of(status);
  auto head = head_of(status);
  auto cut = status.cut;
  while (!head["policies"].empty() && json_text(head).size() + kFrame > limit / 4) {
    head["policies"].erase(head["policies"].size() - 1);
    ++cut.policies;
  }
  const auto taken = json_text(head).size() + kFrame;
  const auto room = limit > taken ? limit - taken : 0;
  Filled filled;
  for (const auto& level : kLevels) {
    filled = fill(parts, level, room);
    cut.histories = !level.histories;
    cut.message_limit = level.message_limit < kLongestMessage ? level.message_limit : 0;
    cut.messages = level.message_limit == 0;
    if (filled.all_fit) break;
  }
  cut.devices += filled.left_devices;
  cut.verdicts += filled.left_verdicts;
  head["leftOut"] = json_of(cut);
  auto text = json_text(head);
  text.pop_back();
  return text + fmt::format(R"(,"verdicts":[{}],"devices":[{}]}})", filled.verdicts, filled.devices);
}

Result<ClusterStatus> parse_status(std::string_view text) {
  const Json json = read_json<Json>(text);
  if (!json.is_object()) return fail(ErrorKind::Malformed, "the status is no JSON object");
  if (const auto format = number_at(json, {"format"}); format != kFormat) {
    return fail(ErrorKind::Malformed,
                fmt::format("the status has format {}, and this program knows {}: run the controller's version", format,
                            kFormat));
  }
  ClusterStatus status{.program = json_string(json, {"version"}),
                       .mode = json_string(json, {"mode"}),
                       .pause = {},
                       .pauses = {},
                       .devices_unhealthy = count_at(json, {"counts", "devicesUnhealthy"}),
                       .devices_unknown = count_at(json, {"counts", "devicesUnknown"}),
                       .incidents_open = count_at(json, {"counts", "incidentsOpen"}),
                       .quarantined = count_at(json, {"counts", "quarantined"}),
                       .policies = {},
                       .verdicts = {},
                       .devices = {},
                       .cut = read_cut(json)};
  if (const auto* pause = json_field(json, {"pause"}); pause != nullptr && pause->is_object()) {
    status.pause = read_status_pause(*pause);
  }
  for (const auto& pause : json_list(json, {"pauses"})) status.pauses.push_back(read_status_pause(pause));
  for (const auto& policy : json_list(json, {"policies"})) {
    status.policies.push_back({.name = json_string(policy, {"name"}),
                               .mode = json_string(policy, {"mode"}),
                               .quarantine_above = fraction_at(policy, "quarantineAbove"),
                               .half_life = Seconds(number_at(policy, {"halfLifeSeconds"}))});
  }
  for (const auto& verdict : json_list(json, {"verdicts"})) status.verdicts.push_back(read_verdict(verdict));
  for (const auto& one : json_list(json, {"devices"})) {
    status.devices.push_back(read_device(one));
    for (const auto& verdict : json_list(one, {"verdicts"})) {
      status.verdicts.push_back(read_verdict(verdict));
      status.verdicts.back().device = status.devices.back().device;
    }
  }
  return status;
}

}  // namespace dhc
