#include "domain/cluster/grounds.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "domain/cluster/running_images.h"
#include "domain/cluster/workload.h"
#include "domain/cluster/world.h"
#include "domain/contract/ground_names.h"

namespace dhc {

namespace {

/// To four digits, upwards: it is written down for each device that breaks, and a larger share accuses less.
double ground_share(std::int64_t its, std::int64_t all) {
  constexpr double kDigits = 10'000;
  if (its <= 0 || all <= 0) return 1;
  return std::min(1.0, std::ceil(kDigits * static_cast<double>(its) / static_cast<double>(all)) / kDigits);
}

/// Of what the device's workloads hold, the largest share that is at such places.
template <class IsThere>
double share_of_workloads(const DeviceKey& key, const World& world, const IsThere& is_there) {
  double largest = 0;
  for (const auto& workload : workloads_on(key, world)) {
    const auto places = places_of(workload, key, world);
    largest = std::max(largest, ground_share(std::ranges::count_if(places, is_there), std::ssize(places)));
  }
  return largest > 0 ? largest : 1.0;
}

/// Likewise of its images, of which `count` says how many cards are there.
template <class Count>
double share_of_images(const DeviceKey& key, const World& world, const Count& count) {
  double largest = 0;
  for (const auto& image : images_on(key, world)) {
    largest = std::max(largest, ground_share(count(image), world.held_cards().count_of(key.scope, image)));
  }
  return largest > 0 ? largest : 1.0;
}

/// A bad release of the driver must not speak against the nodes that have it first: where it is known, the node's share
/// of those with the same one counts, if that is more, and else its share of those with as new a driver.
GroundShare share_of_node(const DeviceKey& key, const HeldCards::Place& there, const World& world) {
  const auto& held = world.held_cards();
  const auto beside = held.places_beside(key);
  std::int64_t here = 0;
  for (const auto* place : beside) here += place->cards;
  GroundShare share;
  share.scope = ground_share(here, held.count(key.scope));
  for (const auto& release : there.releases) {
    share.scope = std::max(share.scope, ground_share(here, held.count_at(key.scope, *release)));
  }
  const auto since = as_new_as(there);
  if (there.releases.empty() && since)
    share.scope = std::max(share.scope, ground_share(here, held.count_since(key.scope, *since)));
  share.workload = share_of_workloads(key, world, [&](const auto* place) { return place->unit == there.unit; });
  share.image = share_of_images(key, world, [&](const std::string& image) {
    std::int64_t cards = 0;
    for (const auto* place : beside) cards += place->count_of(image);
    return cards;
  });
  return share;
}

GroundShare share_of_release(const std::string& release, const DeviceKey& key, const World& world) {
  const auto& held = world.held_cards();
  GroundShare share;
  share.scope = ground_share(held.count_at(key.scope, release), held.count(key.scope));
  share.workload = share_of_workloads(key, world, [&](const auto* place) { return place->has_release(release); });
  share.image =
      share_of_images(key, world, [&](const auto& image) { return held.count_of_at(key.scope, image, release); });
  return share;
}

}  // namespace

std::map<std::string, GroundShare> grounds_of(const DeviceKey& key, WallTime since, const World& world) {
  std::map<std::string, GroundShare> grounds;
  const auto* there = world.held_cards().place_of(key);
  if (there == nullptr) return grounds;
  if (const auto node = world.node_of(key); !node.empty())
    grounds.emplace(ground_of_node(node), share_of_node(key, *there, world));
  for (const auto& release : world.releases_of(key)) {
    // What was bad before its pod came is not its fault. The API cuts its times to the second.
    if (since + Seconds(1) < release.made) continue;
    grounds.emplace(release.name, share_of_release(release.name, key, world));
  }
  return grounds;
}

}  // namespace dhc
