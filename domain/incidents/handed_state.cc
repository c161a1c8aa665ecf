#include "domain/incidents/handed_state.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/json_put.h"
#include "base/json_read.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "base/rfc3339.h"
#include "domain/incidents/state_reader.h"

namespace dhc {

namespace {
using Json = nlohmann::ordered_json;
using Phase = HandedObject::Phase;

/// As long as a text of the state is read back.
constexpr std::size_t kLongestHandedDevice = 300;
constexpr std::array<std::string_view, 3> kPhases = {"Noted", "Made", "Over"};

Json object_json(const std::string& slot, const HandedObject& object) {
  Json json = {{"slot", slot}, {"phase", kPhases.at(static_cast<std::size_t>(object.phase))}, {"node", object.node}};
  put(json, "device", printable_cut(object.device, kLongestHandedDevice));
  json["policy"] = object.policy;
  json["apiVersion"] = object.api_version;
  json["kind"] = object.kind;
  put(json, "namespace", object.ns);
  json["name"] = object.name;
  json["incident"] = object.incident;
  json["incidents"] = object.incidents;
  put(json, "keeps", object.keeps);
  json["at"] = format_rfc3339(object.at);
  return json;
}

std::optional<std::pair<std::string, HandedObject>> read_object(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  StateReader reader(json);
  std::string slot;
  std::string phase;
  HandedObject object;
  std::vector<std::string> incidents;
  reader.name("slot", slot);
  reader.text("phase", phase);
  reader.name("node", object.node);
  reader.text("device", object.device);
  reader.name("policy", object.policy);
  reader.name("apiVersion", object.api_version);
  reader.name("kind", object.kind);
  reader.name("namespace", object.ns);
  reader.name("name", object.name);
  reader.name("incident", object.incident);
  reader.names("incidents", incidents);
  reader.flag("keeps", object.keeps);
  reader.time("at", object.at);
  const auto known = std::ranges::find(kPhases, phase);
  for (const auto* needed : {&slot, &object.node, &object.api_version, &object.kind, &object.name, &object.incident}) {
    if (needed->empty()) reader.bad();
  }
  if (!reader.good() || known == kPhases.end()) return std::nullopt;
  object.phase = static_cast<Phase>(known - kPhases.begin());
  object.incidents.insert(incidents.begin(), incidents.end());
  return std::pair(std::move(slot), std::move(object));
}

}  // namespace

std::string handed_state_text(const HandedObjects& objects) {
  if (objects.all().empty()) return {};
  Json list = Json::array();
  for (const auto& [slot, object] : objects.all()) list.push_back(object_json(slot, object));
  return json_text(list);
}

bool is_full(const HandedObjects& objects) {
  return objects.all().size() >= HandedObjects::kMost ||
         handed_state_text(objects).size() + kHandedObjectLimit > kHandedStateLimit;
}

HandedObjects parse_handed_state(std::string_view text) {
  HandedObjects objects;
  const Json json = read_json<Json>(text);
  if (!json.is_array()) return objects;
  HandedObjects::All all;
  for (const auto& item : json) {
    if (all.size() == HandedObjects::kMost) break;
    if (auto object = read_object(item)) all.insert(*std::move(object));
  }
  objects.load(std::move(all));
  return objects;
}

}  // namespace dhc
