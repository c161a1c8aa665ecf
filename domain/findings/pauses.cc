#include "domain/findings/pauses.h"

#include <algorithm>
#include <array>

namespace dhc {

namespace {

bool any_fits(const std::vector<std::string>& globs, std::string_view name) {
  return std::ranges::any_of(globs, [&](const std::string& glob) { return glob_matches(glob, name); });
}

bool pauses_device(const ScopedPause& pause, const DeviceKey& key) {
  if (pause.drivers.empty() && pause.resources.empty()) return true;
  return any_fits(key.source == DeviceKey::Source::Dra ? pause.drivers : pause.resources, key.scope);
}

bool pauses_node(const ScopedPause& pause, const World& world, const std::string& name) {
  static constexpr k8s::StringMap kUnlabelled{};
  if (!pause.nodes.empty() && !any_fits(pause.nodes, name)) return false;
  const auto* node = world.node(name);
  return pause.node_labels.matches(node == nullptr ? kUnlabelled : node->meta.labels);
}

bool pauses_namespace(const ScopedPause& pause, std::string_view ns) {
  return pause.namespaces.empty() || any_fits(pause.namespaces, ns);
}

/// Whether it pauses a pod that holds the device.
bool pauses_a_holder(const ScopedPause& pause, const World& world, const DeviceKey& key) {
  const auto* state = world.tracker().find(key);
  return state != nullptr && std::ranges::any_of(state->holders, [&](std::string_view uid) {
           const auto* record = world.pod(uid);
           return record != nullptr && pauses_namespace(pause, record->pod.meta.ns) &&
                  pauses_node(pause, world, record->pod.node_name);
         });
}

/// As it is said of a pod of this namespace, in words that its tenant reads: no other's is named. Empty: of no pod.
Pause words_for(const ScopedPause& pause, const std::string& ns) {
  if (pause.namespaces.empty() || ns.empty()) return words_of(pause);
  auto own = pause;
  own.namespaces = {ns};
  return words_of(own);
}

/// The longest of what holds everything and of the parts that fit.
template <class Fits>
std::optional<Pause> longest(const Policy& policy, WallTime now, const Fits& fits, const std::string& told_in = {}) {
  auto found = pause_of(policy, now);
  for (const auto* list : {&policy.limits.pauses, &policy.pauses}) {
    for (const auto& one : *list) {
      if (one.until <= now || !fits(one)) continue;
      auto pause = words_for(one, told_in);
      if (!found || ends_later(pause, *found)) found = std::move(pause);
    }
  }
  return found;
}

}  // namespace

std::optional<Pause> pause_for(const World& world, const Policy& policy, WallTime now, const k8s::Pod& pod,
                               const DeviceKey& key) {
  const auto fits = [&](const ScopedPause& one) {
    return pauses_device(one, key) && pauses_namespace(one, pod.meta.ns) && pauses_node(one, world, pod.node_name);
  };
  return longest(policy, now, fits, pod.meta.ns);
}

std::optional<Pause> pause_on(const World& world, const Policy& policy, WallTime now, const DeviceKey& key) {
  const auto fits = [&](const ScopedPause& one) {
    if (!pauses_device(one, key)) return false;
    return pauses_a_holder(one, world, key) || (one.namespaces.empty() && pauses_node(one, world, world.node_of(key)));
  };
  return longest(policy, now, fits);
}

std::optional<Pause> pause_in(const Policy& policy, WallTime now, std::string_view ns) {
  const auto fits = [&](const ScopedPause& one) { return any_fits(one.namespaces, ns); };
  return longest(policy, now, fits);
}

std::vector<Pause> standing_pauses(const Policy& policy, WallTime now) {
  std::vector<Pause> found;
  for (const auto* list : {&policy.limits.pauses, &policy.pauses}) {
    for (const auto& one : *list) {
      if (one.until > now) found.push_back(words_of(one));
    }
  }
  return found;
}

}  // namespace dhc
