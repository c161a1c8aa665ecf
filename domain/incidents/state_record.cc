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

Incident read_incident(Reader& part) {
  Incident incident;
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

void read_host(DeviceRecord& record, Reader& reader) {
  std::string host;
  reader.name("host", host);
  if (!host.empty()) record.host = host == kNoNode ? std::string() : std::move(host);
}

void read_acknowledged(DeviceRecord& record, Reader& reader) {
  std::string word;
  reader.text("acknowledged", word);
  if (word.empty()) return;
  for (const auto how : {Acknowledged::Removed, Acknowledged::Changed, Acknowledged::Annotated}) {
    if (word_of(how) == word) record.acknowledged = how;
  }
  if (record.acknowledged == Acknowledged::No) reader.bad();
}

}  // namespace

nlohmann::ordered_json state_json(const DeviceRecord& record, bool departed) {
  Json json;
  json["source"] = record.key.source == DeviceKey::Source::Dra ? "dra" : "plugin";
  json["scope"] = record.key.scope;
  json["place"] = record.key.place;
  json["device"] = record.key.device;
  put(json, "departed", departed);
  put(json, "identity", record.identity);
  put(json, "identityAttribute", record.identity_attribute);
  put(json, "policy", record.policy);
  json["incidents"] = record.incidents;
  // Two digits say enough, and the same value always makes the same text.
  json["penalty"] = std::round(record.penalty * 100) / 100;
  json["penaltyAt"] = format_rfc3339(record.penalty_at);
  put(json, "quarantined", record.quarantined);
  put(json, "acknowledged", std::string(word_of(record.acknowledged)));
  put(json, "open", record.open);
  // What does not know of taints as a signal takes one for a claim's word, which waits for no report either.
  put(json, "byClaim", is_drivers_own(record.source));
  put(json, "byTaint", record.source == SignalSource::Taint);
  put(json, "taintKey", record.taint_key);
  if (record.open) {
    json["since"] = format_rfc3339(record.since);
    json["openedAt"] = format_rfc3339(record.opened_at);
    json["calledBadAt"] = format_rfc3339(record.called_bad_at);
    put(json, "reporter", record.reporter);
    put(json, "reporterSince", record.reporter_since);
    put(json, "reporterStart", record.reporter_start);
    put(json, "calledHealthyAt", record.called_healthy_at);
    put(json, "bootID", record.boot_id);
    put(json, "bootedAt", record.booted_at);
    put(json, "quietSince", record.quiet_since);
    put(json, "absentSince", record.absent_since);
    put(json, "driverTainted", record.driver_tainted);
    put(json, "driverUntaintedAt", record.driver_untainted_at);
  }
  put(json, "nodeTainted", record.node_tainted);
  put(json, "untainting", record.untainting);
  put(json, "nodeUID", record.node_uid);
  put(json, "hostUID", record.host_uid);
  if (record.host) json["host"] = record.host->empty() ? std::string(kNoNode) : *record.host;
  put(json, "wasTainted", record.was_tainted);
  put(json, "rule", record.rule_uid);
  put(json, "removing", record.is_removing());
  put(json, "closedAt", record.closed_at);
  put(json, "closedBecause", record.closed_because);
  put(json, "probationUntil", record.probation_until);
  Json history = Json::array();
  for (const auto& incident : record.history) {
    history.push_back({{"at", format_rfc3339(incident.at)}, {"reason", incident.reason}});
  }
  json["history"] = std::move(history);
  for (const auto& loss : record.losses) {
    json["lostBy"].push_back({{"owner", loss.owner_uid}, {"at", format_rfc3339(loss.at)}, {"holders", loss.holders}});
  }
  return json;
}

std::optional<DeviceRecord> read_state_record(const nlohmann::ordered_json& json, bool& departed) {
  if (!json.is_object()) return std::nullopt;
  DeviceRecord record;
  Reader reader(json);
  std::string source;
  reader.text("source", source);
  reader.name("scope", record.key.scope);
  reader.name("place", record.key.place);
  reader.name("device", record.key.device);
  record.key.source = source == "plugin" ? DeviceKey::Source::Plugin : DeviceKey::Source::Dra;
  reader.flag("departed", departed);
  reader.name("identity", record.identity);
  reader.name("identityAttribute", record.identity_attribute);
  reader.name("policy", record.policy);
  reader.count("incidents", record.incidents);
  reader.amount("penalty", record.penalty);
  reader.time("penaltyAt", record.penalty_at);
  reader.flag("quarantined", record.quarantined);
  read_acknowledged(record, reader);
  reader.flag("open", record.open);
  bool by_driver = false;
  bool by_taint = false;
  reader.flag("byClaim", by_driver);
  reader.flag("byTaint", by_taint);
  if (by_driver) record.source = by_taint ? SignalSource::Taint : SignalSource::Claim;
  reader.text("taintKey", record.taint_key);
  reader.time("since", record.since);
  reader.time("openedAt", record.opened_at);
  record.called_bad_at = record.opened_at;  // a version before this one does not say
  reader.time("calledBadAt", record.called_bad_at);
  reader.text("reporter", record.reporter);
  reader.time("reporterSince", record.reporter_since);
  reader.time("reporterStart", record.reporter_start);
  reader.time("calledHealthyAt", record.called_healthy_at);
  reader.name("bootID", record.boot_id);
  reader.time("bootedAt", record.booted_at);
  reader.time("quietSince", record.quiet_since);
  reader.time("absentSince", record.absent_since);
  reader.flag("driverTainted", record.driver_tainted);
  reader.time("driverUntaintedAt", record.driver_untainted_at);
  reader.flag("nodeTainted", record.node_tainted);
  reader.flag("untainting", record.untainting);
  reader.name("nodeUID", record.node_uid);
  reader.name("hostUID", record.host_uid);
  read_host(record, reader);
  reader.flag("wasTainted", record.was_tainted);
  reader.name("rule", record.rule_uid);
  reader.flag("removing", record.removing);
  reader.time("closedAt", record.closed_at);
  reader.text("closedBecause", record.closed_because);
  reader.time("probationUntil", record.probation_until);
  read_entries(json, "history", reader, record.history, read_incident);
  read_entries(json, "lostBy", reader, record.losses, read_loss);
  const bool named = (source == "dra" || source == "plugin") && !record.key.scope.empty() &&
                     !record.key.place.empty() && !record.key.device.empty() && (!departed || !record.identity.empty());
  const bool timed = !record.open || (json.contains("since") && json.contains("openedAt"));
  if (!reader.good() || !named || !timed) return std::nullopt;
  return record;
}

}  // namespace dhc
