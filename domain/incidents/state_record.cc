#include "domain/incidents/state_record.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json_put.h"
#include "base/rfc3339.h"
#include "domain/incidents/state_reader.h"

namespace dhc {

namespace {
using Json = nlohmann::ordered_json;

void put_group(Json& json, const char* key, Json group) {
  if (!group.empty()) json[key] = std::move(group);
}

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

Json card_json(const CardIdentity& card) {
  Json json;
  put(json, "identity", card.value);
  put(json, "attribute", card.attribute);
  if (card.host) put(json, "host", card.host->empty() ? kNoNode : std::string_view(*card.host));
  put(json, "hostUID", card.host_uid);
  if (!card.beside.empty()) json["beside"] = card.beside;
  return json;
}

Json past_json(const DeviceHistory& past) {
  Json json;
  put(json, "policy", past.policy);
  if (past.count > 0) json["incidents"] = past.count;
  // Two digits say enough, and the same value always makes the same text.
  if (past.penalty > 0) {
    json["penalty"] = std::round(past.penalty * 100) / 100;
    json["penaltyAt"] = format_rfc3339(past.penalty_at);
  }
  put(json, "lemon", past.is_lemon);
  for (const auto& incident : past.incidents) {
    auto& entry = json["history"].emplace_back(Json{{"at", format_rfc3339(incident.at)}, {"reason", incident.reason}});
    put(entry, "withoutPenalty", incident.without_penalty);
  }
  for (const auto& loss : past.losses) {
    json["lostBy"].push_back({{"owner", loss.owner_uid}, {"at", format_rfc3339(loss.at)}, {"holders", loss.holders}});
  }
  return json;
}

Json reporter_json(const ReporterSeen& seen) {
  Json json;
  put(json, "name", seen.name);
  put(json, "beganAt", seen.began_at);
  put(json, "start", seen.start);
  put(json, "bootID", seen.boot_id);
  put(json, "bootedAt", seen.booted_at);
  return json;
}

void put_facts(Json& json, const IncidentFacts& facts) {
  json["since"] = format_rfc3339(facts.since);
  json["openedAt"] = format_rfc3339(facts.opened_at);
  put(json, "firstOpenedAt", facts.first_opened_at);
  put(json, "by", word_of(facts.source));
  put(json, "taintKey", facts.taint.key);
  put(json, "taintValue", facts.taint.value);
  put(json, "taintEffect", facts.taint.effect);
  if (facts.driver_taint) {
    json["driverTaint"] = Json::object();
    put(json["driverTaint"], "goneAt", facts.driver_taint->gone_at);
  }
  json["calledBadAt"] = format_rfc3339(facts.called_bad_at);
  put(json, "calledHealthyAt", facts.called_healthy_at);
  put_group(json, "reporter", reporter_json(facts.reporter));
  put(json, "quietSince", facts.evidence.quiet_since());
  put(json, "absentSince", facts.absent_since);
}

Json incident_json(const Incident& incident) {
  Json json;
  if (incident.phase() == IncidentPhase::None) return json;
  json["phase"] = to_string(incident.phase());
  put(json, "acknowledged", word_of(incident.acknowledged()));
  put(json, "wasTainted", incident.was_tainted());
  if (const auto* facts = incident.facts()) put_facts(json, *facts);
  if (const auto* end = incident.end()) {
    put(json, "openedAt", end->opened_at);
    json["endedAt"] = format_rfc3339(end->at);
    put(json, "because", end->why);
  }
  put(json, "until", incident.probation_until());
  if (const auto* trial = incident.trial()) put(json, "unproven", trial->is_unproven);
  return json;
}

Json mark_json(const OurMark& mark) {
  Json json;
  if (!mark.stands()) return json;
  // A request that may be under way is not known to the process after us.
  json["phase"] = to_string(mark.is_leaving() ? MarkPhase::Leaving : MarkPhase::Stands);
  put(json, "uid", mark.uid());
  return json;
}

Json ours_json(const OurMarks& ours) {
  Json json;
  put_group(json, "rule", mark_json(ours.rule));
  put_group(json, "node", mark_json(ours.node));
  if (!ours.let_go.empty()) json["letGo"] = ours.let_go;
  return json;
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

nlohmann::ordered_json state_json(const DeviceRecord& record, bool departed) {
  Json json;
  json["source"] = to_string(record.key.source);
  put(json, "scope", record.key.scope);
  json["place"] = record.key.place;
  put(json, "device", record.key.device);
  put(json, "departed", departed);
  put_group(json, "card", card_json(record.card));
  put_group(json, "past", past_json(record.past));
  put_group(json, "incident", incident_json(record.incident));
  put_group(json, "ours", ours_json(record.ours));
  return json;
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
