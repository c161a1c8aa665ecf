#include "domain/limits/out_tally.h"

#include <algorithm>
#include <utility>

#include "domain/contract/names.h"
#include "domain/contract/operator_time.h"

namespace dhc {

std::optional<WallTime> cap_release(const std::string& value, const Now& now) {
  const auto until = operator_time(value, now.wall);
  return until ? std::optional(*until) : std::nullopt;
}

std::optional<WallTime> cap_release_of_node(const World& world, const std::string& node, const Now& now) {
  const auto* found = world.annotated_nodes().contains(node) ? world.node(node) : nullptr;
  const auto value = found == nullptr ? std::nullopt : k8s::find(found->meta.annotations, kCapReleaseAnnotation);
  return value ? cap_release(std::string(*value), now) : std::nullopt;
}

void OutTally::update(const OutOfServiceBook& out, const std::set<DeviceKey>* keys, const World& world,
                      const Policy& policy, const Now& now) {
  const auto released = cap_release(policy.cap_release, now);
  std::map<std::string, WallTime> node_releases;
  for (const auto& node : world.annotated_nodes()) {
    if (const auto until = cap_release_of_node(world, node, now)) node_releases.emplace(node, *until);
  }
  const auto before = std::exchange(node_releases_, std::move(node_releases));
  if (std::exchange(released_, released) != released || keys == nullptr) {
    counts_.clear();
    entries_.clear();
    on_node_.clear();
    for (const auto& [key, known] : out) count_anew(key, out, world);
    return;
  }
  for (const auto& key : *keys) count_anew(key, out, world);
  if (before == node_releases_) return;
  const auto count_there = [&](const auto& release) {
    const auto there = on_node_.find(release.first);
    if (there == on_node_.end()) return;
    for (const auto& key : std::set(there->second)) count_anew(key, out, world);
  };
  std::ranges::for_each(before, count_there);
  std::ranges::for_each(node_releases_, count_there);
}

void OutTally::take_out(const DeviceKey& key) {
  const auto known = entries_.find(key);
  if (known == entries_.end()) return;
  const auto& entry = known->second;
  const auto count = counts_.find(key.scope);
  if (key.is_device()) count->second.uncount(entry.node, entry.card, entry.against);
  if (entry.whole_node) count->second.uncount_node(entry.node);
  const auto there = on_node_.find(entry.node);
  there->second.erase(key);
  if (there->second.empty()) on_node_.erase(there);
  entries_.erase(known);
}

void OutTally::count_anew(const DeviceKey& key, const OutOfServiceBook& out, const World& world) {
  take_out(key);
  const auto found = out.find(key);
  if (found == out.end()) return;
  const auto& [node, at, evicted, whole_node] = found->second;
  const auto release = node_releases_.find(node);
  const bool is_released = released_ && at < *released_;
  Entry entry{.node = node,
              .card = world.card_of(key),
              .against = {.node = release == node_releases_.end() || at >= release->second, .cluster = !is_released},
              .whole_node = whole_node && !is_released};
  auto& count = counts_[key.scope];
  if (key.is_device()) count.count(entry.node, entry.card, entry.against);
  if (entry.whole_node) count.count_node(entry.node);
  on_node_[entry.node].insert(key);
  entries_.emplace(key, std::move(entry));
}

}  // namespace dhc
