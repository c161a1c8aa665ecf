#include "simulator/api/ownership.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <nlohmann/json.hpp>

namespace dhc::sim {
namespace {

bool is_unowned(const FieldPath& path) {
  if (path.size() == 1) return path[0] == "f:apiVersion" || path[0] == "f:kind";
  if (path.size() != 2 || path[0] != "f:metadata") return false;
  constexpr std::array<std::string_view, 7> kServer = {
      "f:name", "f:namespace", "f:uid", "f:generation", "f:resourceVersion", "f:creationTimestamp", "f:managedFields"};
  return std::ranges::find(kServer, path[1]) != kServer.end();
}

bool is_keyed_list(const FieldPath& path, const Json& value) {
  if (!value.is_array() || path.empty() || path.back() != "f:conditions") return false;
  for (const auto& item : value) {
    if (!item.is_object() || !item.contains("type")) return false;
  }
  return true;
}

void collect(const Json& value, FieldPath& path, std::map<FieldPath, Json>& into) {
  if (is_unowned(path)) return;
  if (value.is_object() && (!value.empty() || path.empty())) {
    for (const auto& [key, inner] : value.items()) {
      path.push_back("f:" + key);
      collect(inner, path, into);
      path.pop_back();
    }
  } else if (is_keyed_list(path, value)) {
    for (const auto& item : value) {
      path.push_back("k:" + Json{{"type", item["type"]}}.dump());
      collect(item, path, into);
      path.pop_back();
    }
  } else if (!path.empty()) {
    into.emplace(path, value);
  }
}

Json* find_item(Json& items, const std::string& step) {
  const Json key = Json::parse(step.substr(2));
  for (auto& item : items) {
    if (item.value("type", "") == key.value("type", "")) return &item;
  }
  return nullptr;
}

bool erase_below(Json& at, const FieldPath& path, std::size_t depth) {
  const auto& step = path[depth];
  if (step.starts_with("k:")) {
    if (!at.is_array()) return false;
    Json* item = find_item(at, step);
    if (item == nullptr) return false;
    erase_below(*item, path, depth + 1);
    if (item->empty() || (item->size() == 1 && item->contains("type"))) {
      at.erase(static_cast<std::size_t>(item - &at[0]));
    }
    return at.empty();
  }
  const auto key = step.substr(2);
  if (!at.is_object() || !at.contains(key)) return false;
  if (depth + 1 == path.size() || erase_below(at[key], path, depth + 1)) at.erase(key);
  return at.empty();
}

}  // namespace

std::map<FieldPath, Json> owned_fields(const Json& object) {
  std::map<FieldPath, Json> fields;
  FieldPath path;
  collect(object, path, fields);
  return fields;
}

void set_field(Json& object, const FieldPath& path, const Json& value) {
  Json* at = &object;
  for (const auto& step : path) {
    if (step.starts_with("f:")) {
      at = &(*at)[step.substr(2)];
      continue;
    }
    if (!at->is_array()) *at = Json::array();
    Json* item = find_item(*at, step);
    if (item == nullptr) {
      at->push_back(Json::parse(step.substr(2)));
      item = &at->back();
    }
    at = item;
  }
  *at = value;
}

void erase_field(Json& object, const FieldPath& path) { erase_below(object, path, 0); }

std::string path_text(const FieldPath& path) {
  std::string out;
  for (const auto& step : path) {
    if (step.starts_with("f:")) {
      out += "." + step.substr(2);
      continue;
    }
    const Json key = Json::parse(step.substr(2));
    out += "[type=\"" + key.value("type", "") + "\"]";
  }
  return out;
}

void take_over(Ownership& owners, const Manager& manager, const Json& before, const Json& after) {
  const auto old_fields = owned_fields(before);
  const auto new_fields = owned_fields(after);
  const auto drop_from_all = [&](const FieldPath& path) {
    for (auto& [owner, fields] : owners) fields.erase(path);
  };
  for (const auto& [path, value] : new_fields) {
    const auto old = old_fields.find(path);
    if (old != old_fields.end() && old->second == value) continue;
    drop_from_all(path);
    owners[manager].insert(path);
  }
  for (const auto& [path, value] : old_fields) {
    if (!new_fields.contains(path)) drop_from_all(path);
  }
  std::erase_if(owners, [](const auto& entry) { return entry.second.empty(); });
}

Json managed_fields(const Ownership& owners, const std::string& api_version, const std::string& time) {
  Json entries = Json::array();
  for (const auto& [manager, fields] : owners) {
    Json tree = Json::object();
    for (const auto& path : fields) {
      Json* at = &tree;
      for (const auto& step : path) {
        at = &(*at)[step];
        if (at->is_null()) *at = Json::object();
      }
    }
    Json entry = {{"manager", manager.name},   {"operation", manager.applied ? "Apply" : "Update"},
                  {"apiVersion", api_version}, {"time", time},
                  {"fieldsType", "FieldsV1"},  {"fieldsV1", std::move(tree)}};
    if (!manager.subresource.empty()) entry["subresource"] = manager.subresource;
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace dhc::sim
