#include "domain/cluster/demand.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace dhc {

namespace {

/// Attributes that say what a device is, in any domain. **Source:** the slices of the drivers of NVIDIA (`type`,
/// `productName`, `profile`), AMD (`type`, `productName`, `partitionProfile`) and Intel (`model`).
bool names_kind(std::string_view attribute) {
  static constexpr std::array<std::string_view, 5> kWords = {"type", "model", "productname", "profile",
                                                             "partitionprofile"};
  std::string word(attribute.substr(attribute.rfind('/') + 1));
  std::ranges::transform(word, word.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return std::ranges::find(kWords, word) != kWords.end();
}

DeviceKind kind_of(const DeviceKey& key, const World& world) {
  DeviceKind kind{.driver = key.scope, .like = {}};
  const auto* device = world.inventory().published(key);
  if (device == nullptr) return kind;
  for (const auto& attribute : device->attributes) {
    if (names_kind(attribute.first)) kind.like.push_back(attribute);
  }
  return kind;
}

/// Made by the scheduler for an extended resource that a DeviceClass offers. **Source:** KEP-5004.
bool has_extended_claim(const k8s::Pod& pod) {
  return std::ranges::any_of(pod.claims, [](const k8s::PodClaim& claim) { return claim.name == claim.claim_name; });
}

void add_resources(const k8s::Pod& pod, const World& world, Demand& demand) {
  const auto* node = has_extended_claim(pod) ? world.node(pod.node_name) : nullptr;
  for (const auto& [resource, amount] : pod.requests) {
    if (node != nullptr && k8s::amount_of(node->capacity, resource) == 0) continue;  // its claim says what it needs
    demand.resources[resource] += amount;
  }
}

void add_claim(const k8s::ResourceClaim& claim, const World& world, Demand& demand) {
  for (const auto& result : claim.results) {
    if (result.admin_access) continue;
    ++demand.devices[kind_of(DeviceKey::dra(result.driver, result.pool, result.device), world)];
  }
  if (!claim.results.empty()) return;
  for (const auto& request : *claim.requests) {
    const auto driver = world.driver_of_class(request.device_class);
    if (!driver.empty()) demand.devices[{.driver = driver, .like = {}}] += request.count;
  }
}

}  // namespace

Demand demand_of(std::span<const k8s::Pod* const> pods, const World& world) {
  Demand demand;
  std::set<std::string> claims;
  for (const auto* pod : pods) {
    if (std::ranges::find(demand.terms, pod->scheduling) == demand.terms.end()) demand.terms.push_back(pod->scheduling);
    add_resources(*pod, world, demand);
    for (const auto& named : pod->claims) {
      const auto key = claim_key(pod->meta.ns, named.claim_name);
      const auto* claim = named.claim_name.empty() ? nullptr : world.claim(key);
      if (claim == nullptr || !claims.insert(key).second) continue;
      const bool has_it = pod->node_name.empty() && !claim->results.empty();  // it waits for another reason
      if (!has_it) add_claim(*claim, world, demand);
    }
  }
  std::ranges::sort(demand.terms);
  return demand;
}

bool is_of_kind(const PublishedDevice& device, const DeviceKind& kind) {
  return std::ranges::all_of(kind.like, [&](const auto& wanted) {
    return k8s::find(device.attributes, wanted.first) == std::string_view(wanted.second);
  });
}

std::string to_string(const Demand& demand) {
  std::string words;
  const auto add = [&](std::string more) { words += (words.empty() ? "" : " and ") + std::move(more); };
  for (const auto& [resource, amount] : demand.resources) add(fmt::format("{} {}", amount, resource));
  for (const auto& [kind, count] : demand.devices) {
    std::string like;
    for (const auto& [name, value] : kind.like) like += fmt::format("{}{}={}", like.empty() ? "" : ", ", name, value);
    add(fmt::format("{} device{} of {}{}", count, count == 1 ? "" : "s", kind.driver,
                    like.empty() ? "" : fmt::format(" ({})", like)));
  }
  return words.empty() ? "its devices" : words;
}

std::string not_judged(const Demand& demand) {
  std::string words = "CPU, memory and volumes";
  if (!demand.devices.empty()) words += "; CEL selectors, by which only devices of the same kind are sure to fit";
  if (std::ranges::any_of(demand.terms, [](const auto& terms) { return terms->has_other_terms; })) {
    words += "; pod affinity and topology spread";
  }
  return words;
}

}  // namespace dhc
