#include "domain/incidents/state_caps.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <ranges>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/json_field.h"
#include "base/json_writer.h"
#include "base/rfc3339.h"
#include "domain/incidents/state_record.h"
#include "domain/incidents/state_workloads.h"

namespace dhc {

namespace {
using Json = nlohmann::ordered_json;

/// As long as the API's names are let in.
constexpr std::size_t kLongestCapName = 1024;
constexpr std::int64_t kMostCounted = 1'000'000;
/// Of an ambiguous device: those of two claims. **Source:** `AllocationResultsMaxSize` of resource.k8s.io/v1: a claim
/// has 32 at most.
constexpr std::size_t kMostCandidates = 64;
/// As many as ten-minute counts of a day.
constexpr std::size_t kMostCounts = 145;
/// What the members around the names take, generously.
constexpr std::size_t kAroundAll = 1500;
constexpr std::size_t kAroundGroup = 90;
constexpr std::size_t kAroundCharge = 85;
constexpr std::size_t kAroundTime = 40;
constexpr std::size_t kAroundGang = 70;
constexpr std::size_t kAroundPlace = 60;
constexpr std::size_t kAroundDevice = 28;

/// Devices of one place in one entry.
void write_candidates(JsonWriter& json, const std::vector<DeviceKey>& may_be) {
  std::map<std::pair<std::string_view, std::string_view>, std::vector<SharedText>> places;
  for (const auto& key : may_be | std::views::take(kMostCandidates)) {
    places[{key.scope, key.place}].push_back(key.device);
  }
  json.put_entries("mayBe", places, [&](const auto& entry) {
    json.member("scope", entry.first.first);
    json.member("place", entry.first.second);
    json.put_list("devices", entry.second);
  });
}

/// What is written once for all charges that have it in common: their times are written in whole seconds.
std::tuple<DeviceKey::Source, SharedText, WallTime> group_of(const EvictionCharge& charge) {
  return {charge.key.source, charge.key.scope, std::chrono::floor<Seconds>(charge.at)};
}

void write_charge(JsonWriter& json, const EvictionCharge& charge) {
  json.member("place", charge.key.place);
  json.member("device", charge.key.device);
  if (charge.node != charge.key.place) json.member("node", charge.node);
  json.put("counted", charge.counted);
  json.put("owner", charge.loser);
  json.put("workload", charge.workload);
  json.put("gang", charge.gang);
  if (!charge.gang.empty()) json.member("gangSize", charge.gang_size);
  json.put("halfSince", charge.half_since);
  write_candidates(json, charge.may_be);
}

void write_charges(JsonWriter& json, const CapBook& book) {
  std::map<decltype(group_of({})), std::vector<const EvictionCharge*>> groups;
  for (const auto& [uid, charge] : book.charges()) groups[group_of(charge)].push_back(&charge);
  for (const auto& [group, charges] : groups) {
    json.begin_object();
    const auto& [source, scope, at] = group;
    json.member("source", to_string(source));
    json.member("scope", scope);
    json.member("at", at);
    json.put_group("pods", [&] {
      for (const auto* charge : charges) json.put_group(charge->pod_uid, [&] { write_charge(json, *charge); });
    });
    json.end_object();
  }
}

/// What a charge takes; one that has not counted leaves its device behind when it has.
std::size_t size_of(const EvictionCharge& charge) {
  const auto& key = charge.key;
  const auto node = charge.node == key.place.view() ? 0 : charge.node.size();
  auto size = kAroundCharge + charge.pod_uid.size() + key.place.size() + key.device.size() + charge.loser.size() +
              charge.workload.size() + node + (charge.half_since ? kAroundTime : 0) +
              (charge.gang.empty() ? 0 : kAroundGang + charge.gang.size());
  if (!charge.counted) size += kAroundPlace + key.place.size() + node + kAroundDevice + key.device.size();
  const DeviceKey* before = nullptr;
  for (const auto& other : charge.may_be | std::views::take(kMostCandidates)) {
    const bool same_place = before != nullptr && before->scope == other.scope && before->place == other.place;
    size +=
        kAroundDevice + other.device.size() + (same_place ? 0 : kAroundPlace + other.scope.size() + other.place.size());
    before = &other;
  }
  return size;
}

/// Of those that are written together; and of the devices that they leave behind.
std::size_t size_of_group(const EvictionCharge& charge) { return 2 * (kAroundGroup + charge.key.scope.size()); }

using Times = std::vector<std::pair<SharedText, WallTime>>;

void write_times(JsonWriter& json, std::string_view name, const Times& times) {
  json.put_group(name, [&] {
    for (const auto& [device, at] : times) json.member(device, at);
  });
}

/// The devices of one driver or resource in one entry: for each place a name and a time each.
void write_out(JsonWriter& json, const CapBook& book, bool with_tainted) {
  using PlaceAndNode = std::pair<std::string_view, std::string_view>;
  using Places = std::map<PlaceAndNode, std::pair<Times, Times>>;
  std::map<std::pair<DeviceKey::Source, std::string_view>, Places> scopes;
  for (const auto& [key, out] : book.out()) {
    if (!out.evicted && !with_tainted) continue;
    auto& [evicted, tainted] = scopes[{key.source, key.scope}][{key.place, out.node}];
    (out.evicted ? evicted : tainted).emplace_back(key.device, out.at);
  }
  for (const auto& [scope, places] : scopes) {
    json.begin_object();
    json.member("source", to_string(scope.first));
    json.member("scope", scope.second);
    json.put_entries("places", places, [&](const auto& entry) {
      const auto& [place, node] = entry.first;
      json.member("place", place);
      if (node != place) json.member("node", node);
      write_times(json, "evicted", entry.second.first);
      write_times(json, "tainted", entry.second.second);
    });
    json.end_object();
  }
}

void write_evictions(JsonWriter& json, const CapBook& book, std::size_t most) {
  for (const auto& [scope, counts] : book.evictions()) {
    auto kept = counts;
    merge_counts(kept, most);
    for (const auto& count : kept) {
      json.begin_object();
      json.member("scope", scope);
      json.member("first", count.first);
      json.member("last", count.last);
      json.member("count", count.count);
      json.end_object();
    }
  }
}

struct CapsText {
  bool with_tainted = true;
  bool with_workloads = true;
  std::size_t most_counts = kMostCounts;
};

std::string text_with(const CapBook& book, const CapsText& what) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  const auto write_array = [&](std::string_view name, const auto& write) {
    json.key(name);
    json.begin_array();
    write();
    json.end_array();
  };
  write_array("charges", [&] { write_charges(json, book); });
  write_array("out", [&] { write_out(json, book, what.with_tainted); });
  write_array("evictions", [&] { write_evictions(json, book, what.most_counts); });
  if (what.with_workloads && !book.workloads().lost().empty())
    write_array("workloads", [&] { write_workloads(json, book.workloads()); });
  json.end_object();
  return text;
}

std::optional<std::string> name_in(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_string()) return std::nullopt;
  auto name = found->get<std::string>();
  if (name.size() > kLongestCapName) return std::nullopt;
  return name;
}

