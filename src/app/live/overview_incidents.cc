#include <nlohmann/json.hpp>

#include "app/live/overview.h"
#include "base/json_text.h"
#include "base/rfc3339.h"
#include "domain/findings/rejecting_node.h"

namespace dhc {

namespace {
using Json = nlohmann::ordered_json;

Json time_json(const std::optional<WallTime>& at) { return at ? Json(format_rfc3339(*at)) : Json(); }

std::string_view phase_of(const DeviceRecord& record, WallTime now) {
  if (!record.open) return record.probation_until && now < *record.probation_until ? "probation" : "past";
  if (record.acknowledged != Acknowledged::No) return "acknowledged";
  if (record.quarantined) return "quarantined";
  return record.quiet_since || record.healthy_since ? "recovering" : "open";
}

std::string_view words_of(SignalSource source) {
  switch (source) {
    case SignalSource::Report:
      return "the kubelet's report";
    case SignalSource::Claim:
      return "a condition of its claim";
    case SignalSource::Taint:
      return "the driver's own taint";
  }
  return {};
}

Json history_json(const DeviceRecord& record) {
  Json list = Json::array();
  for (const auto& incident : record.history) {
    list.push_back({{"at", format_rfc3339(incident.at)}, {"said", incident.reason}});
  }
  return list;
}

/// What happened in the incident, oldest first; what comes next is in the verdicts.
Json timeline_json(const DeviceRecord& record) {
  std::vector<std::pair<WallTime, std::string>> steps;
  const auto add = [&](const std::optional<WallTime>& at, std::string_view what) {
    if (at) steps.emplace_back(*at, what);
  };
  const auto said = record.history.empty() ? std::string() : record.history.back().reason;
  add(record.since, is_rejecting_node(record.key) ? "the node's kubelet began to reject pods"
                    : said.empty()                ? "the device went bad"
                                                  : "the device went bad: " + said);
  add(record.opened_at, "the incident opened");
  for (const auto& loss : record.losses) add(loss.at, "a pod was evicted from it");
  if (record.called_bad_at > record.opened_at) add(record.called_bad_at, "it was called bad again");
  if (record.booted_at) add(record.booted_at, "its node has rebooted");
  if (record.reporter_since) add(record.reporter_since, record.reporter + " has begun anew");
  add(record.driver_untainted_at, "the driver's own taint is gone");
  add(record.quiet_since, "nobody reports it bad any more");
  add(record.called_healthy_at, "it was called Healthy");
  add(record.absent_since, "nobody publishes or holds it");
  if (!record.open) add(record.closed_at, "the incident ended: " + record.closed_because);
  std::ranges::stable_sort(steps, {}, [](const auto& step) { return step.first; });
  Json list = Json::array();
  for (const auto& [at, what] : steps) list.push_back({{"at", format_rfc3339(at)}, {"what", what}});
  return list;
}

Json json_of(const DeviceRecord& record, const OverviewInput& input) {
  const auto* rules = rules_of(record, input.policy);
  const auto& node =
      record.key.source == DeviceKey::Source::Plugin ? record.key.place : input.world.node_of(record.key);
  Json json = {{"device", to_string(record.key)},
               {"scope", record.key.scope},
               {"node", node},
               {"rejectingNode", is_rejecting_node(record.key)},
               {"phase", phase_of(record, input.now.wall)},
               {"policy", record.policy},
               {"mode", to_string(effective_mode(policy_of(record, input.policy), input.policy))},
               {"source", words_of(record.source)},
               {"since", format_rfc3339(record.since)},
               {"identity", record.identity},
               {"tainted", !record.rule_uid.empty() || record.node_tainted},
               {"incidents", record.incidents},
               {"history", history_json(record)},
               {"timeline", timeline_json(record)},
               {"endsBy", nullptr},
               {"endsAt", nullptr},
               {"probationUntil", nullptr}};
  if (record.open) {
    const auto recovery = recovery_of(record, rules, input.now);
    json["endsBy"] = recovery.why;
    json["endsAt"] = time_json(recovery.at);
  } else {
    json["probationUntil"] = time_json(record.probation_until);
  }
  return json;
}
}  // namespace

void add_incidents(Overview& overview, const OverviewInput& input) {
  for (const auto& [key, record] : input.incidents.records()) {
    overview.emplace("incident/" + to_string(key), json_text(json_of(record, input)));
  }
}

}  // namespace dhc
