#include "domain/incidents/state_record.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json_writer.h"
#include "domain/incidents/state_reader.h"

namespace dhc {

namespace {
std::string_view word_of(SignalSource source) {
  switch (source) {
    case SignalSource::Report:
      break;
    case SignalSource::Claim:
      return "Claim";
    case SignalSource::Taint:
      return "Taint";
  }
  return {};
}

void write_card(JsonWriter& json, const CardIdentity& card) {
  json.put("identity", card.value);
  json.put("attribute", card.attribute);
  if (card.host) json.put("host", card.host->empty() ? kNoNode : std::string_view(*card.host));
  json.put("hostUID", card.host_uid);
  json.put_list("beside", card.beside);
}

void write_past(JsonWriter& json, const DeviceHistory& past) {
  json.put("policy", past.policy);
  if (past.count > 0) json.member("incidents", past.count);
  // Two digits say enough, and the same value always makes the same text.
  if (past.penalty > 0) {
    json.member("penalty", std::round(past.penalty * 100) / 100);
    json.member("penaltyAt", past.penalty_at);
  }
  json.put("lemon", past.is_lemon);
  json.put_entries("history", past.incidents, [&](const PastIncident& incident) {
    json.member("at", incident.at);
    json.member("reason", incident.reason);
    json.put("withoutPenalty", incident.without_penalty);
  });
  json.put_entries("lostBy", past.losses, [&](const OwnerLoss& loss) {
    json.member("owner", loss.owner_uid);
    json.member("at", loss.at);
    json.list("holders", loss.holders);
  });
}

void write_reporter(JsonWriter& json, const ReporterSeen& seen) {
  json.put("name", seen.name);
  json.put("beganAt", seen.began_at);
  json.put("start", seen.start);
  json.put("bootID", seen.boot_id);
  json.put("bootedAt", seen.booted_at);
  json.put("informed", seen.informed);
}

void write_facts(JsonWriter& json, const IncidentFacts& facts) {
  json.member("since", facts.since);
  json.member("openedAt", facts.opened_at);
  json.put("firstOpenedAt", facts.first_opened_at);
  json.put("by", word_of(facts.source));
  json.put("taintKey", facts.taint.key);
  json.put("taintValue", facts.taint.value);
  json.put("taintEffect", facts.taint.effect);
  if (facts.driver_taint) {
    json.key("driverTaint");
    json.begin_object();
    json.put("goneAt", facts.driver_taint->gone_at);
    json.end_object();
  }
  json.member("calledBadAt", facts.called_bad_at);
  json.put("calledHealthyAt", facts.called_healthy_at);
  json.put_group("reporter", [&] { write_reporter(json, facts.reporter); });
  json.put("quietSince", facts.evidence.quiet_since());
  json.put("absentSince", facts.absent_since);
}

void write_incident(JsonWriter& json, const Incident& incident) {
  if (incident.phase() == IncidentPhase::None) return;
  json.member("phase", to_string(incident.phase()));
  json.put("acknowledged", word_of(incident.acknowledged()));
  json.put("wasTainted", incident.was_tainted());
  if (const auto* facts = incident.facts()) write_facts(json, *facts);
  if (const auto* end = incident.end()) {
    json.put("openedAt", end->opened_at);
    json.member("endedAt", end->at);
    json.put("because", end->why);
  }
  json.put("until", incident.probation_until());
  if (const auto* trial = incident.trial()) json.put("unproven", trial->is_unproven);
}

void write_mark(JsonWriter& json, const OurMark& mark) {
  if (!mark.stands()) return;
  // A request that may be under way is not known to the process after us.
  json.member("phase", to_string(mark.is_leaving() ? MarkPhase::Leaving : MarkPhase::Stands));
  json.put("uid", mark.uid());
}

void write_ours(JsonWriter& json, const OurMarks& ours) {
  json.put_group("rule", [&] { write_mark(json, ours.rule); });
  json.put_group("node", [&] { write_mark(json, ours.node); });
  json.put_list("letGo", ours.let_go);
}

void read_card(CardIdentity& card, StateReader& reader) {
  reader.name("identity", card.value);
  reader.name("attribute", card.attribute);
  reader.name("hostUID", card.host_uid);
  read_host(card, reader);
  reader.names("beside", card.beside);
}

void read_past(DeviceHistory& past, StateReader& reader) {
  reader.name("policy", past.policy);
  reader.count("incidents", past.count);
  reader.amount("penalty", past.penalty);
  reader.time("penaltyAt", past.penalty_at);
  reader.flag("lemon", past.is_lemon);
  reader.entries("history", past.incidents, read_past_incident);
  reader.entries("lostBy", past.losses, read_loss);
}

void read_reporter(ReporterSeen& seen, StateReader& reader) {
  reader.text("name", seen.name);
  reader.time("beganAt", seen.began_at);
  reader.time("start", seen.start);
  reader.name("bootID", seen.boot_id);
  reader.time("bootedAt", seen.booted_at);
  reader.flag("informed", seen.informed);
}

/// Reads a group of members that may be absent.
template <class Read>
void read_group(StateReader& reader, const char* key, Read read) {
  const auto* json = reader.object(key);
  if (json == nullptr) return;
  StateReader part(*json);
  read(part);
  if (!part.good()) reader.bad();
}

IncidentFacts read_facts(StateReader& reader) {
  IncidentFacts facts;
  if (!reader.has("since") || !reader.has("openedAt")) reader.bad();
  reader.time("since", facts.since);
  reader.time("openedAt", facts.opened_at);
  reader.time("firstOpenedAt", facts.first_opened_at);
  std::string by;
  reader.text("by", by);
  for (const auto source : {SignalSource::Claim, SignalSource::Taint}) {
    if (word_of(source) == by) facts.source = source;
  }
  if (word_of(facts.source) != by) reader.bad();
  reader.text("taintKey", facts.taint.key);
  reader.text("taintValue", facts.taint.value);
  reader.text("taintEffect", facts.taint.effect);
  read_group(reader, "driverTaint",
             [&](StateReader& part) { part.time("goneAt", facts.driver_taint.emplace().gone_at); });
  facts.called_bad_at = facts.opened_at;
  reader.time("calledBadAt", facts.called_bad_at);
  reader.time("calledHealthyAt", facts.called_healthy_at);
  read_group(reader, "reporter", [&](StateReader& part) { read_reporter(facts.reporter, part); });
  std::optional<WallTime> quiet_since;
  reader.time("quietSince", quiet_since);
  facts.evidence = IncidentEvidence(quiet_since);
  reader.time("absentSince", facts.absent_since);
  reader.flag("wasTainted", facts.was_tainted);
  return facts;
}

Incident read_incident(const DeviceHistory& past, StateReader& reader) {
  std::string word;
  reader.text("phase", word);
  const auto phase = std::ranges::find(kIncidentPhases, word, [](auto one) { return to_string(one); });
  if (phase == kIncidentPhases.end()) {
    reader.bad();
    return {};
  }
  const auto acknowledged = read_acknowledged(reader);
  Incident incident;
  if (is_open(*phase)) {
    incident = Incident::going_on(read_facts(reader), past.is_lemon, acknowledged);
  } else if (*phase != IncidentPhase::None) {
    IncidentEnd end;
    std::optional<WallTime> until;
    reader.time("openedAt", end.opened_at);
    reader.time("endedAt", end.at);
    reader.text("because", end.why);
    reader.flag("wasTainted", end.was_tainted);
    end.acknowledged = acknowledged;
    bool is_unproven = false;
    reader.time("until", until);
    reader.flag("unproven", is_unproven);
    incident = Incident::over(std::move(end), until, is_unproven);
  }
  if (incident.phase() != *phase) reader.bad();
  return incident;
}

void read_mark(OurMark& mark, StateReader& reader) {
  std::string word;
  std::string uid;
  reader.text("phase", word);
  reader.name("uid", uid);
  const bool is_leaving = word == to_string(MarkPhase::Leaving);
  if (!is_leaving && word != to_string(MarkPhase::Stands)) reader.bad();
  mark = {is_leaving ? MarkPhase::Leaving : MarkPhase::Stands, std::move(uid)};
}

void read_ours(OurMarks& ours, StateReader& reader) {
  read_group(reader, "rule", [&](StateReader& part) { read_mark(ours.rule, part); });
  read_group(reader, "node", [&](StateReader& part) { read_mark(ours.node, part); });
  std::vector<std::string> let_go;
  if (reader.has("letGo")) reader.names("letGo", let_go);
  ours.let_go = {let_go.begin(), let_go.end()};
}

}  // namespace

bool is_whole(const DeviceKey& key) {
  const bool has_scope = key.source != DeviceKey::Source::NodeTaint;
  return !key.place.empty() && key.scope.empty() != has_scope && key.device.empty() != key.is_device();
}

void translate_node(DeviceKey& key) {
  if (key.source != DeviceKey::Source::Plugin) return;
  if (key.device == "admission of pods") {
    key = DeviceKey::rejecting_node(key.place, key.scope);
  } else if (key.scope == "unknown" && key.device == "unknown") {
    key = DeviceKey::node_taint(key.place);
  }
}

std::string state_json(const DeviceRecord& record, bool departed) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.member("source", to_string(record.key.source));
  json.put("scope", record.key.scope);
  json.member("place", record.key.place);
  json.put("device", record.key.device);
  json.put("departed", departed);
  json.put_group("card", [&] { write_card(json, record.card); });
  json.put_group("past", [&] { write_past(json, record.past); });
  json.put_group("incident", [&] { write_incident(json, record.incident); });
  json.put_group("ours", [&] { write_ours(json, record.ours); });
  json.end_object();
  return text;
}

std::optional<DeviceRecord> read_state_record(const nlohmann::ordered_json& json, bool& departed) {
  if (!json.is_object()) return std::nullopt;
  DeviceRecord record;
  StateReader reader(json);
  record.key = read_key(reader);
  reader.flag("departed", departed);
  read_group(reader, "card", [&](StateReader& part) { read_card(record.card, part); });
  read_group(reader, "past", [&](StateReader& part) { read_past(record.past, part); });
  read_group(reader, "incident", [&](StateReader& part) { record.incident = read_incident(record.past, part); });
  read_group(reader, "ours", [&](StateReader& part) { read_ours(record.ours, part); });
  if (!reader.good() || (departed && record.card.value.empty())) return std::nullopt;
  return record;
}

}  // namespace dhc
