#include <map>

#include <nlohmann/json.hpp>

#include "app/live/overview.h"
#include "base/json_text.h"
#include "base/rfc3339.h"
#include "domain/findings/enforcement.h"

namespace dhc {

namespace {
using Json = nlohmann::ordered_json;

Json time_json(const std::optional<WallTime>& at) { return at ? Json(format_rfc3339(*at)) : Json(); }

std::string_view phase_of(const DeviceRecord& record, WallTime now) {
  switch (record.incident.phase()) {
    case IncidentPhase::Open:
      return record.incident.facts()->evidence.quiet_since() ? "recovering" : "open";
    case IncidentPhase::Quarantined:
      return "quarantined";
    case IncidentPhase::Acknowledged:
      return "acknowledged";
    case IncidentPhase::Probation:
      return now < record.incident.probation_until().value_or(now) ? "probation" : "past";
    case IncidentPhase::None:
    case IncidentPhase::Ended:
      return "past";
  }
  return {};
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
  for (const auto& incident : record.past.incidents) {
    list.push_back({{"at", format_rfc3339(incident.at)}, {"said", incident.reason}});
  }
  return list;
}

/// What happened in the incident, oldest first; what comes next is in the verdicts.
Json timeline_json(const DeviceRecord& record) {
  std::multimap<WallTime, std::string> steps;  // of one moment in this order
  const auto add = [&](const std::optional<WallTime>& at, std::string_view what) {
    if (at) steps.emplace(*at, what);
  };
  if (const auto* facts = record.incident.facts()) {
    const auto said = record.past.incidents.empty() ? std::string() : record.past.incidents.back().reason;
    const auto& reporter = facts->reporter;
    add(facts->since, !record.key.is_device() ? "the node's kubelet began to reject pods"
                      : said.empty()          ? "the device went bad"
                                              : "the device went bad: " + said);
    add(facts->opened_at, "the incident opened");
    if (facts->called_bad_at > facts->opened_at) add(facts->called_bad_at, "it was called bad again");
    add(reporter.booted_at, "its node has rebooted");
    add(reporter.began_at, reporter.name + " has begun anew");
    if (facts->driver_taint) add(facts->driver_taint->gone_at, "the driver's own taint is gone");
    add(facts->evidence.quiet_since(), "nobody reports it bad any more");
    add(facts->called_healthy_at, "it was called Healthy");
    add(facts->absent_since, "nobody publishes or holds it");
  }
  for (const auto& loss : record.past.losses) add(loss.at, "a pod was evicted from it");
  if (const auto* end = record.incident.end()) add(end->at, "the incident ended: " + end->why);
  Json list = Json::array();
  for (const auto& [at, what] : steps) list.push_back({{"at", format_rfc3339(at)}, {"what", what}});
  return list;
}

/// Of an incident that is over: when the last one opened.
WallTime since_of(const DeviceRecord& record) {
  if (const auto* facts = record.incident.facts()) return facts->since;
  return record.past.incidents.empty() ? record.past.penalty_at : record.past.incidents.back().at;
}

Json json_of(const DeviceRecord& record, const OverviewInput& input) {
  const auto* rules = rules_of(record, input.policy);
  const auto* facts = record.incident.facts();
  const auto* policy = policy_of(record, input.policy);
  // What stands goes on wherever the policy enforces now.
  const auto mode =
      record.ours.any() ? effective_mode(policy, input.policy) : mode_on(policy, input.policy, input.world, record.key);
  Json json = {{"device", to_string(record.key)},
               {"scope", record.key.scope},
               {"node", node_of(record, input.world)},
               {"rejectingNode", record.key.source == DeviceKey::Source::RejectingNode},
               {"phase", phase_of(record, input.now.wall)},
               {"policy", record.past.policy},
               {"mode", to_string(mode)},
               {"source", facts == nullptr ? std::string_view() : words_of(facts->source)},
               {"since", format_rfc3339(since_of(record))},
               {"identity", record.card.value},
               {"tainted", record.ours.any()},
               {"incidents", record.past.count},
               {"history", history_json(record)},
               {"timeline", timeline_json(record)},
               {"endsBy", nullptr},
               {"endsAt", nullptr},
               {"probationUntil", nullptr}};
  if (facts != nullptr) {
    const auto recovery = recovery_of(record, rules, input.now);
    json["endsBy"] = recovery.why;
    json["endsAt"] = time_json(recovery.at);
  } else {
    json["probationUntil"] = time_json(record.incident.probation_until());
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
