#include "k8s-client/model/decode_config_map.h"

#include <optional>

#include "k8s-client/model/decode_meta.h"

namespace dhc::k8s {

namespace {

bool read_data(JsonValue value, Fault& fault, ConfigMap& map) {
  map.data.clear();
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    std::optional<std::string_view> text;
    if (!read_view(field, fault, text)) return false;
    if (text) {
      map.data.insert_or_assign(std::string(key), std::string(*text));
    } else if (const auto earlier = map.data.find(key); earlier != map.data.end()) {
      map.data.erase(earlier);
    }
    return true;
  });
}

}  // namespace

bool read_config_map(JsonObject root, Fault& fault, const KeptFields& kept, ConfigMap& map) {
  return read_root(root, fault, kept, Kind::ConfigMap, map.meta, [&](std::string_view key, JsonValue value) {
    return key != "data" || read_data(value, fault, map);
  });
}

}  // namespace dhc::k8s
