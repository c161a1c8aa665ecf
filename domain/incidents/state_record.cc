#include "domain/incidents/state_record.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/rfc3339.h"

namespace dhc {

namespace {
using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestText = 300;
/// As long as the API's names are let in.
constexpr std::size_t kLongestName = 1024;
/// No node's name.
constexpr std::string_view kNoNode = "<none>";

void put(Json& json, const char* key, const std::string& value) {
  if (!value.empty()) json[key] = value;
}
void put(Json& json, const char* key, const std::optional<WallTime>& value) {
  if (value) json[key] = format_rfc3339(*value);
}
void put(Json& json, const char* key, bool value) {
  if (value) json[key] = true;
}

std::string_view word_of(Acknowledged how) {
  switch (how) {
    case Acknowledged::No:
      break;
    case Acknowledged::Removed:
      return "Removed";
    case Acknowledged::Changed:
      return "Changed";
    case Acknowledged::Annotated:
      return "Annotated";
  }
  return {};
}

/// Reads members that may be absent; a wrong type makes the record bad.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  void text(const char* key, std::string& out) {
    // It may end in a log, an Event or an annotation.
    if (const auto* value = find(key, Json::value_t::string))
      out = printable_cut(value->get<std::string>(), kLongestText);
  }
  /// A name as it stands: it is compared with others.
  void name(const char* key, std::string& out) {
    const auto* value = find(key, Json::value_t::string);
    if (value == nullptr) return;
    out = value->get<std::string>();
    good_ = good_ && out.size() <= kLongestName;
  }
  void names(const char* key, std::vector<std::string>& out) {
    const auto* list = find(key, Json::value_t::array);
    if (list == nullptr) return;
    for (const auto& item : *list) {
      good_ =
          good_ && item.is_string() && out.size() < 100 && item.get_ref<const std::string&>().size() <= kLongestName;
      if (!good_) return;
      out.push_back(item.get<std::string>());
    }
  }
  void flag(const char* key, bool& out) {
    if (const auto* value = find(key, Json::value_t::boolean)) out = value->get<bool>();
  }
  void time(const char* key, WallTime& out) {
    std::string said;
    text(key, said);
    if (said.empty()) return;
    if (const auto at = parse_rfc3339(said)) {
      out = *at;
    } else {
      good_ = false;
    }
  }
  void time(const char* key, std::optional<WallTime>& out) {
    if (json_.contains(key)) time(key, out.emplace());
  }
  void count(const char* key, std::int64_t& out) {
    const auto found = json_.find(key);
    if (found == json_.end()) return;
    good_ = good_ && found->is_number_integer() && *found >= 0 && *found <= 1'000'000;
    if (good_) out = found->get<std::int64_t>();
  }
  void amount(const char* key, double& out) {
    const auto found = json_.find(key);
    if (found == json_.end()) return;
    good_ = good_ && found->is_number() && *found >= 0 && *found <= 1e6;
    if (good_) out = found->get<double>();
  }
  [[nodiscard]] bool good() const { return good_; }
  void bad() { good_ = false; }

 private:
  const Json* find(const char* key, Json::value_t type) {
    const auto found = json_.find(key);
    if (found == json_.end()) return nullptr;
    if (found->type() == type) return &*found;
    good_ = false;
    return nullptr;
  }
  const Json& json_;
  bool good_ = true;
};

/// Reads a list of objects that may be absent; `read` makes one entry of each.
template <class T, class Read>
void read_entries(const Json& json, const char* key, Reader& reader, T& out, Read read) {
  const auto list = json.find(key);
  if (list == json.end()) return;
  if (!list->is_array() || list->size() > 100) return reader.bad();
  for (const auto& item : *list) {
    if (!item.is_object()) return reader.bad();
    Reader part(item);
    auto entry = read(part);
    if (!part.good()) return reader.bad();
    out.push_back(std::move(entry));
  }
}

PastIncident read_past_incident(Reader& part) {
  PastIncident incident;
  part.time("at", incident.at);
  part.text("reason", incident.reason);
  return incident;
}

OwnerLoss read_loss(Reader& part) {
  OwnerLoss loss;
  part.name("owner", loss.owner_uid);
  part.time("at", loss.at);
  part.names("holders", loss.holders);
  return loss;
}

void read_host(CardIdentity& card, Reader& reader) {
  std::string host;
  reader.name("host", host);
  if (!host.empty()) card.host = host == kNoNode ? std::string() : std::move(host);
}

Acknowledged read_acknowledged(Reader& reader) {
  std::string word;
  reader.text("acknowledged", word);
  if (word.empty()) return Acknowledged::No;
  for (const auto how : {Acknowledged::Removed, Acknowledged::Changed, Acknowledged::Annotated}) {
    if (word_of(how) == word) return how;
  }
  reader.bad();
  return Acknowledged::No;
}

