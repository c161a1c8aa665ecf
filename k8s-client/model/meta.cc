#include "k8s-client/model/meta.h"

#include <algorithm>

namespace dhc::k8s {

std::optional<std::string_view> find(const StringMap& map, std::string_view key) {
  const auto at =
      std::ranges::lower_bound(map, key, {}, [](const auto& entry) -> std::string_view { return entry.first; });
  if (at == map.end() || at->first != key) return std::nullopt;
  return std::string_view(at->second);
}

std::string to_string(const Taint& taint) {
  return taint.key + (taint.value.empty() ? "" : "=" + taint.value) + ":" + taint.effect;
}

}  // namespace dhc::k8s
