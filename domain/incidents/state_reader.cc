#include "domain/incidents/state_reader.h"

#include "base/printable.h"
#include "base/rfc3339.h"
#include "domain/incidents/state_record.h"

namespace dhc {

namespace {
constexpr std::size_t kLongestStateText = 300;
/// As long as the API's names are let in.
constexpr std::size_t kLongestStateName = 1024;
constexpr std::int64_t kMostIncidents = 1'000'000;
}  // namespace

void StateReader::text(const char* key, std::string& out) {
  const auto* value = find(key, nlohmann::ordered_json::value_t::string);
  if (value != nullptr) out = printable_cut(value->get<std::string>(), kLongestStateText);
}

void StateReader::name(const char* key, SharedText& out) {
  std::string read = out;
  name(key, read);
  out = read;
}

void StateReader::name(const char* key, std::string& out) {
  const auto* value = find(key, nlohmann::ordered_json::value_t::string);
  if (value == nullptr) return;
  out = value->get<std::string>();
  good_ = good_ && out.size() <= kLongestStateName;
}

void StateReader::names(const char* key, std::vector<std::string>& out) {
  const auto* list = find(key, nlohmann::ordered_json::value_t::array);
  if (list == nullptr) return;
  for (const auto& item : *list) {
    good_ = good_ && item.is_string() && out.size() < kMostEntries &&
            item.get_ref<const std::string&>().size() <= kLongestStateName;
    if (!good_) return;
    out.push_back(item.get<std::string>());
  }
}

void StateReader::flag(const char* key, bool& out) {
  if (const auto* value = find(key, nlohmann::ordered_json::value_t::boolean)) out = value->get<bool>();
}

void StateReader::time(const char* key, WallTime& out) {
  std::string said;
  text(key, said);
  if (said.empty()) return;
  if (const auto at = parse_rfc3339(said)) {
    out = *at;
  } else {
    good_ = false;
  }
}

void StateReader::time(const char* key, std::optional<WallTime>& out) {
  if (has(key)) time(key, out.emplace());
}

void StateReader::count(const char* key, std::int64_t& out) {
  const auto found = json_.find(key);
  if (found == json_.end()) return;
  good_ = good_ && found->is_number_integer() && *found >= 0 && *found <= kMostIncidents;
  if (good_) out = found->get<std::int64_t>();
}

void StateReader::amount(const char* key, double& out) {
  const auto found = json_.find(key);
  if (found == json_.end()) return;
  good_ = good_ && found->is_number() && *found >= 0 && *found <= 1e6;
  if (good_) out = found->get<double>();
}

const nlohmann::ordered_json* StateReader::object(const char* key) {
  return find(key, nlohmann::ordered_json::value_t::object);
}

const nlohmann::ordered_json* StateReader::find(const char* key, nlohmann::ordered_json::value_t type) {
  const auto found = json_.find(key);
  if (found == json_.end()) return nullptr;
  if (found->type() == type) return &*found;
  good_ = false;
  return nullptr;
}

PastIncident read_past_incident(StateReader& part) {
  PastIncident incident;
  part.time("at", incident.at);
  part.text("reason", incident.reason);
  part.flag("withoutPenalty", incident.without_penalty);
  return incident;
}

OwnerLoss read_loss(StateReader& part) {
  OwnerLoss loss;
  part.name("owner", loss.owner_uid);
  part.time("at", loss.at);
  part.names("holders", loss.holders);
  return loss;
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

Acknowledged read_acknowledged(StateReader& reader) {
  std::string word;
  reader.text("acknowledged", word);
  if (word.empty()) return Acknowledged::No;
  for (const auto how : {Acknowledged::Removed, Acknowledged::Changed, Acknowledged::Annotated}) {
    if (word_of(how) == word) return how;
  }
  reader.bad();
  return Acknowledged::No;
}

void read_host(CardIdentity& card, StateReader& reader) {
  std::string host;
  reader.name("host", host);
  if (!host.empty()) card.host = host == kNoNode ? std::string() : std::move(host);
}

DeviceKey read_key(StateReader& reader) {
  std::string source;
  DeviceKey key;
  reader.text("source", source);
  reader.name("scope", key.scope);
  reader.name("place", key.place);
  reader.name("device", key.device);
  const auto kind = parse_source(source);
  key.source = kind.value_or(DeviceKey::Source::Dra);
  if (!kind || !is_whole(key)) reader.bad();
  return key;
}

}  // namespace dhc
