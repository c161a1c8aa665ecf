#include "domain/findings/match_device.h"

#include <algorithm>
#include <string>
#include <vector>

namespace dhc {

bool names_device(const Match& match, const DeviceKey& key) {
  if (match.resources.empty() && match.drivers.empty()) return true;
  const auto& globs = key.source == DeviceKey::Source::Plugin ? match.resources : match.drivers;
  return std::ranges::any_of(globs, [&](const std::string& glob) { return glob_matches(glob, key.scope); });
}

std::optional<MatchPart> selector_misfit(const Match& match, const World& world, const k8s::Pod& pod,
                                         const DeviceKey& key) {
  static constexpr k8s::StringMap kNone{};
  if (!names_device(match, key)) return MatchPart::Device;
  const auto* ns = world.namespace_of(pod.meta.ns);
  if (!match.namespaces.matches(ns == nullptr ? kNone : ns->labels)) return MatchPart::Namespace;
  if (!match.pods.matches(pod.meta.labels)) return MatchPart::Pod;
  const auto* node = world.node(pod.node_name);
  if (!match.nodes.matches(node == nullptr ? kNone : node->meta.labels)) return MatchPart::Node;
  return std::nullopt;
}

std::optional<MatchPart> unhealthy_misfit(const Match& match, std::string_view said) {
  if (!wants(match, k8s::Health::Unhealthy)) return MatchPart::Health;
  if (!message_fits(match, said)) return MatchPart::Message;
  return std::nullopt;
}

bool wants(const Match& match, k8s::Health health) {
  return std::ranges::find(match.health, health) != match.health.end();
}

bool message_fits(const Match& match, std::string_view said) { return !match.message || match.message->matches(said); }

std::optional<TaintWord> taint_word(const Match& match, const World& world, const DeviceKey& key, const Now& now,
                                    const KeptTaint* open) {
  if (match.device_taints.empty() || !world.driver_taints().is_tainted(key)) return std::nullopt;  // of nearly all
  return world.driver_taints().word_for(key, match.device_taints, now.mono,
                                        open == nullptr ? std::string_view() : open->taint.key);
}

bool is_called_bad_by_taint(const Policy& policy, const World& world, const DeviceKey& key, const Now& now) {
  const auto* node = world.node_under(key);
  const auto labels = node == nullptr ? k8s::StringMap() : node->meta.labels;
  return std::ranges::any_of(policy.policies, [&](const DevicePolicy& one) {
    return effective_mode(&one, policy) == Mode::Enforce && names_device(one.match, key) &&
           one.match.nodes.matches(labels) && taint_word(one.match, world, key, now).has_value();
  });
}

}  // namespace dhc
