#include "domain/incidents/brake_state.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/json_read.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "base/rfc3339.h"

namespace dhc {

namespace {
using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestBrakeName = 1024;
constexpr std::size_t kLongestBrakeText = 300;
constexpr const char* kNarrowName = "of";
constexpr std::int64_t kMostTrials = 1000;
constexpr std::int64_t kMostUnnamed = 10'000'000;

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

using Unheld = std::pair<const DeviceKey, BadDevice>;

bool is_narrow_scope(const BrakeScope& scope) { return !scope.words.empty() || !scope.workload.empty(); }

/// Among the devices of a brake: what they have in common with it is not said again.
Json json_of(const BrakeScope& scope, const Unheld& unheld) {
  const auto& [key, bad] = unheld;
  Json json = {{"source", to_string(key.source)}};
  if (bad.node != scope.node) json["node"] = bad.node;
  if (key.place != bad.node) json["place"] = key.place;
  json["device"] = key.device;
  if (bad.card != key.device) json["card"] = bad.card;
  if (!bad.words.empty()) json["words"] = bad.words;
  if (!bad.workload.empty()) json["workload"] = bad.workload;
  json["onset"] = format_rfc3339(bad.onset.wall);
  json["began"] = format_rfc3339(bad.began);
  if (bad.out) json["out"] = true;
  return json;
}

Json json_of(const BrakeScope& scope, const EngagedBrake& brake) {
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
  return json;
}

/// What is written of one brake.
struct BrakeEntry {
  using Cards = std::set<std::pair<std::string_view, std::string_view>>;
  Json json;
  Cards named = {};
  Cards unnamed = {};
};

/// The brakes that are written, each with those of its bad devices that nobody holds: no pod will speak of them after a
/// restart.
class BrakeText {
 public:
  BrakeText(const Brake& brake, std::size_t limit) : brake_(brake), room_(limit) {
    if (brake.engaged().empty()) return;
    for (const auto& entry : brake.bad()) {
      if (entry.second.unheld_since) unheld_.push_back(&entry);
    }
    add_brakes();
    add_unheld();
  }

  [[nodiscard]] std::string text() {
    Json list = Json::array();
    for (const auto* scope : order_) {
      auto& entry = entries_.at(*scope);
      for (const auto& card : entry.named) entry.unnamed.erase(card);
      const auto unnamed = std::ssize(entry.unnamed) + brake_.unnamed(*scope);
      if (unnamed > 0) entry.json["unnamed"] = unnamed;
      list.push_back(std::move(entry.json));
    }
    return list.empty() ? std::string() : json_text(list);
  }

 private:
  using Entries = std::map<BrakeScope, BrakeEntry>;
  static constexpr std::size_t kAround = std::string_view(R"(,"unheld":[],"unnamed":12345678)").size();

  /// About so much: most names need no escapes, and each is measured when it is added.
  [[nodiscard]] std::size_t names_size() const {
    static constexpr std::string_view kFixed =
        R"({"source":"plugin","node":"","device":"","onset":"2026-11-20T12:00:00.000000Z","began":"2026-11-20T12:00:00.000000Z"},)";
    std::size_t size = 0;
    for (const auto* unheld : unheld_) {
      const auto& [key, bad] = *unheld;
      size += kFixed.size() + bad.node.size() + key.device.size() + bad.words.size() + bad.workload.size();
    }
    return size;
  }

  /// The cluster's first; those of nodes leave room for names, up to half of all.
  void add_brakes() {
    const auto names = names_size();
    const auto for_names = std::min(names, room_ / 2);
    for (const bool of_nodes : {false, true}) {
      for (const auto& [scope, engaged] : brake_.engaged()) {
        if (scope.node.empty() == of_nodes) continue;
        auto json = json_of(scope, engaged);
        const auto size = json_text(json).size() + 1 + kAround;
        if (size + (of_nodes ? for_names : 0) > room_) continue;
        room_ -= size;
        order_.push_back(&entries_.emplace(scope, BrakeEntry{.json = std::move(json)}).first->first);
      }
    }
    stride_ = names <= room_ || room_ == 0 ? 1 : names / room_ + 1;
  }

