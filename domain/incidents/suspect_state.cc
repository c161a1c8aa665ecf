#include "domain/incidents/suspect_state.h"

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/json_read.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "base/rfc3339.h"
#include "domain/contract/ground_names.h"

namespace dhc {

namespace {
using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestSuspectName = 1024;
constexpr std::size_t kLongestEvidence = 1024;
/// Where there is no room for all of it.
constexpr std::size_t kShortEvidence = 160;
/// Of one incident: who shares a device, and who held it before.
constexpr std::size_t kMostSuspects = 16;
constexpr std::int64_t kMostWell = 1'000'000;

Json shares_json(const std::map<std::string, OwnerShare>& shares) {
  Json json = Json::object();
  for (const auto& [who, share] : shares) {
    if (json.size() < kMostSuspects) json[who] = {share.scope, share.node};
  }
  return json;
}

Json grounds_json(const std::map<std::string, GroundShare>& grounds) {
  Json json = Json::object();
  for (const auto& [name, share] : grounds) {
    if (json.size() < kMostSuspects) json[name] = {share.scope, share.workload, share.image};
  }
  return json;
}

Json onset_json(const DeviceOnset& onset) {
  Json json = {{"source", onset.card.source == DeviceKey::Source::Dra ? "dra" : "plugin"},
               {"scope", onset.card.scope},
               {"place", onset.card.place},
               {"device", onset.card.device},
               {"node", onset.node},
               {"at", format_rfc3339(onset.at)},
               {"since", format_rfc3339(onset.since)},
               {"well", onset.well},
               {"workloads", shares_json(onset.workloads)}};
  if (onset.named_at != onset.at) json["namedAt"] = format_rfc3339(onset.named_at);
  if (!onset.images.empty()) json["images"] = shares_json(onset.images);
  if (onset.excused) json["excused"] = true;
  return json;
}

Json suspicion_json(const std::pair<const OwnerInScope, Suspicion>& entry, std::size_t longest_evidence) {
  const auto& [who, suspicion] = entry;
  Json json = {{"workload", who.first},
               {"scope", who.second},
               {"since", format_rfc3339(suspicion.since)},
               {"evidence", printable_cut(suspicion.evidence, longest_evidence)}};
  if (suspicion.clean_since) json["cleanSince"] = format_rfc3339(*suspicion.clean_since);
  return json;
}

std::optional<std::string> suspect_text(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string()) return std::nullopt;
  auto text = found->get<std::string>();
  return text.size() <= kLongestSuspectName ? std::optional(std::move(text)) : std::nullopt;
}

std::optional<WallTime> suspect_time(const Json& json, const char* key) {
  const auto text = suspect_text(json, key);
  return text ? parse_rfc3339(*text) : std::nullopt;
}

bool is_share_list(const Json& json, std::size_t length) {
  const auto is_share = [](const Json& one) {
    return one.is_number() && one.get<double>() > 0 && one.get<double>() <= 1;
  };
  return json.is_array() && json.size() == length && std::ranges::all_of(json, is_share);
}

/// False: it is not what `shares_json` made.
bool read_shares(const Json& json, std::map<std::string, OwnerShare>& shares) {
  if (!json.is_object()) return false;
  for (const auto& [who, share] : json.items()) {
    if (!is_share_list(share, 2) || who.empty() || who.size() > kLongestSuspectName) return false;
    shares.emplace(who, OwnerShare{.scope = share[0].get<double>(), .node = share[1].get<double>()});
    if (shares.size() == kMostSuspects) break;
  }
  return true;
}

/// Likewise; a name that is none of them would be somebody else's.
bool read_grounds(const Json& json, std::map<std::string, GroundShare>& grounds) {
  if (!json.is_object()) return false;
  for (const auto& [name, share] : json.items()) {
    if (!is_share_list(share, 3) || !is_ground_name(name) || name.size() > kLongestSuspectName) return false;
    grounds.emplace(name, GroundShare{.scope = share[0].get<double>(),
                                      .workload = share[1].get<double>(),
                                      .image = share[2].get<double>()});
    if (grounds.size() == kMostSuspects) break;
  }
  return true;
}

std::optional<DeviceOnset> read_onset(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  const auto source = suspect_text(json, "source");
  auto scope = suspect_text(json, "scope");
  auto place = suspect_text(json, "place");
  auto device = suspect_text(json, "device");
  auto node = suspect_text(json, "node");
  const auto at = suspect_time(json, "at");
  const auto since = suspect_time(json, "since");
  const auto well = json.find("well");
  const auto workloads = json.find("workloads");
  const bool is_known = source && (*source == "dra" || *source == "plugin");
  if (!is_known || !scope || !place || !device || !node || !at || !since || well == json.end() ||
      !well->is_number_unsigned() || workloads == json.end()) {
    return std::nullopt;
  }
  DeviceOnset onset{.card = {.source = *source == "dra" ? DeviceKey::Source::Dra : DeviceKey::Source::Plugin,
                             .scope = *std::move(scope),
                             .place = *std::move(place),
                             .device = *std::move(device)},
                    .node = *std::move(node),
                    .at = *at,
                    .named_at = suspect_time(json, "namedAt").value_or(*at),
                    .since = *since,
                    .well = std::min<std::int64_t>(well->get<std::int64_t>(), kMostWell),
                    .workloads = {},
                    .images = {},
                    .excused = json.contains("excused") && json["excused"] == true};
  if (!read_shares(*workloads, onset.workloads)) return std::nullopt;
  const auto images = json.find("images");
  if (images != json.end() && !read_shares(*images, onset.images)) return std::nullopt;
  return onset;
}

void read_suspicion(const Json& json, bool is_ground, std::map<OwnerInScope, Suspicion>& suspicions) {
  if (!json.is_object()) return;
  auto workload = suspect_text(json, "workload");
  auto scope = suspect_text(json, "scope");
  const auto since = suspect_time(json, "since");
  const auto evidence = suspect_text(json, "evidence");
  if (!workload || workload->empty() || is_ground_name(*workload) != is_ground || !scope || !since || !evidence) return;
  suspicions.insert_or_assign({*std::move(workload), *std::move(scope)},
                              Suspicion{.since = *since,
                                        .clean_since = suspect_time(json, "cleanSince"),
                                        .evidence = printable_cut(*evidence, kLongestEvidence)});
}

using Suspected = std::vector<const std::pair<const OwnerInScope, Suspicion>*>;

/// Nodes and releases, or all others; those that hold a bad device first.
Suspected newest_first(const Suspects& suspects, bool are_grounds) {
  Suspected newest;
  for (const auto& entry : suspects.suspicions()) {
    if (is_ground_name(entry.first.first) == are_grounds) newest.push_back(&entry);
  }
  std::ranges::sort(newest, [](const auto* a, const auto* b) {
    return std::tuple(a->second.clean_since.has_value(), b->second.since, a->first) <
           std::tuple(b->second.clean_since.has_value(), a->second.since, b->first);
  });
  return newest;
}

}  // namespace

