#include "domain/incidents/state_text.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_read.h"
#include "base/json_text.h"
#include "domain/incidents/earlier_record.h"
#include "domain/incidents/state_caps.h"
#include "domain/incidents/state_record.h"

namespace dhc {

namespace {
using Json = nlohmann::ordered_json;

constexpr std::uint64_t kVersion = 2;
/// What 0.1.0 wrote.
constexpr std::uint64_t kEarlierVersion = 1;

/// What must be kept rather than what: the cluster tells of our taints again, and of nothing that people have said.
enum class Keep : std::uint8_t { History, Marked, Open, Quarantined, Acknowledged };

Keep keep_of(const DeviceRecord& record) {
  if (record.is_open() && record.is_acknowledged()) return Keep::Acknowledged;
  if (record.is_quarantined()) return Keep::Quarantined;
  if (record.ours.any()) return Keep::Marked;
  return record.is_open() ? Keep::Open : Keep::History;
}

struct Piece {
  Keep keep;
  double penalty;
  WallTime at;
  std::string text;
};

/// Those that there is room for, in their order: what is left out is lighter, or older, than each that stays.
std::vector<const Piece*> fitting(const std::vector<Piece>& pieces, std::size_t room) {
  std::vector<const Piece*> kept;
  std::size_t size = 0;
  for (const auto& piece : pieces) {
    kept.push_back(&piece);
    size += piece.text.size() + 1;
  }
  if (size <= room) return kept;
  std::ranges::sort(kept, [](const Piece* a, const Piece* b) {
    return std::tie(a->keep, a->penalty, a->at, a->text) > std::tie(b->keep, b->penalty, b->at, b->text);
  });
  size = 0;
  const auto end = std::ranges::find_if(kept, [&](const Piece* piece) {
    size += piece->text.size() + 1;
    return size > room;
  });
  kept.erase(end, kept.end());
  std::ranges::sort(kept);  // by their place in `pieces`
  return kept;
}

}  // namespace

StateText state_text(const IncidentStore& incidents, const std::vector<StateSection>& sections, std::size_t limit) {
  std::vector<Piece> pieces;
  const auto add = [&](const DeviceRecord& record, bool departed) {
    pieces.push_back({.keep = keep_of(record),
                      .penalty = record.past.penalty,
                      .at = record.past.penalty_at,
                      .text = state_json(record, departed)});
  };
  for (const auto& [key, record] : incidents.records()) add(record, false);
  for (const auto& [key, record] : incidents.departed()) add(record, true);
  std::string head = fmt::format(R"({{"version":{},)", kVersion);
  if (const auto caps = caps_text(incidents.caps()); !caps.empty()) head += fmt::format(R"("caps":{},)", caps);
  for (const auto& section : sections) {
    if (!section.text.empty()) head += json_text(Json(section.name)) + ":" + section.text + ",";
  }
  head += R"("devices":[)";
  const auto kept = fitting(pieces, limit - std::min(limit, head.size() + 2));  // with what closes it
  std::string text = std::move(head);
  for (const auto* piece : kept) {
    if (piece != kept.front()) text += ',';
    text += piece->text;
  }
  text += "]}";
  return {.text = std::move(text), .left_out = pieces.size() - kept.size()};
}

StateContent parse_state(std::string_view text) {
  StateContent content;
  const auto damaged = [&](std::string why) {
    content.damage = std::move(why);
    return content;
  };
  if (text.size() > 2 * kStateLimit) return damaged("it is larger than anything that we write");
  const Json json = read_json<Json>(text);
  if (!json.is_object()) return damaged("it is not a JSON object");
  const auto version = json.find("version");
  if (version != json.end() && version->is_number_unsigned() && version->get<std::uint64_t>() > kVersion) {
    content.newer_version = version->get<std::uint64_t>();
    return content;
  }
  const bool is_earlier = version != json.end() && *version == kEarlierVersion;
  if (!is_earlier && (version == json.end() || *version != kVersion)) {
    return damaged(fmt::format("its version is neither {} nor {}", kEarlierVersion, kVersion));
  }
  const auto list = json.find("devices");
  if (list == json.end() || !list->is_array()) return damaged("it has no list of devices");
  for (const auto& [name, value] : json.items()) {
    if (name == "version" || name == "devices" || name == "caps") continue;
    content.sections.push_back({.name = name, .text = json_text(value)});
  }
  std::size_t bad = 0;
  for (const auto& item : *list) {
    bool departed = false;
    auto record = is_earlier ? read_earlier_record(item, departed) : read_state_record(item, departed);
    if (!record) {
      ++bad;
      continue;
    }
    (departed ? content.departed : content.records).push_back(std::move(*record));
  }
  if (bad > 0) content.damage = fmt::format("{} of {} devices could not be read", bad, list->size());
  bad = 0;
  if (const auto caps = json.find("caps"); caps != json.end()) content.caps = read_caps(*caps, bad);
  if (bad > 0) {
    content.damage = fmt::format("{}{}{} entries of the caps could not be read", content.damage.value_or(""),
                                 content.damage ? "; " : "", bad);
  }
  return content;
}

}  // namespace dhc