  /// Where there is no room for all every second has its name, or every third, and the first of each driver or
  /// resource.
  void add_unheld() {
    std::string_view scope;
    for (std::size_t i = 0; i < unheld_.size(); ++i) {
      const bool is_first = std::exchange(scope, unheld_[i]->first.scope) != unheld_[i]->first.scope;
      add(*unheld_[i], is_first || i % stride_ == 0);
    }
  }

  /// Once by its name: whoever reads it counts it in each brake that it belongs to.
  void add(const Unheld& unheld, bool by_name) {
    std::vector<Entries::iterator> covering;
    for (const auto& scope : scopes_of(unheld.first, unheld.second)) {
      if (const auto found = entries_.find(scope); found != entries_.end()) covering.push_back(found);
    }
    if (covering.empty()) return;
    by_name = by_name && put_name(covering.front(), unheld);
    for (const auto& entry : covering)
      (by_name ? entry->second.named : entry->second.unnamed).emplace(unheld.first.place, unheld.second.card);
  }

  /// False: there is no room for it.
  bool put_name(Entries::iterator entry, const Unheld& unheld) {
    auto json = json_of(entry->first, unheld);
    const auto size = json_text(json).size() + 1;
    if (size > room_) return false;
    room_ -= size;
    entry->second.json["unheld"].push_back(std::move(json));
    return true;
  }

  const Brake& brake_;
  std::size_t room_;
  std::size_t stride_ = 1;
  std::vector<const Unheld*> unheld_;
  Entries entries_;
  std::vector<const BrakeScope*> order_;
};

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
  std::int64_t count(const char* key, std::int64_t most) {
    const auto* value = find(key);
    if (value == nullptr) return 0;
    good_ = good_ && value->is_number_integer() && *value >= 0 && *value <= most;
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
  /// What is not said is this.
  DeviceKey key(const std::string& scope = {}, const std::string& place = {}) {
    const auto source = parse_source(name("source", true));
    DeviceKey key{.source = source.value_or(DeviceKey::Source::Dra),
                  .scope = name("scope", scope.empty()),
                  .place = name("place", place.empty()),
                  .device = name("device", true)};
    if (key.scope.empty()) key.scope = scope;
    if (key.place.empty()) key.place = place;
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

void read_unheld(const Json& list, const BrakeScope& scope, const Now& now, BrakeMemory& state) {
  if (!list.is_array()) return;
  for (const auto& item : list) {
    Members part(item);
    auto node = part.name("node");
    if (node.empty()) node = scope.node;
    const auto key = part.key(scope.scope, node);
    const auto onset = part.time("onset", now, true);
    const auto began = part.time("began", now, true);
    BadDevice bad;
    bad.node = std::move(node);
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

void read_brake(const Json& json, const Now& now, BrakeMemory& state) {
  Members part(json);
  const bool is_narrow = part.find(kNarrowName) != nullptr;
  const BrakeScope scope{.scope = part.name(is_narrow ? kNarrowName : "scope", true),
                         .node = part.name("node"),
                         .nodes = part.flag("nodes"),
                         .words = part.name("words"),
                         .workload = part.name("workload")};
  const auto since = part.time("since", now, true);
  EngagedBrake brake;
  brake.trials = part.count("trials", kMostTrials);
  brake.last_trial = printable_cut(part.name("lastTrial"), kLongestBrakeText);
  const auto waits_from = part.time("waitsFrom", now);
  const auto unnamed = part.count("unnamed", kMostUnnamed);
  if (!part.good() || !since || scope.scope.empty() || is_narrow != is_narrow_scope(scope)) return;
  brake.since = *since;
  brake.waits_from = waits_from.value_or(*since);
  if (const auto* trial = part.find("trial")) brake.trial = read_trial(*trial, now);
  if (const auto* unheld = part.find("unheld")) read_unheld(*unheld, scope, now, state);
  if (unnamed > 0) state.unnamed.emplace(scope, unnamed);
  state.engaged.emplace(scope, std::move(brake));
}

}  // namespace

std::string brake_state_text(const Brake& brake, std::size_t limit) {
  constexpr std::size_t kBrackets = 2;
  return limit < kBrackets ? std::string() : BrakeText(brake, limit - kBrackets).text();
}

BrakeMemory parse_brake_state(std::string_view text, const Now& now) {
  BrakeMemory state;
  const Json json = read_json<Json>(text);
  if (!json.is_array()) return state;
  for (const auto& item : json) read_brake(item, now, state);
  return state;
}

}  // namespace dhc