std::optional<WallTime> time_in(const Json& entry, const char* key) {
  const auto text = name_in(entry, key);
  return text ? parse_rfc3339(*text) : std::nullopt;
}

/// How many, as far as it can be believed; 0: it does not say.
std::int64_t size_in(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_number_integer()) return 0;
  return std::clamp<std::int64_t>(found->get<std::int64_t>(), 0, kMostCounted);
}

/// Scope, place and source of an entry; the device is left empty.
std::optional<DeviceKey> place_in(const Json& entry) {
  const auto word = name_in(entry, "source");
  const auto source = word ? parse_source(*word) : std::nullopt;
  const auto scope = name_in(entry, "scope");
  const auto place = name_in(entry, "place");
  if (!source || !scope || scope->empty() != (*source == DeviceKey::Source::NodeTaint) || !place) return std::nullopt;
  return DeviceKey{.source = *source, .scope = *scope, .place = *place, .device = {}};
}

/// The devices of one place; earlier versions wrote an entry for each.
std::vector<std::string> devices_in(const Json& place) {
  if (auto device = name_in(place, "device")) return {std::move(*device)};
  std::vector<std::string> names;
  const auto list = place.find("devices");
  if (list == place.end() || !list->is_array()) return names;
  for (const auto& device : *list | std::views::take(kMostCandidates)) {
    if (!device.is_string()) continue;
    auto name = device.get<std::string>();
    if (name.size() <= kLongestCapName) names.push_back(std::move(name));
  }
  return names;
}

