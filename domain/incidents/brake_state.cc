#include "domain/incidents/brake_state.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/printable.h"
#include "base/rfc3339.h"

namespace dhc {

namespace {
using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestBrakeName = 1024;
constexpr std::size_t kLongestBrakeText = 300;
constexpr std::size_t kUnheldOfOne = 64;
constexpr const char* kNarrowName = "of";
constexpr std::int64_t kMostTrials = 1000;

Json json_of(const DeviceKey& key) {
  return {{"source", to_string(key.source)}, {"scope", key.scope}, {"place", key.place}, {"device", key.device}};
}

Json json_of(const BrakeTrial& trial) {
  Json json = json_of(trial.key);
  json["namespace"] = trial.ns;
  json["pod"] = trial.pod;
  json["podUID"] = trial.pod_uid;
  json["ownerUID"] = trial.owner_uid;
  if (trial.owner_is_watched) json["ownerIsWatched"] = true;
  json["chosenAt"] = format_rfc3339(trial.chosen.wall);
  if (trial.evicted) {
    // By our clock, and by the server's.
    json["evictedAt"] = format_rfc3339(trial.chosen.wall + (trial.evicted->mono - trial.chosen.mono));
    json["laterThan"] = format_rfc3339(trial.evicted->wall);
  }
  return json;
}

Json json_of(const DeviceKey& key, const BadDevice& bad) {
  Json json = json_of(key);
  if (bad.card != key.device) json["card"] = bad.card;
  if (!bad.words.empty()) json["words"] = bad.words;
  if (!bad.workload.empty()) json["workload"] = bad.workload;
  json["onset"] = format_rfc3339(bad.onset.wall);
  json["began"] = format_rfc3339(bad.began);
  if (bad.out) json["out"] = true;
  return json;
}

using Unheld = std::map<BrakeScope, std::vector<const std::pair<const DeviceKey, BadDevice>*>>;

/// Bad devices that nobody holds, by what engaged brakes cover: no pod will speak of them after a restart. The
/// cluster's brake has those of its nodes' own brakes.
Unheld unheld_of(const Brake& brake) {
  Unheld unheld;
  for (const auto& entry : brake.bad()) {
    const auto& [key, bad] = entry;
    if (!bad.unheld_since) continue;
    unheld[{.scope = key.scope, .node = bad.node}].push_back(&entry);
    if (!bad.words.empty()) unheld[{.scope = key.scope, .node = {}, .words = bad.words}].push_back(&entry);
    if (!bad.workload.empty()) unheld[{.scope = key.scope, .node = {}, .workload = bad.workload}].push_back(&entry);
  }
  return unheld;
}

bool is_narrow_scope(const BrakeScope& scope) { return !scope.words.empty() || !scope.workload.empty(); }

std::string text_of(const BrakeScope& scope, const EngagedBrake& brake, const Unheld& unheld) {
  Json json;
  // A version that does not know narrow brakes must not take one for the cluster's.
  json[is_narrow_scope(scope) ? kNarrowName : "scope"] = scope.scope;
  if (!scope.node.empty()) json["node"] = scope.node;
  if (!scope.words.empty()) json["words"] = scope.words;
  if (!scope.workload.empty()) json["workload"] = scope.workload;
  if (scope.nodes) json["nodes"] = true;
  json["since"] = format_rfc3339(brake.since.wall);
  if (brake.waits_from != brake.since) json["waitsFrom"] = format_rfc3339(brake.waits_from.wall);
  if (brake.trials > 0) json["trials"] = brake.trials;
  if (!brake.last_trial.empty()) json["lastTrial"] = printable_cut(brake.last_trial, kLongestBrakeText);
  if (brake.trial) json["trial"] = json_of(*brake.trial);
  const auto found = unheld.find(scope);
  if (found != unheld.end()) {
    for (std::size_t i = 0; i < std::min(found->second.size(), kUnheldOfOne); ++i) {
      auto device = json_of(found->second[i]->first, found->second[i]->second);
      if (is_narrow_scope(scope)) device["node"] = found->second[i]->second.node;
      json["unheld"].push_back(std::move(device));
    }
  }
  return json_text(json);
}

/// Members of one JSON object; a wrong one makes all of it bad.
class Members {
 public:
  explicit Members(const Json& json) : json_(json), good_(json.is_object()) {}

