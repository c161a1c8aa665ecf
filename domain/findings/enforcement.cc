#include "domain/findings/enforcement.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/hash.h"
#include "domain/cluster/gang.h"
#include "domain/contract/our_taint.h"

namespace dhc {

namespace {

bool names_namespace(const EnforceOn& on, const std::string& ns) {
  return on.namespaces.empty() ||
         std::ranges::any_of(on.namespaces, [&](const std::string& glob) { return glob_matches(glob, ns); });
}

bool selects_node(const EnforceOn& on, const World& world, const std::string& name) {
  static constexpr k8s::StringMap kNoLabels{};
  const auto* node = world.node(name);
  return on.nodes.matches(node == nullptr ? kNoLabels : node->meta.labels);
}

/// Of a DRA device that nobody publishes, not even from memory, a partition cannot be told from a card.
bool knows_card(const World& world, const DeviceKey& key) {
  if (key.source != DeviceKey::Source::Dra) return key.is_device() && !key.device.empty();
  const auto pool = world.inventory().pools().find({key.scope, key.place});
  return pool != world.inventory().pools().end() && pool->second.devices.contains(key.device);
}

/// Whether our taint keeps new pods off it already.
bool is_marked(const World& world, const DeviceKey& key) {
  const auto* rule = world.inventory().rule_named_for(key);
  if (rule != nullptr && is_our_rule(*rule)) return true;
  const auto* node = world.node_under(key);
  return node != nullptr && our_taint_on(*node).has_value();
}

/// The namespaces of whoever holds the device, but for `asking`.
std::optional<EnforceMiss> miss_of_holders(const EnforceOn& on, const World& world, const DeviceKey& key,
                                           const k8s::Pod* asking) {
  if (on.namespaces.empty() || is_marked(world, key)) return std::nullopt;
  const auto* state = world.tracker().find(key);
  bool is_held = asking != nullptr;
  if (state != nullptr) {
    for (const auto& uid : state->holders) {
      const auto* record = world.pod(uid);
      if (record == nullptr || (asking != nullptr && asking->meta.uid == uid)) continue;
      if (!names_namespace(on, record->pod.meta.ns)) return EnforceMiss::Holder;
      is_held = true;
    }
  }
  return is_held ? std::nullopt : std::optional(EnforceMiss::Nobody);
}

std::optional<EnforceMiss> miss_of_share(const EnforceOn& on, const World& world, const DeviceKey& key) {
  if (on.percent >= 100) return std::nullopt;
  const bool is_in = knows_card(world, key) && is_in_share(world.card_of(key), on.percent);
  return is_in ? std::nullopt : std::optional(EnforceMiss::Share);
}

/// A device that is attached to no node is on those of its holders.
bool is_on_its_holders_nodes(const EnforceOn& on, const World& world, const DeviceKey& key) {
  const auto* state = world.tracker().find(key);
  return state != nullptr && !state->holders.empty() && std::ranges::all_of(state->holders, [&](std::string_view uid) {
           const auto* record = world.pod(uid);
           return record != nullptr && selects_node(on, world, record->pod.node_name);
         });
}

}  // namespace

bool is_in_share(const DeviceKey& card, std::int64_t percent) {
  constexpr std::uint64_t kParts = 10'000;
  auto hash = stable_hash(fmt::format("{}\n{}\n{}\n{}", to_string(card.source), card.scope, card.place, card.device));
  // Names that differ in their last digit alone must not lie side by side. **Source:** the finalizer of MurmurHash3.
  hash = (hash ^ (hash >> 33U)) * 0xff51afd7ed558ccdU;
  hash = (hash ^ (hash >> 33U)) * 0xc4ceb9fe1a85ec53U;
  hash ^= hash >> 33U;
  return static_cast<std::int64_t>(hash % kParts) < percent * static_cast<std::int64_t>(kParts / 100);
}

std::optional<EnforceMiss> enforce_miss(const DevicePolicy& rules, const World& world, const DeviceKey& key) {
  if (!rules.enforce_on) return std::nullopt;
  const auto& on = *rules.enforce_on;
  if (!on.nodes.requirements.empty()) {
    const auto node = world.node_of(key);
    if (node.empty() ? !is_on_its_holders_nodes(on, world, key) : !selects_node(on, world, node))
      return EnforceMiss::Node;
  }
  if (const auto miss = miss_of_share(on, world, key)) return miss;
  return miss_of_holders(on, world, key, nullptr);
}

std::optional<EnforceMiss> enforce_miss(const DevicePolicy& rules, const World& world, const k8s::Pod& pod,
                                        const DeviceKey& key) {
  if (!rules.enforce_on) return std::nullopt;
  const auto& on = *rules.enforce_on;
  if (!selects_node(on, world, pod.node_name)) return EnforceMiss::Node;
  if (!on.nodes.requirements.empty()) {
    const auto node = world.node_of(key);
    // It may have held the device alone, and be gone.
    if (!node.empty() && !selects_node(on, world, node)) return EnforceMiss::Node;
  }
  if (!names_namespace(on, pod.meta.ns)) return EnforceMiss::Namespace;
  if (const auto miss = miss_of_share(on, world, key)) return miss;
  return miss_of_holders(on, world, key, &pod);
}

std::optional<EnforceMiss> enforce_miss(const DevicePolicy& rules, const World& world, const k8s::Pod& pod,
                                        const HeldDevice& held_device) {
  if (!rules.enforce_on) return std::nullopt;
  if (!held_device.ambiguous) {
    if (const auto miss = enforce_miss(rules, world, pod, held_device.key)) return miss;
  }
  for (const auto& candidate : held_device.candidates) {
    if (!held_device.ambiguous) break;
    if (const auto miss = enforce_miss(rules, world, pod, candidate)) return miss;
  }
  const bool goes_with_gang = rules.evict && rules.evict->groups_together && pod.is_marked;
  const auto gang = goes_with_gang ? gang_of(pod) : std::nullopt;
  if (!gang) return std::nullopt;
  for (const auto& uid : world.members_of(gang->key)) {
    const auto* record = world.pod(uid);
    if (record == nullptr || !is_live(record->pod) || record->pod.node_name.empty()) continue;
    const auto& on = *rules.enforce_on;
    if (!selects_node(on, world, record->pod.node_name) || !names_namespace(on, record->pod.meta.ns))
      return EnforceMiss::Gang;
  }
  return std::nullopt;
}

Mode mode_on(const DevicePolicy* rules, const Policy& policy, const World& world, const DeviceKey& key) {
  const auto mode = effective_mode(rules, policy);
  if (mode != Mode::Enforce || rules == nullptr || !enforce_miss(*rules, world, key)) return mode;
  return Mode::Observe;
}

Mode mode_for(const DevicePolicy& rules, const Policy& policy, const World& world, const k8s::Pod& pod,
              const DeviceKey& key) {
  const auto mode = effective_mode(&rules, policy);
  return mode == Mode::Enforce && enforce_miss(rules, world, pod, key) ? Mode::Observe : mode;
}

std::string words_of(EnforceMiss miss, const DevicePolicy& rules) {
  const auto& on = *rules.enforce_on;
  const auto names = [&] { return fmt::format("{}", fmt::join(on.namespaces, ", ")); };
  std::string why;
  switch (miss) {
    case EnforceMiss::Node:
      why = "its nodeSelector does not select the node";
      break;
    case EnforceMiss::Share:
      why = fmt::format("the device is not among its {}%", on.percent);
      break;
    case EnforceMiss::Namespace:
      why = fmt::format("the pod is in none of its namespaces ({})", names());
      break;
    case EnforceMiss::Holder:
      why = fmt::format("another pod that holds the device is in none of its namespaces ({})", names());
      break;
    case EnforceMiss::Nobody:
      why = fmt::format("no pod of its namespaces ({}) holds the device", names());
      break;
    case EnforceMiss::Gang:
      why = "a pod of its gang is elsewhere";
      break;
  }
  return fmt::format("policy {} observes here by enforceOn: {}", rules.name, why);
}

}  // namespace dhc