std::string suspect_state_text(const Suspects& suspects, std::size_t limit) {
  if (suspects.onsets().empty() && suspects.suspicions().empty()) return {};
  const std::string_view between = R"(],"incidents":[)";
  const std::string_view between_grounds = R"(],"grounds":[)";
  const std::string_view between_shares = R"(],"at":[)";  // of each incident, in their order
  std::string text = R"({"suspicions":[)";
  const auto put = [&](const std::string& piece, std::size_t most) {
    const bool is_first = text.back() == '[';
    if (text.size() + piece.size() + 1 > most) return false;
    text += (is_first ? "" : ",") + piece;
    return true;
  };
  // Who is suspected is what holds evictions; why, in full, is for people.
  const auto room = limit - std::min(limit, between.size() + between_grounds.size() + between_shares.size() + 2);
  const auto most = room - room / 4;
  const auto most_onsets = limit - std::min(limit, between_grounds.size() + between_shares.size() + 2);
  const auto put_all = [&](const Suspected& all, std::size_t up_to) {
    for (const auto longest : {kLongestEvidence, kShortEvidence}) {
      const auto begin = text.size();
      const bool fits = std::ranges::all_of(
          all, [&](const auto* entry) { return put(json_text(suspicion_json(*entry, longest)), up_to); });
      if (fits || longest == kShortEvidence) break;
      text.resize(begin);
    }
  };
  put_all(newest_first(suspects, false), most);
  text += between;
  std::size_t written = 0;
  for (const auto& onset : std::views::reverse(suspects.onsets())) {
    if (!put(json_text(onset_json(onset)), most_onsets)) break;
    ++written;
  }
  // Nodes and releases get what room is left: nothing rests on them. Under the name of the others an earlier version
  // would take a node for a workload.
  text += between_grounds;
  put_all(newest_first(suspects, true), most_onsets);
  text += between_shares;
  for (const auto& onset : std::views::reverse(suspects.onsets()) | std::views::take(written)) {
    if (!put(json_text(grounds_json(onset.grounds)), limit - 2)) break;
  }
  text += "]}";
  return text.size() <= limit ? text : std::string();
}

Suspects parse_suspect_state(std::string_view text) {
  Suspects suspects;
  const Json json = read_json<Json>(text);
  if (!json.is_object()) return suspects;
  std::vector<DeviceOnset> onsets;
  std::map<OwnerInScope, Suspicion> suspicions;
  if (const auto list = json.find("incidents"); list != json.end() && list->is_array()) {
    const auto at = json.find("at");
    const bool has_grounds = at != json.end() && at->is_array();
    for (std::size_t i = 0; i < list->size(); ++i) {
      auto onset = read_onset((*list)[i]);
      if (!onset) continue;
      const bool is_read = has_grounds && i < at->size() && read_grounds((*at)[i], onset->grounds);
      if (!is_read) onset->grounds.clear();
      onsets.push_back(*std::move(onset));
    }
  }
  for (const auto* key : {"suspicions", "grounds"}) {
    const auto list = json.find(key);
    if (list == json.end() || !list->is_array()) continue;
    for (const auto& item : *list) read_suspicion(item, key == std::string_view("grounds"), suspicions);
  }
  suspects.load(std::move(onsets), std::move(suspicions));
  return suspects;
}

}  // namespace dhc
