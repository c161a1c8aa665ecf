#include "reconcilers/shared/tolerations.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "domain/contract/our_taint.h"
#include "domain/incidents/node_case.h"

namespace dhc {

namespace {

/// Where the report may mean one of several devices, the taint of each.
template <class Tolerates>
bool on_each_device(const HeldDevice& held_device, const Tolerates& tolerates) {
  if (!held_device.ambiguous) return tolerates(held_device.key);
  return !held_device.candidates.empty() && std::ranges::all_of(held_device.candidates, tolerates);
}

/// The taints that the policy names and that stand on the device, in words, if all of them are tolerated; else empty.
std::string named_and_tolerated(const AffectedPod& affected, const DeviceKey& key, const World& world) {
  const auto& named = affected.policy->match.device_taints;
  if (named.empty()) return {};
  const auto tolerations = tolerations_of(*affected.held_device, key, world);
  std::string words;
  for (const auto& taint : world.driver_taints().standing(key)) {
    if (!fits_any(named, taint)) continue;
    if (!k8s::tolerates(tolerations, taint)) return {};
    words += (words.empty() ? "" : ", ") + to_string(taint);
  }
  return words;
}

/// The tenant's word about the very fault that the policy acts on.
std::optional<HoldReason> accepts_fault(const AffectedPod& affected, const PlanInput& input) {
  const auto& held_device = *affected.held_device;
  const auto accepts = [&](const DeviceKey& key) { return !named_and_tolerated(affected, key, input.world).empty(); };
  if (!on_each_device(held_device, accepts)) return std::nullopt;
  const auto& first = held_device.ambiguous ? held_device.candidates.front() : held_device.key;
  return HoldReason{.reason = Reason::TaintTolerated,
                    .message = fmt::format("its claim tolerates the device's taint {}, which deviceTaints of policy {} "
                                           "names: the pod accepts such a device",
                                           named_and_tolerated(affected, first, input.world), affected.policy->name),
                    .until = {}};
}

/// Whether our taint keeps others off, or is going to, and nothing keeps the replacement off.
std::optional<HoldReason> would_come_back(const AffectedPod& affected, const PlanInput& input) {
  if (affected.policy->evict && affected.policy->evict->untainted) return std::nullopt;
  const bool by_node = needs_node_taint(input.world, affected.key);
  const bool has_ours = will_be_tainted(affected, input) || (by_node && node_is_tainted(affected, input.world));
  if (!has_ours || !tolerates_ours(affected, input.world) || is_kept_off(affected, input)) return std::nullopt;
  return HoldReason{
      .reason = Reason::TaintTolerated,
      .message = fmt::format("{} {}: a replacement could be given the same device again",
                             by_node ? "the pod tolerates the node's taint" : "its claim tolerates the device's taint",
                             to_string(by_node ? node_taint() : rule_taint())),
      .until = {}};
}

}  // namespace

std::vector<k8s::Toleration> tolerations_of(const HeldDevice& held_device, const DeviceKey& key, const World& world) {
  const auto* claim = held_device.claim.empty() ? nullptr : world.claim(held_device.claim);
  if (claim == nullptr || claim->meta.uid != held_device.claim_uid) return {};
  std::optional<std::vector<k8s::Toleration>> common;
  for (const auto& result : claim->results) {
    if (result.admin_access || DeviceKey::dra(result.driver, result.pool, result.device) != key) continue;
    if (!common) common = result.tolerations;
    std::erase_if(*common, [&](const k8s::Toleration& one) {
      return std::ranges::find(result.tolerations, one) == result.tolerations.end();
    });
  }
  return common.value_or(std::vector<k8s::Toleration>());
}

bool is_kept_off(const AffectedPod& affected, const PlanInput& input) {
  return on_each_device(*affected.held_device, [&](const DeviceKey& key) {
    const auto tolerations = tolerations_of(*affected.held_device, key, input.world);
    return input.world.inventory().unschedulable_because(key, {}, tolerations).has_value();
  });
}

bool will_be_tainted(const AffectedPod& affected, const PlanInput& input) {
  const auto& taint = affected.policy->taint;
  const auto* record = input.incidents.find(affected.key);
  if (!taint || (record != nullptr && record->is_open() && record->is_acknowledged())) return false;
  if (!needs_node_taint(input.world, affected.key)) {
    return taint->device != TaintRules::Device::Never && !affected.held_device->ambiguous;
  }
  const auto found = input.node_cases.find({input.world.node_of(affected.key), affected.key.scope});
  return found != input.node_cases.end() && found->second.enough &&
         (found->second.mode == Mode::Enforce || affected.mode != Mode::Enforce);
}

bool node_is_tainted(const AffectedPod& affected, const World& world) {
  const auto* node = world.node(affected.pod().node_name);
  return node != nullptr && std::ranges::find(node->taints, node_taint()) != node->taints.end();
}

bool tolerates_ours(const AffectedPod& affected, const World& world) {
  if (affected.key.source != DeviceKey::Source::Dra) return false;
  if (needs_node_taint(world, affected.key)) {
    return k8s::tolerates(affected.pod().scheduling->tolerations, node_taint());
  }
  return on_each_device(*affected.held_device, [&](const DeviceKey& key) {
    return k8s::tolerates(tolerations_of(*affected.held_device, key, world), rule_taint());
  });
}

std::optional<HoldReason> tolerated(const AffectedPod& affected, const PlanInput& input) {
  if (affected.held_device->key.source != DeviceKey::Source::Dra) return std::nullopt;
  if (auto hold = accepts_fault(affected, input)) return hold;
  return would_come_back(affected, input);
}

}  // namespace dhc
