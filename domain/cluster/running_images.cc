#include "domain/cluster/running_images.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/printable.h"
#include "domain/cluster/workload.h"
#include "domain/cluster/world.h"

namespace dhc {

namespace {

/// No kind has a blank in its name, so that no workload's name is an image's.
constexpr std::string_view kImageMark = "/container image/";
constexpr std::size_t kLongestWords = 600;

std::vector<std::string> named(const k8s::Pod& pod, const auto& is_asked) {
  std::vector<std::string> names;
  if (!pod.images) return names;
  for (const auto& one : *pod.images) {
    if (is_asked(one.container)) names.push_back(pod.meta.ns + std::string(kImageMark) + one.image);
  }
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  return names;
}

}  // namespace

std::vector<std::string> image_names_of(const k8s::Pod& pod) {
  return named(pod, [](const std::string& /*container*/) { return true; });
}

std::vector<std::string> image_names_of(const k8s::Pod& pod, const HeldDevice& held_device) {
  return named(pod, [&](const std::string& container) {
    return held_device.containers.empty() || std::ranges::binary_search(held_device.containers, container);
  });
}

std::vector<std::string> images_on(const DeviceKey& key, const World& world) {
  std::set<std::string> names;
  const auto* state = world.tracker().find(key);
  if (state == nullptr) return {};
  for (const auto& uid : state->holders) {
    const auto* record = world.pod(uid);
    const auto* held_device = record == nullptr ? nullptr : find_held_device(record->held_devices, key);
    if (held_device == nullptr) continue;
    for (auto& name : image_names_of(record->pod, *held_device)) names.insert(std::move(name));
  }
  return {names.begin(), names.end()};
}

bool is_image_name(std::string_view name) { return name.find(kImageMark) != std::string_view::npos; }

std::string words_of_image(std::string_view name) {
  const auto at = name.find(kImageMark);
  if (at == std::string_view::npos) return printable_cut(name, kLongestWords);
  return printable_cut(
      "image " + std::string(name.substr(at + kImageMark.size())) + " in namespace " + std::string(name.substr(0, at)),
      kLongestWords);
}

OwnerShare share_of_image(std::string_view name, const DeviceKey& key, const World& world) {
  const auto& held = world.held_cards();
  const auto* there = held.place_of(key);
  if (there == nullptr) return {};
  const auto share = [](std::int64_t its, std::int64_t all) {
    return its == 0 || all == 0 ? 1.0 : static_cast<double>(its) / static_cast<double>(all);
  };
  const auto since = as_new_as(*there);
  std::int64_t here = 0;
  std::int64_t its_here = 0;
  for (const auto* place : held.places_beside(key)) {
    here += place->cards;
    its_here += place->count_of(name);
  }
  const auto in_all = share(held.count_of(key.scope, name), held.count(key.scope));
  const auto among_new =
      since ? share(held.count_of_since(key.scope, name, *since), held.count_since(key.scope, *since)) : in_all;
  return {.scope = std::max(in_all, among_new), .node = share(its_here, here)};
}

}  // namespace dhc