  std::string name(const char* key, bool required = false) {
    const auto* value = find(key);
    if (value == nullptr) {
      good_ = good_ && !required;
      return {};
    }
    good_ = good_ && value->is_string() && value->get_ref<const std::string&>().size() <= kLongestBrakeName;
    return good_ ? value->get<std::string>() : std::string();
  }
  [[nodiscard]] bool flag(const char* key) const {
    const auto* value = find(key);
    return value != nullptr && value->is_boolean() && value->get<bool>();
  }
  std::int64_t count(const char* key) {
    const auto* value = find(key);
    if (value == nullptr) return 0;
    good_ = good_ && value->is_number_integer() && *value >= 0 && *value <= kMostTrials;
    return good_ ? value->get<std::int64_t>() : 0;
  }
  std::optional<Moment> time(const char* key, const Now& now, bool required = false) {
    const auto said = name(key, required);
    if (said.empty()) return std::nullopt;
    const auto at = parse_rfc3339(said);
    good_ = good_ && at.has_value();
    return at ? std::optional(moment_of(*at, now)) : std::nullopt;
  }
  /// As above, by the API server's clock, which may be ahead.
  std::optional<WallTime> server_time(const char* key) {
    const auto said = name(key);
    const auto at = said.empty() ? std::nullopt : parse_rfc3339(said);
    good_ = good_ && (said.empty() || at.has_value());
    return at;
  }
  DeviceKey key() {
    const auto source = parse_source(name("source", true));
    DeviceKey key{.source = source.value_or(DeviceKey::Source::Dra),
                  .scope = name("scope", true),
                  .place = name("place", true),
                  .device = name("device", true)};
    good_ = good_ && source && key.is_device();
    return key;
  }
  [[nodiscard]] const Json* find(const char* key) const {
    if (!good_) return nullptr;
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }
  [[nodiscard]] bool good() const { return good_; }

 private:
  const Json& json_;
  bool good_;
};

std::optional<BrakeTrial> read_trial(const Json& json, const Now& now) {
  Members part(json);
  BrakeTrial trial;
  trial.key = part.key();
  trial.ns = printable_cut(part.name("namespace"), kLongestBrakeText);
  trial.pod = printable_cut(part.name("pod"), kLongestBrakeText);
  trial.pod_uid = part.name("podUID", true);
  trial.owner_uid = part.name("ownerUID", true);
  trial.owner_is_watched = part.flag("ownerIsWatched");
  trial.chosen = part.time("chosenAt", now, true).value_or(moment_of(now));
  trial.evicted = part.time("evictedAt", now);
  // A version that did not write it had the server's time in the other.
  if (trial.evicted) trial.evicted->wall = part.server_time("laterThan").value_or(trial.evicted->wall);
  trial.is_written = true;
  return part.good() ? std::optional(std::move(trial)) : std::nullopt;
}

void read_unheld(const Json& list, const std::string& node, const Now& now, BrakeState& state) {
  if (!list.is_array()) return;
  for (const auto& item : list) {
    Members part(item);
    const auto key = part.key();
    const auto onset = part.time("onset", now, true);
    const auto began = part.time("began", now, true);
    BadDevice bad;
    bad.node = node.empty() ? part.name("node") : node;
    bad.words = part.name("words");
    bad.workload = part.name("workload");
    bad.card = part.name("card");
    if (bad.card.empty()) bad.card = key.device;
    bad.out = part.flag("out");
    bad.unheld_since = now.mono;
    if (!part.good() || !onset || !began) continue;
    bad.onset = *onset;
    bad.began = began->wall;
    state.unheld.emplace(key, std::move(bad));
  }
}

void read_brake(const Json& json, const Now& now, BrakeState& state) {
  Members part(json);
  const bool is_narrow = part.find(kNarrowName) != nullptr;
  const BrakeScope scope{.scope = part.name(is_narrow ? kNarrowName : "scope", true),
                         .node = part.name("node"),
                         .nodes = part.flag("nodes"),
                         .words = part.name("words"),
                         .workload = part.name("workload")};
  const auto since = part.time("since", now, true);
  EngagedBrake brake;
  brake.trials = part.count("trials");
  brake.last_trial = printable_cut(part.name("lastTrial"), kLongestBrakeText);
  const auto waits_from = part.time("waitsFrom", now);
  if (!part.good() || !since || scope.scope.empty() || is_narrow != is_narrow_scope(scope)) return;
  brake.since = *since;
  brake.waits_from = waits_from.value_or(*since);
  if (const auto* trial = part.find("trial")) brake.trial = read_trial(*trial, now);
  if (const auto* unheld = part.find("unheld")) read_unheld(*unheld, scope.node, now, state);
  state.engaged.emplace(scope, std::move(brake));
}

}  // namespace

std::string brake_state_text(const Brake& brake, std::size_t limit) {
  std::vector<const HeldScope*> order;
  for (const bool of_nodes : {false, true}) {
    for (const auto& entry : brake.engaged()) {
      if (entry.first.node.empty() != of_nodes) order.push_back(&entry);
    }
  }
  const auto unheld = unheld_of(brake);
  std::string text;
  for (const auto* entry : order) {
    const auto piece = text_of(entry->first, entry->second, unheld);
    if (text.size() + piece.size() + 3 > limit) continue;
    text += (text.empty() ? "[" : ",") + piece;
  }
  return text.empty() ? text : text + "]";
}

BrakeState parse_brake_state(std::string_view text, const Now& now) {
  BrakeState state;
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_array()) return state;
  for (const auto& item : json) read_brake(item, now, state);
  return state;
}

}  // namespace dhc
