#pragma once
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "domain/contract/device_key.h"

namespace dhc {

/// What a plan decides about anew. Of every other device and pod the last decision stands.
struct Focus {
  bool all = false;             ///< Everything.
  std::set<DeviceKey> devices;  ///< With them all that hangs together: their pods, and the other devices of these.
  std::set<std::string, std::less<>> pods;   ///< UIDs of those that hold them, or are looked at for themselves.
  std::set<std::string, std::less<>> nodes;  ///< Where they are.

  [[nodiscard]] bool has(const DeviceKey& key) const { return all || devices.contains(key); }
  [[nodiscard]] bool has_node(std::string_view name) const { return all || nodes.contains(name); }
};

/// Whether `focus` (null: everything) has the device.
[[nodiscard]] inline bool is_in(const Focus* focus, const DeviceKey& key) {
  return focus == nullptr || focus->has(key);
}

/// Looks at the entries of a map by device that are in focus (null: at all), in their order. `look` erases none.
template <class Map, class Look>
void for_each_in(const Focus* focus, Map& map, const Look& look) {
  if (focus == nullptr || focus->all) {
    for (auto& [key, value] : map) look(key, value);
    return;
  }
  // Both are in order: where they lie close a few steps cost less than a search.
  constexpr int kFewSteps = 4;
  auto at = map.begin();
  for (const auto& key : focus->devices) {
    for (int i = 0; i < kFewSteps && at != map.end() && at->first < key; ++i) ++at;
    if (at != map.end() && at->first < key) at = map.lower_bound(key);
    if (at == map.end()) return;
    if (at->first != key) continue;
    look(at->first, at->second);
    ++at;
  }
}

}  // namespace dhc
