#include "reconcilers/shared/tolerations.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "domain/contract/our_taint.h"

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
    if (std::ranges::none_of(named, [&](const DeviceTaintMatch& match) { return match.fits(taint); })) continue;
    if (!k8s::tolerates(tolerations, taint)) return {};
    words += (words.empty() ? "" : ", ") + to_string(taint);
  }
  return words;
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

std::optional<HoldReason> tolerated(const AffectedPod& affected, const PlanInput& input) {
  const auto& held_device = *affected.held_device;
  if (held_device.key.source != DeviceKey::Source::Dra) return std::nullopt;
  const auto hold = [](const std::string& taint) {
    return HoldReason{.reason = Reason::TaintTolerated,
                      .message = fmt::format("its claim tolerates the device's taint {}: a replacement could be given "
                                             "the same device again",
                                             taint),
                      .until = {}};
  };
  const auto tolerates_ours = [&](const DeviceKey& key) {
    return k8s::tolerates(tolerations_of(held_device, key, input.world), rule_taint());
  };
  if (on_each_device(held_device, tolerates_ours)) return hold(to_string(rule_taint()));
  const auto tolerates_named = [&](const DeviceKey& key) {
    return !named_and_tolerated(affected, key, input.world).empty();
  };
  if (!on_each_device(held_device, tolerates_named)) return std::nullopt;
  const auto& first = held_device.ambiguous ? held_device.candidates.front() : held_device.key;
  return hold(named_and_tolerated(affected, first, input.world));
}

}  // namespace dhc