/// What an ambiguous device may be; what cannot be read is left out.
std::vector<DeviceKey> candidates_in(const Json& entry, DeviceKey::Source source) {
  std::vector<DeviceKey> keys;
  const auto list = entry.find("mayBe");
  if (list == entry.end() || !list->is_array()) return keys;
  for (const auto& place : *list) {
    if (!place.is_object()) continue;
    const auto scope = name_in(place, "scope");
    const auto where = name_in(place, "place");
    if (!scope || !where) continue;
    for (const auto& device : devices_in(place)) {
      if (keys.size() == kMostCandidates) return keys;
      keys.push_back({.source = source, .scope = *scope, .place = *where, .device = device});
    }
  }
  return keys;
}

/// The node of an entry; without one it is the place.
std::optional<std::string> node_in(const Json& entry) {
  return name_in(entry, entry.contains("node") ? "node" : "place");
}

bool read_charge(const Json& entry, CapBook& book) {
  auto key = place_in(entry);
  const auto device = name_in(entry, "device");
  auto pod = name_in(entry, "pod");
  auto node = node_in(entry);
  const auto at = time_in(entry, "at");
  if (!key || !key->is_device() || !device || !pod || pod->empty() || !node || !at) return false;
  key->device = *device;
  auto may_be = candidates_in(entry, key->source);
  book.recall(EvictionCharge{.pod_uid = std::move(*pod),
                             .key = std::move(*key),
                             .node = std::move(*node),
                             .at = *at,
                             .loser = name_in(entry, "owner").value_or(std::string()),
                             .may_be = std::move(may_be),
                             .workload = name_in(entry, "workload").value_or(std::string()),
                             .gang = name_in(entry, "gang").value_or(std::string()),
                             .gang_size = size_in(entry, "gangSize"),
                             .half_since = time_in(entry, "halfSince"),
                             .counted = json_true(entry, {"counted"})});
  return true;
}

/// Entries that have in common what stands in `entry`: `members` are what each has of its own, and `take` is given each
/// as a whole, as earlier versions wrote it.
template <class Members, class Take>
bool read_apart(const Json& entry, const Members& members, const Take& take) {
  bool all = true;
  for (const auto& [name, own] : members.items()) {
    auto whole = entry;
    if (own.is_object()) whole.update(own);
    all = own.is_object() && take(name, whole) && all;
  }
  return all;
}

bool read_charges(const Json& entry, CapBook& book) {
  const auto pods = entry.find("pods");
  if (pods == entry.end()) return read_charge(entry, book);
  if (!pods->is_object()) return false;
  auto common = entry;
  common.erase("pods");
  return read_apart(common, *pods, [&](const std::string& uid, Json& charge) {
    charge["pod"] = uid;
    return read_charge(charge, book);
  });
}

bool read_devices(const Json& entry, const char* member, bool evicted, CapBook& book) {
  const auto devices = entry.find(member);
  if (devices == entry.end()) return true;
  auto key = place_in(entry);
  auto node = node_in(entry);
  if (!devices->is_object() || !key || !node) return false;
  for (const auto& [device, time] : devices->items()) {
    const auto at = time_in(*devices, device.c_str());
    if (!at || device.size() > kLongestCapName) return false;
    auto of = *key;
    of.device = device;
    translate_node(of);
    if (!is_whole(of)) return false;
    book.recall(of, {.node = *node, .at = *at, .evicted = evicted});
  }
  return true;
}