void put_facts(Json& json, const IncidentFacts& facts) {
  // What does not know of taints as a signal takes one for a claim's word, which waits for no report either.
  put(json, "byClaim", is_drivers_own(facts.source));
  put(json, "byTaint", facts.source == SignalSource::Taint);
  put(json, "taintKey", facts.taint_key);
  json["since"] = format_rfc3339(facts.since);
  json["openedAt"] = format_rfc3339(facts.opened_at);
  json["calledBadAt"] = format_rfc3339(facts.called_bad_at);
  put(json, "reporter", facts.reporter.name);
  put(json, "reporterSince", facts.reporter.began_at);
  put(json, "reporterStart", facts.reporter.start);
  put(json, "calledHealthyAt", facts.called_healthy_at);
  put(json, "bootID", facts.reporter.boot_id);
  put(json, "bootedAt", facts.reporter.booted_at);
  put(json, "quietSince", facts.evidence.quiet_since());
  put(json, "absentSince", facts.absent_since);
  put(json, "driverTainted", facts.driver_taint.has_value());
  if (facts.driver_taint) put(json, "driverUntaintedAt", facts.driver_taint->gone_at);
}

IncidentFacts read_facts(Reader& reader) {
  IncidentFacts facts;
  bool by_driver = false;
  bool by_taint = false;
  reader.flag("byClaim", by_driver);
  reader.flag("byTaint", by_taint);
  if (by_driver) facts.source = by_taint ? SignalSource::Taint : SignalSource::Claim;
  reader.text("taintKey", facts.taint_key);
  reader.time("since", facts.since);
  reader.time("openedAt", facts.opened_at);
  facts.called_bad_at = facts.opened_at;  // a version before this one does not say
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

Incident read_incident(const DeviceHistory& past, Reader& reader) {
  const auto acknowledged = read_acknowledged(reader);
  bool is_open = false;
  bool was_tainted = false;
  reader.flag("open", is_open);
  reader.flag("wasTainted", was_tainted);
  auto facts = read_facts(reader);
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

OurMarks read_marks(Reader& reader) {
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
  const auto& past = record.past;
  Json json;
  json["source"] = to_string(record.key.source);
  put(json, "scope", record.key.scope);
  json["place"] = record.key.place;
  put(json, "device", record.key.device);
  put(json, "departed", departed);
  put(json, "identity", record.card.value);
  put(json, "identityAttribute", record.card.attribute);
  put(json, "policy", past.policy);
  json["incidents"] = past.count;
  // Two digits say enough, and the same value always makes the same text.
  json["penalty"] = std::round(past.penalty * 100) / 100;
  json["penaltyAt"] = format_rfc3339(past.penalty_at);
  put(json, "quarantined", past.is_lemon);
  put(json, "acknowledged", std::string(word_of(record.incident.acknowledged())));
  const auto* facts = record.incident.facts();
  put(json, "open", facts != nullptr);
  if (facts != nullptr) put_facts(json, *facts);
  put(json, "nodeTainted", record.ours.node.stands());
  put(json, "untainting", record.ours.node.is_leaving());
  put(json, "nodeUID", record.ours.node.uid());
  put(json, "hostUID", record.card.host_uid);
  if (record.card.host) json["host"] = record.card.host->empty() ? std::string(kNoNode) : *record.card.host;
  put(json, "wasTainted", record.incident.was_tainted());
  put(json, "rule", record.ours.rule.uid());
  put(json, "removing", record.ours.rule.is_leaving());
  if (const auto* end = record.incident.end()) {
    json["closedAt"] = format_rfc3339(end->at);
    put(json, "closedBecause", end->why);
    put(json, "probationUntil", record.incident.probation_until());
  }
  Json history = Json::array();
  for (const auto& incident : past.incidents) {
    history.push_back({{"at", format_rfc3339(incident.at)}, {"reason", incident.reason}});
  }
  json["history"] = std::move(history);
  for (const auto& loss : past.losses) {
    json["lostBy"].push_back({{"owner", loss.owner_uid}, {"at", format_rfc3339(loss.at)}, {"holders", loss.holders}});
  }
  return json;
}

std::optional<DeviceRecord> read_state_record(const nlohmann::ordered_json& json, bool& departed) {
  if (!json.is_object()) return std::nullopt;
  DeviceRecord record;
  auto& past = record.past;
  Reader reader(json);
  std::string source;
  reader.text("source", source);
  reader.name("scope", record.key.scope);
  reader.name("place", record.key.place);
  reader.name("device", record.key.device);
  const auto kind = parse_source(source);
  record.key.source = kind.value_or(DeviceKey::Source::Dra);
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
  read_entries(json, "history", reader, past.incidents, read_past_incident);
  read_entries(json, "lostBy", reader, past.losses, read_loss);
  record.incident = read_incident(past, reader);
  record.ours = read_marks(reader);
  const bool named = kind && is_whole(record.key) && (!departed || !record.card.value.empty());
  const bool timed = !record.is_open() || (json.contains("since") && json.contains("openedAt"));
  if (!reader.good() || !named || !timed) return std::nullopt;
  return record;
}

}  // namespace dhc
