#include "reconcilers/eviction/replacement.h"

namespace dhc::eviction {

bool ReplacementSearch::finds_one_like(const DeviceKey& key) {
  auto& known = key.source == DeviceKey::Source::Dra ? dra_ : plugin_;
  const auto found = known.find(key.scope);
  if (found != known.end()) return found->second;
  return known[key.scope] = key.source == DeviceKey::Source::Dra ? finds_dra(key.scope) : finds_plugin(key.scope);
}

bool ReplacementSearch::finds_dra(const std::string& driver) const {
  for (const auto& [name, pool] : scene_.world.inventory().pools()) {
    if (name.first != driver || !pool.published) continue;
    for (const auto& [device, published] : pool.devices) {
      const auto key = DeviceKey::dra(name.first, name.second, device);
      if (scene_.world.is_allocated(key) || scene_.world.tracker().not_healthy().contains(key)) continue;
      if (!scene_.world.inventory().unschedulable_because(key)) return true;
    }
  }
  return false;
}

bool ReplacementSearch::finds_plugin(const std::string& resource) const {
  for (const auto& [name, node] : scene_.world.nodes()) {
    if (!node.ready || node.unschedulable) continue;
    std::int64_t used = 0;
    for (const auto& uid : scene_.world.pods_on(name)) {
      const auto& pod = scene_.world.pod(uid)->pod;
      if (is_live(pod)) used += k8s::amount_of(pod.requests, resource);
    }
    if (k8s::amount_of(node.allocatable, resource) > used) return true;
  }
  return false;
}

}  // namespace dhc::eviction
