#include "tests/support/core/slice_taints.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "domain/contract/names.h"
#include "simulator/api/field.h"

namespace dhc::test {

namespace {
using sim::Json;
using sim::list;
using sim::Res;
using sim::text;

bool fits_slice_taint(const Json& taint, const DeviceTaintMatch& match) {
  const auto effect = text(taint, {"effect"});
  const bool is_effect =
      match.effect.empty() ? effect == "NoSchedule" || effect == "NoExecute" : glob_matches(match.effect, effect);
  return is_effect && glob_matches(match.key, text(taint, {"key"})) &&
         glob_matches(match.value, text(taint, {"value"}));
}

bool asks_for_slice_taint(const DevicePolicy& rules, const std::string& driver, const Json& taint) {
  const auto& match = rules.match;
  const bool is_any = match.resources.empty() && match.drivers.empty();
  const bool is_meant =
      is_any || std::ranges::any_of(match.drivers, [&](const auto& glob) { return glob_matches(glob, driver); });
  return is_meant &&
         std::ranges::any_of(match.device_taints, [&](const auto& one) { return fits_slice_taint(taint, one); });
}

}  // namespace

std::set<TaintedDevice> named_taints(const sim::Cluster& cluster, const Policy& policy) {
  std::set<TaintedDevice> found;
  const auto asks = [](const DevicePolicy& rules) { return !rules.match.device_taints.empty(); };
  if (std::ranges::none_of(policy.policies, asks)) return found;
  const auto& slices = cluster.store().all(Res::Slices);
  std::map<std::pair<std::string, std::string>, std::int64_t> newest;  // generation, by driver and pool
  const auto pool_of = [](const Json& slice) {
    return std::pair(text(slice, {"spec", "driver"}), text(slice, {"spec", "pool", "name"}));
  };
  const auto generation_of = [](const Json& slice) { return sim::number(slice, {"spec", "pool", "generation"}); };
  for (const auto& [name, slice] : slices) {
    auto& generation = newest[pool_of(*slice)];
    generation = std::max(generation, generation_of(*slice));
  }
  for (const auto& [name, slice] : slices) {
    const auto pool = pool_of(*slice);
    if (generation_of(*slice) != newest[pool]) continue;
    for (const auto& device : list(*slice, {"spec", "devices"})) {
      const auto is_wanted = [&](const Json& taint) {
        return std::ranges::any_of(policy.policies,
                                   [&](const auto& rules) { return asks_for_slice_taint(rules, pool.first, taint); });
      };
      if (!std::ranges::any_of(list(device, {"taints"}), is_wanted)) continue;
      found.insert({.driver = pool.first, .pool = pool.second, .device = text(device, {"name"})});
    }
  }
  return found;
}

}  // namespace dhc::test