bool read_place(const Json& entry, CapBook& book) {
  return place_in(entry) && read_devices(entry, "evicted", true, book) && read_devices(entry, "tainted", false, book);
}

bool read_out(const Json& entry, CapBook& book) {
  const auto places = entry.find("places");
  if (places == entry.end()) return read_place(entry, book);
  if (!places->is_array()) return false;
  auto common = entry;
  common.erase("places");
  return read_apart(common, *places,
                    [&](const std::string& /*number*/, const Json& place) { return read_place(place, book); });
}

bool read_count(const Json& entry, CapBook& book) {
  const auto scope = name_in(entry, "scope");
  const auto first = time_in(entry, "first");
  const auto last = time_in(entry, "last");
  const auto count = entry.find("count");
  if (!scope || scope->empty() || !first || !last || *last < *first || count == entry.end()) return false;
  if (!count->is_number_integer() || *count < 1 || *count > kMostCounted) return false;
  book.recall(*scope, {.first = *first, .last = *last, .count = count->get<std::int64_t>()});
  return true;
}

template <class Read>
void read_list(const Json& json, const char* key, CapBook& book, std::size_t& bad, Read read) {
  const auto list = json.find(key);
  if (list == json.end()) return;
  if (!list->is_array()) {
    ++bad;
    return;
  }
  for (const auto& entry : *list) {
    if (!entry.is_object() || !read(entry, book)) ++bad;
  }
}

}  // namespace

std::string caps_text(const CapBook& book, std::size_t limit) {
  if (book == CapBook()) return {};
  auto text = text_with(book, {});
  if (text.size() > limit) text = text_with(book, {.with_tainted = false});
  if (text.size() > limit) text = text_with(book, {.with_tainted = false, .with_workloads = false});
  if (text.size() > limit) text = text_with(book, {.with_tainted = false, .with_workloads = false, .most_counts = 1});
  return text;
}

CapsSize::CapsSize(const CapBook& book) : bytes_(kAroundAll) {
  for (const auto& [uid, charge] : book.charges()) add(charge);
  const DeviceKey* before = nullptr;
  std::string_view node;
  for (const auto& [key, out] : book.out()) {
    if (!out.evicted) continue;
    const bool same_scope = before != nullptr && before->source == key.source && before->scope == key.scope;
    const bool same_place = same_scope && before->place == key.place && node == out.node;
    if (!same_scope) bytes_ += kAroundGroup + key.scope.size();
    bytes_ += kAroundDevice + key.device.size();
    if (!same_place) bytes_ += kAroundPlace + key.place.size() + (out.node == key.place.view() ? 0 : out.node.size());
    before = &key;
    node = out.node;
  }
}

void CapsSize::add(const EvictionCharge& charge) {
  bytes_ += size_of(charge);
  if (++groups_[group_of(charge)] == 1) bytes_ += size_of_group(charge);
}

void CapsSize::drop(const EvictionCharge& charge) {
  const auto group = groups_.find(group_of(charge));
  if (group == groups_.end()) return;
  bytes_ -= size_of(charge);
  if (--group->second > 0) return;
  bytes_ -= size_of_group(charge);
  groups_.erase(group);
}

std::size_t size_of_caps(const CapBook& book) { return CapsSize(book).bytes(); }

CapBook read_caps(const nlohmann::ordered_json& json, std::size_t& bad) {
  CapBook book;
  if (!json.is_object()) {
    ++bad;
    return book;
  }
  read_list(json, "charges", book, bad, read_charges);
  read_list(json, "out", book, bad, read_out);
  read_list(json, "evictions", book, bad, read_count);
  read_list(json, "workloads", book, bad, read_workload);
  return book;
}

}  // namespace dhc
