#include "domain/incidents/state_workloads.h"

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/rfc3339.h"

namespace dhc {

namespace {
using Json = nlohmann::ordered_json;

/// As long as the API's names are let in, two of them beside a kind.
constexpr std::size_t kLongestPart = 1024;

std::optional<std::string> text_in(const Json& value) {
  if (!value.is_string() || value.get_ref<const std::string&>().size() > kLongestPart) return std::nullopt;
  return value.get<std::string>();
}

std::optional<std::string> text_in(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  return found == entry.end() ? std::nullopt : text_in(*found);
}

}  // namespace

void write_workloads(JsonWriter& json, const WorkloadBook& book) {
  for (const auto& [workload, devices] : book.lost()) {
    std::map<std::tuple<DeviceKey::Source, std::string_view, std::string_view>,
             std::vector<std::pair<SharedText, WallTime>>>
        places;
    for (const auto& [card, at] : devices) places[{card.source, card.scope, card.place}].emplace_back(card.device, at);
    for (const auto& [place, times] : places) {
      json.begin_object();
      json.member("workload", workload);
      json.member("source", std::get<0>(place) == DeviceKey::Source::Dra ? "dra" : "plugin");
      json.member("scope", std::get<1>(place));
      json.member("place", std::get<2>(place));
      json.put_group("devices", [&] {
        for (const auto& [device, at] : times) json.member(device, at);
      });
      json.end_object();
    }
  }
}

bool read_workload(const nlohmann::ordered_json& entry, CapBook& book) {
  const auto workload = text_in(entry, "workload");
  const auto source = text_in(entry, "source");
  const auto scope = text_in(entry, "scope");
  const auto place = text_in(entry, "place");
  const auto devices = entry.find("devices");
  if (!workload || workload->empty() || !source || (*source != "dra" && *source != "plugin") || !scope ||
      scope->empty() || !place || devices == entry.end() || !devices->is_object()) {
    return false;
  }
  std::vector<std::pair<DeviceKey, WallTime>> read;
  for (const auto& [device, time] : devices->items()) {
    const auto said = text_in(time);
    const auto at = said ? parse_rfc3339(*said) : std::nullopt;
    if (!at || device.empty() || device.size() > kLongestPart) return false;
    read.emplace_back(DeviceKey{.source = *source == "dra" ? DeviceKey::Source::Dra : DeviceKey::Source::Plugin,
                                .scope = *scope,
                                .place = *place,
                                .device = device},
                      *at);
  }
  for (const auto& [card, at] : read) book.recall(*workload, card, at);
  return true;
}

}  // namespace dhc
