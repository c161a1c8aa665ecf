#include "domain/cluster/speakers.h"

#include <algorithm>
#include <utility>

namespace dhc {

namespace {

/// That a device was made ready for its pod says nothing about its health. **Source:** KEP-4817 and dranet, which write
/// `Ready` and `NetworkReady` as they prepare a claim.
bool speaks_of_health(const k8s::Condition& condition) {
  return condition.status != "True" || !condition.type.ends_with("Ready");
}

Heard& heard_from(SlimVector<Heard>& heard, const Speaker& who) {
  const auto found = std::ranges::find(heard, who, &Heard::who);
  return found == heard.end() ? heard.emplace_back(Heard{.who = who}) : *found;
}

bool says_something(const HeldDevice& held_device) {
  return !held_device.other_word.empty() || (held_device.reported && *held_device.reported != k8s::Health::Unknown);
}

}  // namespace

SlimVector<Heard> heard_of(const k8s::Pod& pod, std::span<const HeldDevice> held_devices) {
  SlimVector<Heard> heard;
  for (const auto& held_device : held_devices) {
    auto& entry = heard_from(heard, {.source = held_device.key.source, .scope = held_device.key.scope});
    entry.has_spoken = entry.has_spoken || says_something(held_device);
    if (held_device.ambiguous) continue;
    ++entry.held;
    if (held_device.reported) ++entry.reported;
  }
  // A driver may serve an extended resource too, by a claim that the scheduler has made.
  if (!pod.claims.empty()) return heard;
  for (const auto& request : pod.requests) {
    auto& entry = heard_from(heard, {.source = DeviceKey::Source::Plugin, .scope = request.resource});
    if (entry.held == 0 && !entry.has_spoken) entry.held = 1;
  }
  return heard;
}

namespace {

/// Brings `unheard` to what is known of the node now.
void follow(SpeakerSight& sight, const SharedText& node) {
  const auto there = sight.nodes.find(node);
  const bool is_unheard = there != sight.nodes.end() && there->second.reported == 0;
  is_unheard ? (void)sight.unheard.insert(node) : (void)sight.unheard.erase(node);
}

}  // namespace

void Speakers::add(const SharedText& node, std::span<const Heard> heard, const Now& now) {
  for (const auto& entry : heard) {
    auto& sight = all_[entry.who];
    if (entry.has_spoken) note_word(sight);
    if (sight.held == 0) sight.since = moment_of(now);
    sight.held += entry.held;
    sight.reported += entry.reported;
    if (entry.held == 0) continue;
    auto& there = sight.nodes[node];
    if (there.held == 0) there.since = moment_of(now);
    there.held += entry.held;
    there.reported += entry.reported;
    follow(sight, node);
  }
}

void Speakers::note_word(SpeakerSight& sight) {
  if (!std::exchange(sight.has_spoken, true)) ++first_words_;
}

void Speakers::remove(const SharedText& node, std::span<const Heard> heard) {
  for (const auto& entry : heard) {
    const auto found = all_.find(entry.who);
    if (found == all_.end()) continue;
    auto& sight = found->second;
    sight.held -= entry.held;
    sight.reported -= entry.reported;
    if (const auto there = sight.nodes.find(node); there != sight.nodes.end() && entry.held > 0) {
      there->second.held -= entry.held;
      there->second.reported -= entry.reported;
      if (there->second.held == 0) sight.nodes.erase(there);
      follow(sight, node);
    }
    // Who has spoken is remembered, or a driver's every pause would be news.
    if (sight.held == 0 && !sight.has_spoken) all_.erase(found);
  }
}

void Speakers::note(const k8s::ResourceClaim& claim) {
  for (const auto& device : claim.devices) {
    if (std::ranges::any_of(device.conditions, speaks_of_health))
      note_word(all_[{.source = DeviceKey::Source::Dra, .scope = device.driver}]);
  }
}

}  // namespace dhc
