#include "domain/incidents/earlier_record.h"

#include <string>
#include <utility>

#include "domain/incidents/state_reader.h"
#include "domain/incidents/state_record.h"

namespace dhc {

namespace {

IncidentFacts read_earlier_facts(StateReader& reader) {
  IncidentFacts facts;
  bool by_driver = false;
  bool by_taint = false;
  reader.flag("byClaim", by_driver);
  reader.flag("byTaint", by_taint);
  if (by_driver) facts.source = by_taint ? SignalSource::Taint : SignalSource::Claim;
  reader.text("taintKey", facts.taint.key);
  reader.time("since", facts.since);
  reader.time("openedAt", facts.opened_at);
  facts.called_bad_at = facts.opened_at;  // 0.1.0 does not say
  reader.time("calledBadAt", facts.called_bad_at);
  reader.text("reporter", facts.reporter.name);
  reader.time("reporterSince", facts.reporter.began_at);
  reader.time("reporterStart", facts.reporter.start);
  reader.time("calledHealthyAt", facts.called_healthy_at);
  reader.name("bootID", facts.reporter.boot_id);
  reader.time("bootedAt", facts.reporter.booted_at);
  std::optional<WallTime> quiet_since;
  reader.time("quietSince", quiet_since);
  facts.evidence = IncidentEvidence(quiet_since);
  reader.time("absentSince", facts.absent_since);
  bool driver_tainted = false;
  std::optional<WallTime> driver_untainted_at;
  reader.flag("driverTainted", driver_tainted);
  reader.time("driverUntaintedAt", driver_untainted_at);
  if (driver_tainted) facts.driver_taint = DriverTaint{.gone_at = driver_untainted_at};
  return facts;
}

Incident read_earlier_incident(const DeviceHistory& past, StateReader& reader) {
  const auto acknowledged = read_acknowledged(reader);
  bool is_open = false;
  bool was_tainted = false;
  reader.flag("open", is_open);
  reader.flag("wasTainted", was_tainted);
  auto facts = read_earlier_facts(reader);
  std::optional<WallTime> closed_at;
  std::string why;
  std::optional<WallTime> probation_until;
  reader.time("closedAt", closed_at);
  reader.text("closedBecause", why);
  reader.time("probationUntil", probation_until);
  if (is_open) {
    facts.was_tainted = was_tainted;
    return Incident::going_on(std::move(facts), past.is_lemon, acknowledged);
  }
  if (!closed_at && !probation_until) return {};
  return Incident::over({.at = closed_at.value_or(WallTime()),
                         .why = std::move(why),
                         .was_tainted = was_tainted,
                         .acknowledged = acknowledged},
                        probation_until);
}

OurMarks read_earlier_marks(StateReader& reader) {
  bool is_tainted = false;
  bool is_untainting = false;
  bool is_removing = false;
  std::string node;
  std::string rule;
  reader.flag("nodeTainted", is_tainted);
  reader.flag("untainting", is_untainting);
  reader.name("nodeUID", node);
  reader.name("rule", rule);
  reader.flag("removing", is_removing);
  OurMarks ours;
  if (is_tainted) ours.node = {is_untainting ? MarkPhase::Leaving : MarkPhase::Stands, std::move(node)};
  if (!rule.empty()) ours.rule = {is_removing ? MarkPhase::Leaving : MarkPhase::Stands, std::move(rule)};
  return ours;
}

}  // namespace

std::optional<DeviceRecord> read_earlier_record(const nlohmann::ordered_json& json, bool& departed) {
  if (!json.is_object()) return std::nullopt;
  DeviceRecord record;
  auto& past = record.past;
  StateReader reader(json);
  record.key = read_key(reader);
  translate_node(record.key);
  reader.flag("departed", departed);
  reader.name("identity", record.card.value);
  reader.name("identityAttribute", record.card.attribute);
  reader.name("hostUID", record.card.host_uid);
  read_host(record.card, reader);
  reader.name("policy", past.policy);
  reader.count("incidents", past.count);
  reader.amount("penalty", past.penalty);
  reader.time("penaltyAt", past.penalty_at);
  reader.flag("quarantined", past.is_lemon);
  reader.entries("history", past.incidents, read_past_incident);
  reader.entries("lostBy", past.losses, read_loss);
  record.incident = read_earlier_incident(past, reader);
  record.ours = read_earlier_marks(reader);
  const bool named = !departed || !record.card.value.empty();
  const bool timed = !record.is_open() || (reader.has("since") && reader.has("openedAt"));
  if (!reader.good() || !named || !timed) return std::nullopt;
  return record;
}

}  // namespace dhc
