#include "k8s-client/model/decode_config_map.h"

#include <utility>

#include "k8s-client/model/decode_meta.h"

namespace dhc::k8s {

namespace {

bool read_data(JsonValue value, Fault& fault, ConfigMap& map) {
  map.data.clear();
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    std::string text;
    if (!read_text(field, fault, text)) return false;
    map.data.insert_or_assign(std::string(key), std::move(text));
    return true;
  });
}

}  // namespace

bool read_config_map(JsonObject root, Fault& fault, ConfigMap& map) {
  return read_root(root, fault, Kind::ConfigMap, map.meta, [&](std::string_view key, JsonValue value) {
    return key != "data" || read_data(value, fault, map);
  });
}

}  // namespace dhc::k8s
