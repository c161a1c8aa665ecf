// The part of World that judges a device's Healthy by who says it: one that began after the device was called
// bad may have forgotten it.
#include <algorithm>
#include <utility>

#include "domain/cluster/world.h"
#include "domain/contract/names.h"

namespace dhc {

namespace {

/// No machine boots so soon after a word of its kubelet: a boot that is seen sooner came before the word, in a watch
/// that is behind the pods'.
constexpr Millis kQuickestBoot = Seconds(15);

}  // namespace

void World::note_incidents(std::map<DeviceKey, OpenIncident> incidents) {
  std::vector<DeviceKey> ended;
  for (const auto& [key, incident] : incidents_) {
    if (!incidents.contains(key)) ended.push_back(key);
  }
  for (const auto& key : ended) note_incident(key, std::nullopt);
  for (auto& [key, incident] : incidents) note_incident(key, std::move(incident));
}

void World::recall_incidents(std::map<DeviceKey, OpenIncident> incidents) {
  for (auto& [key, known] : incidents_) {
    if (incidents.contains(key)) continue;
    known.reported = false;
    dirty_devices_.insert(key);
  }
  note_incidents(std::move(incidents));
}

void World::note_incident(const DeviceKey& key, std::optional<OpenIncident> incident) {
  const auto known = incidents_.find(key);
  const bool is_known = known != incidents_.end();
  if (!incident) {
    if (!is_known) return;
    const bool was_reported = known->second.reported;
    incidents_.erase(known);
    by_taint_.erase(key);
    touched_.device(key);
    heard_again_ = true;
    if (was_reported) believe(key);
    return;
  }
  if (is_known && known->second == *incident) return;
  touched_.device(key);
  dirty_devices_.insert(key);
  const bool ends_report = is_known && known->second.reported && !incident->reported;
  incident->taint.key.empty() ? (void)by_taint_.erase(key) : (void)by_taint_.insert(key);
  incidents_.insert_or_assign(key, *std::move(incident));
  if (ends_report) believe(key);
}

void World::believe(const DeviceKey& key) {
  dirty_devices_.insert(key);
  if (tracker_.find(key) != nullptr && believed_.insert(key).second) heard_again_ = true;
}

/// Null: none, or its node or the card has been another's since, which says nothing about what sits there now.
const OpenIncident* World::remembered(const DeviceKey& key) const {
  const auto found = incidents_.find(key);
  if (found == incidents_.end()) return nullptr;
  const auto& incident = found->second;
  if (is_of_other_card(key, incident)) return nullptr;
  const auto* host = node_under(key);
  const bool is_other = host != nullptr && !incident.host_uid.empty() && host->meta.uid != incident.host_uid;
  return is_other && !names_hardware(key) ? nullptr : &incident;
}

/// As above, of an incident in which the kubelet has called the device bad.
const OpenIncident* World::reported_incident(const DeviceKey& key) const {
  const auto* incident = remembered(key);
  return incident != nullptr && incident->reported ? incident : nullptr;
}

/// Devices that pods on the node hold are judged again by who reports on them.
void World::note_reporters(std::string_view node) {
  if (node.empty()) return;
  touched_.node(node);
  held_cards_.note_node(node);
  for (const auto& uid : pods_on(node)) {
    for (const auto& held_device : pods_.at(uid).held_devices) dirty_devices_.insert(held_device.key);
  }
}

/// A driver whose pod is not known shows its start by slices that are made anew: its kubelet deletes them half a minute
/// after it has gone. One that is back sooner cannot be told from one that never went.
std::optional<Reporter> World::publisher_of(const DeviceKey& key) const {
  const auto* slice = inventory_.slice_of(key);
  if (slice == nullptr || slice->node_name.empty() || !slice->meta.creation) return std::nullopt;
  const auto made = *slice->meta.creation;
  return Reporter{.name = "the driver whose ResourceSlice " + slice->meta.name + " was made",
                  .began = ours(made),
                  .start = made,
                  .newest = made,
                  // Called bad in that second it is by this driver: the one before has been silent for half a minute.
                  .within = Millis(0)};
}

std::optional<Reporter> World::reporter_of(const DeviceKey& key) const {
  const auto host = inventory_.node_of(key);
  auto reporter = reporters_.latest(key, host);
  if (key.source != DeviceKey::Source::Plugin) return reporter ? reporter : publisher_of(key);
  const auto* book = resource_book(host, key.scope);
  if (book == nullptr || !book->fell_at) return reporter;
  const auto fell = book->fell_at->wall;
  if (reporter && reporter->began >= fell) return reporter;
  return Reporter{.name = "the registration of " + key.scope + " with the kubelet of " + host,
                  .began = fell,
                  .start = {},
                  .newest = fell};
}

bool World::has_informer(const DeviceKey& key) const { return reporters_.has_informer(key, inventory_.node_of(key)); }

std::optional<Rollout> World::rollout_of(const DeviceKey& key) const {
  const auto host = inventory_.node_of(key);
  auto rollout = reporters_.rollout(key, host);
  if (!rollout) return std::nullopt;
  const auto* made_on = node(host);
  const auto node_made = made_on == nullptr ? std::nullopt : made_on->meta.creation;
  // The first that is known there may be the first there was: of a new node, or of a driver that is installed.
  const bool is_first = !rollout->is_leaving && rollout->began == rollout->made;
  const bool is_new_node = node_made && rollout->made < *node_made + kRolloutHold;
  if (is_first && (is_new_node || rollout->is_first_release)) return std::nullopt;
  rollout->began = ours(rollout->began);
  rollout->until = ours(rollout->until);
  return rollout;
}

std::vector<ServingRelease> World::releases_of(const DeviceKey& key) const {
  auto releases = reporters_.releases(key, inventory_.node_of(key));
  for (auto& release : releases) release.made = ours(release.made);
  return releases;
}

/// A pod that its plugin asks was there when the device was called bad, and is there no more.
bool World::is_without_informer(const DeviceKey& key, const OpenIncident& incident) const {
  return incident.informed && !incident.word.taken_back_at && !has_informer(key);
}

bool World::has_forgotten(const DeviceKey& key, const OpenIncident& incident) const {
  if (incident.vouched_for) return false;
  if (incident.forgotten) return true;
  if (is_without_informer(key, incident)) return true;
  const auto* host = node_under(key);
  if (host != nullptr && !incident.boot_id.empty() && !host->boot_id.empty() && host->boot_id != incident.boot_id) {
    return true;
  }
  const auto reporter = reporter_of(key);
  return reporter && may_have_forgotten(*reporter, incident.word);
}

bool World::has_reported_incident(const DeviceKey& key) const {
  const auto found = incidents_.find(key);
  return found != incidents_.end() && found->second.reported;
}

bool World::is_called_bad(const DeviceKey& key, const DeviceState& state) const {
  return !has_reported_incident(key) && state.unhealthy_since && !believed_.contains(key);
}

/// Slices that are made anew come no later than what is said after them: of a DRA driver only its pod's start may.
bool World::is_reporter_known(const DeviceKey& key) const {
  const bool is_plugin = key.source == DeviceKey::Source::Plugin;
  return (is_plugin ? reporter_of(key) : reporters_.latest(key, inventory_.node_of(key))).has_value();
}

bool World::may_be_forgotten(const DeviceKey& key, const DeviceState& state) const {
  if (has_reported_incident(key)) return key.source == DeviceKey::Source::Plugin || is_reporter_known(key);
  return is_called_bad(key, state) && is_reporter_known(key);
}

/// Another boot of its node than the one under which it was called bad has reset the device.
bool World::is_reset(const DeviceKey& key, const DeviceState& state, WallTime called_bad_at) const {
  const auto* host = node_under(key);
  if (host == nullptr || host->boot_id.empty() || state.boot_id.empty() || host->boot_id == state.boot_id) return false;
  const auto book = books_.find(host->meta.name);
  const auto seen_at = book == books_.end() ? std::nullopt : book->second.booted_at();
  return !seen_at || *seen_at >= called_bad_at + kQuickestBoot;
}

bool World::is_forgotten(const DeviceKey& key, const DeviceState& state) const {
  if (const auto* incident = reported_incident(key)) return has_forgotten(key, *incident);
  if (!is_called_bad(key, state)) return false;
  const auto word = last_word(key, state);
  // Nothing of a device that was reset has been taken out of service yet.
  if (is_reset(key, state, word->called_bad_at)) return false;
  const auto reporter = reporter_of(key);
  return reporter && may_have_forgotten(*reporter, *word);
}

std::optional<LastWord> World::last_word(const DeviceKey& key, const DeviceState& state) const {
  if (const auto* incident = reported_incident(key)) return incident->word;
  if (!state.unhealthy_since) return std::nullopt;
  const auto said = std::max(state.called_bad_at.value_or(*state.unhealthy_since), *state.unhealthy_since);
  return LastWord{.called_bad_at = said.wall};
}

bool World::is_passed_on(const DeviceKey& key) const {
  const auto* host = node_under(key);
  if (host == nullptr || !host->ready) return false;
  if (key.source == DeviceKey::Source::Dra) return true;
  const auto* book = resource_book(host->meta.name, key.scope);
  // With all its devices bad nobody can tell it from a plugin that is gone.
  return book != nullptr && !book->plugin_dead && book->allocatable > 0;
}

/// A reporter that has begun anew, and under which the device still reads Unhealthy when the kubelet has long dropped
/// the words of the one before, calls it bad itself; or it never was the one that reports on it.
void World::look_at_standing(const DeviceKey& key, const Now& now) {
  const auto* state = tracker_.find(key);
  const bool is_bad = state != nullptr && state->has_source && state->health == k8s::Health::Unhealthy;
  const bool may_speak = is_bad && is_passed_on(key);
  const auto reporter = may_speak ? reporter_of(key) : std::nullopt;
  const auto word = may_speak ? last_word(key, *state) : std::nullopt;
  const bool has_begun = reporter && word && may_have_forgotten(*reporter, *word);
  // Of one that went while no controller watched nothing tells when: now it is gone.
  const auto* incident = reported_incident(key);
  const bool has_lost = word && incident != nullptr && is_without_informer(key, *incident);
  if (!has_begun && !has_lost) return (void)standing_.erase(key);
  const auto start = has_begun ? reporter->start.value_or(reporter->began) : word->called_bad_at;
  const Standing fresh{.start = start, .since = now.mono};
  auto& standing = standing_.try_emplace(key, fresh).first->second;
  if (standing.start != fresh.start) standing = fresh;
  // What has not been heard of since may have changed.
  if (!is_heard_since({k8s::Kind::Pod, k8s::Kind::Node}, standing.since + kOwnWord)) return;
  const auto spoke = has_begun ? std::max(reporter->began, word->called_bad_at) + Seconds(1) : now.wall;
  tracker_.note_called_bad(key, {.mono = now.mono, .wall = spoke}, node_under(key)->boot_id);
  standing_.erase(key);
}

}  // namespace dhc
