#include "domain/limits/brake.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/wake.h"
#include "domain/cluster/workload.h"
#include "domain/contract/names.h"
#include "domain/contract/operator_time.h"
#include "domain/contract/our_taint.h"
#include "domain/findings/folded_words.h"

namespace dhc {

namespace {

/// Of a driver or resource on a node so many bad devices that nobody holds are remembered, or as many as it has there:
/// a plugin may name its devices anew with each start. **Source:** resource.k8s.io: a ResourceSlice has at most 128.
constexpr std::size_t kMostUnheld = 128;
/// How long a device is remembered whose pool nobody knows: as where its driver restarts while we do.
constexpr Millis kUnlistedMemory = std::chrono::hours(1);

/// Up to when somebody vouches for the scope: what began until then does not count.
std::optional<WallTime> released_until(const BrakeScope& scope, const BrakeSighting& seen) {
  std::optional<WallTime> vouched;
  if (!scope.workload.empty()) {
    for (const auto* record : pods_of_workload(scope.workload, seen.world))
      vouched = std::max(vouched, vouched_until(record->pod, seen.world, seen.now.wall));
  }
  std::string_view said = seen.policy.brake_release;
  if (!scope.node.empty()) {
    const auto* node = seen.world.node(scope.node);
    said = node == nullptr ? std::string_view()
                           : k8s::find(node->meta.annotations, kBrakeReleaseAnnotation).value_or(std::string_view());
  }
  if (said.empty()) return vouched;
  const auto until = operator_time(said, seen.now.wall);
  return until ? std::max(vouched, std::optional(*until)) : vouched;
}

/// Of an incident in which the device was never Healthy, else null.
const IncidentFacts* standing_of(const DeviceRecord* record) {
  const auto* facts = record == nullptr ? nullptr : record->incident.facts();
  return facts == nullptr || facts->evidence.was_well() ? nullptr : facts;
}

/// An operator's time that is still ahead, or cannot be read, is asked for again: by then it may have come.
bool is_vouched_for(const DeviceKey& key, const BadDevice& bad, const BrakeSighting& seen, std::set<DeviceKey>& again) {
  const auto* record = find_record(seen.records, key);
  if (standing_of(record) != nullptr) return record->is_acknowledged();
  // While the brake is engaged no incident opens that could be acknowledged.
  if (!seen.world.annotated_nodes().contains(bad.node)) return false;
  const auto& annotations = seen.world.node(bad.node)->meta.annotations;
  const auto said = k8s::find(annotations, kAcknowledgeAnnotation);
  const auto until = said ? operator_time(*said, seen.now.wall) : std::unexpected(std::string());
  if (said && !until) again.insert(key);
  return until && bad.began <= *until;
}

/// Tainted by us, or we evicted the pod that held it.
bool is_our_account(const DeviceKey& key, const BadDevice& bad, const BrakeSighting& seen) {
  const auto* rule = seen.world.inventory().rule_named_for(key);
  if (rule != nullptr && is_our_rule(*rule) && rule->taint.effect == "NoSchedule") return true;
  const auto* node = seen.world.node(bad.node);
  if (node != nullptr && our_taint_on(*node)) return true;
  return seen.losses.has_any_of(key);
}

/// Whether its pool is published without it; `unheld_for`: how long nobody has held it.
bool is_unpublished(const DeviceKey& key, const World& world, Millis unheld_for) {
  if (key.source != DeviceKey::Source::Dra) return false;
  const auto& pools = world.inventory().pools();
  const auto pool = pools.find({key.scope, key.place});
  if (pool == pools.end()) return unheld_for >= kUnlistedMemory;
  return pool->second.published && !pool->second.devices.contains(key.device);
}

/// Whether a later Healthy is to be expected of its driver or plugin.
bool says_healthy(const DeviceKey& key, const World& world) {
  const auto& all = world.speakers().all();
  const auto found = all.find({.source = key.source, .scope = key.scope});
  return found != all.end() && found->second.has_spoken;
}

/// Whether its driver has written conditions of the device on the claim of a holder.
bool has_conditions(const DeviceKey& key, const World& world, const std::string& holder) {
  const auto* record = world.pod(holder);
  const auto* held_device = record == nullptr ? nullptr : find_held_device(record->held_devices, key);
  const auto* claim = held_device == nullptr ? nullptr : world.claim(held_device->claim);
  return claim != nullptr && std::ranges::any_of(claim->devices, [&](const auto& device) {
           return DeviceKey::dra(device.driver, device.pool, device.device) == key && !device.conditions.empty();
         });
}

/// Of a device that is held, and of which no policy means anything now: whether that takes back what was said of it. A
/// pod that came later has seen none of it, and its first word may be Unknown; other words are no better health.
bool is_taken_back(const DeviceKey& key, const BadDevice& bad, const World& world) {
  const auto& state = *world.tracker().find(key);
  if (state.health == k8s::Health::Healthy || state.forgotten) return true;
  if (state.unhealthy_since || world.tracker().other_word_of(key) != nullptr) return false;
  if (!bad.unheld_since || !says_healthy(key, world)) return true;
  return std::ranges::any_of(state.holders, [&](const auto& uid) { return has_conditions(key, world, uid); });
}

/// Whether a driver that taints its bad devices shows this one without a taint, and no report has called it bad.
bool is_untainted(const DeviceKey& key, const World& world) {
  if (!world.driver_taints().has_spoken(key.scope) || world.inventory().published(key) == nullptr) return false;
  const auto* state = world.tracker().find(key);
  return world.driver_taints().standing(key).empty() && (state == nullptr || !state->unhealthy_since);
}

/// A plugin's devices have no names while nobody holds them: when all are allocatable none of them is bad.
bool is_allocatable_again(const DeviceKey& key, const World& world, const Now& now) {
  if (key.source != DeviceKey::Source::Plugin) return false;
  const auto* book = world.resource_book(key.place, key.scope);
  return book != nullptr && book->capacity > 0 && book->allocatable >= book->capacity &&
         world.books().at(key.place).healthy_is_believable(key.scope, now);
}

std::size_t most_unheld(const World& world, const std::string& scope, const std::string& node) {
  const auto* book = world.resource_book(node, scope);
  if (book == nullptr) return kMostUnheld;
  return std::max(kMostUnheld, static_cast<std::size_t>(std::max<std::int64_t>(book->largest_capacity, 0)));
}

/// What a restarted reporter calls healthy ends no incident, but is no news of a fault either.
bool is_called_healthy(const AffectedPod& affected, const DeviceRecords& records) {
  const auto* record = find_record(records, affected.key);
  return affected.forgotten && record != nullptr && record->is_open();
}

/// When this process has seen it go bad; none: it was so at the first sight of it.
std::optional<Moment> seen_to_break(const DeviceKey& key, const World& world, const Now& now) {
  const auto* state = world.tracker().find(key);
  if (state != nullptr && state->unhealthy_since)
    return state->seen_healthy ? std::optional(*state->unhealthy_since) : std::nullopt;
  const auto word = standing_taint(world, key, now);
  return word && !word->from_the_start ? std::optional(word->since) : std::nullopt;
}

/// What this process has engaged, and on which devices.
using BrakeGrounds = std::map<BrakeScope, std::map<DeviceKey, std::string>>;

/// Under a brake that a process before us has engaged a device is no later news than that: no incident opens, by which
/// it would be remembered. Of what nobody holds the onset itself is written.
std::optional<Moment> onset_by_brakes(const DeviceKey& key, const BadDevice& bad,
                                      const std::map<BrakeScope, EngagedBrake>& engaged, const BrakeGrounds& own) {
  std::optional<Moment> onset;
  if (engaged.empty() || bad.unheld_since) return onset;
  for (const auto& scope : scopes_of(key, bad)) {
    const auto found = engaged.find(scope);
    if (found == engaged.end() || own.contains(scope)) continue;
    const auto& since = found->second.since;
    if (!onset || since.mono < onset->mono) onset = since;
  }
  return onset;
}

/// When a policy first meant the device, by its incident or the brakes that were read; none: they say nothing of it.
std::optional<Moment> remembered_onset(const DeviceKey& key, std::optional<Moment> by_brakes,
                                       const DeviceRecords& records, const World& world, const Now& now) {
  auto onset = by_brakes;
  if (const auto* facts = standing_of(find_record(records, key))) {
    const auto opened = moment_of(facts->opened_at, now);
    if (!onset || opened.mono < onset->mono) onset = opened;
  }
  if (!onset) return std::nullopt;
  // Whoever has seen it well knows better since when it is bad.
  const auto broke = seen_to_break(key, world, now);
  return broke && broke->mono > onset->mono ? broke : onset;
}

std::int64_t held_by_pods_on(const World& world, const BrakeScope& scope) {
  if (world.tracker().count_of(scope.scope) == 0) return 0;  // no driver's, or nobody holds any
  std::set<DeviceKey> held;
  for (const auto& uid : world.pods_on(scope.node)) {
    for (const auto& held_device : world.pod(uid)->held_devices) {
      if (held_device.key.source == DeviceKey::Source::Dra && held_device.key.scope == scope.scope)
        held.insert(held_device.key);
    }
  }
  return static_cast<std::int64_t>(held.size());
}

/// Of plugins those that are listed, of drivers also what pods hold whose slices are not known.
std::int64_t cards_of(const World& world, const BrakeScope& scope, std::int64_t CardCount::* what) {
  const auto plugins = world.cards().of(DeviceKey::Source::Plugin, scope.scope, scope.node).*what;
  const auto drivers = world.cards().of(DeviceKey::Source::Dra, scope.scope, scope.node).*what;
  const auto held = scope.node.empty() ? world.tracker().count_of(scope.scope) : held_by_pods_on(world, scope);
  return plugins + std::max(drivers, held);
}

BrakeShare share_for(const BrakeScope& scope, const Limits& limits) {
  if (!scope.words.empty()) return limits.brake_by_message;
  if (!scope.workload.empty()) return limits.brake_by_owner;
  return {.percent = limits.brake_percent, .at_least = limits.brake_at_least};
}

bool is_narrow(const BrakeScope& scope) { return !scope.words.empty() || !scope.workload.empty(); }

/// A driver that says no more has taken nothing back.
std::string words_after(const BadDevice& bad, const AffectedPod& affected) {
  auto words = folded_words(affected.said);
  return words.empty() ? bad.words : words;
}

/// Since when the device counts there: what changes its words, or its workload, is news to a brake that counts by them.
MonoTime began_in(const BrakeScope& scope, const BadDevice& bad) {
  if (!scope.words.empty()) return std::max(bad.onset.mono, bad.words_since);
  if (!scope.workload.empty()) return std::max(bad.onset.mono, bad.workload_since);
  return bad.onset.mono;
}

/// Whoever holds a device and makes its pods anew; a pod without a controller is not replaced.
std::string workload_on(const AffectedPod& affected, const World& world) {
  return top_controller_of(affected.pod(), world) == nullptr ? std::string() : workload_of(affected.pod(), world);
}

}  // namespace

std::int64_t most_bad(const Limits& limits, const BrakeScope& scope, std::int64_t known) {
  const auto wanted = share_for(scope, limits);
  const auto share = std::max(wanted.at_least - 1, wanted.percent * known / 100);
  const bool is_counted = limits.brake_count > 0 && !scope.nodes && !is_narrow(scope);
  return is_counted ? std::min(share, limits.brake_count - 1) : share;
}

bool engages(const Limits& limits, const BrakeScope& scope, std::int64_t recent, std::int64_t known) {
  return recent >= share_for(scope, limits).at_least && recent > most_bad(limits, scope, known);
}

/// What counts in one scope.
struct Brake::Tally {
  std::int64_t standing = 0;  // bad now
  std::int64_t recent = 0;    // of them, those that went bad within the window
  std::int64_t known = 0;     // of how many
  std::optional<WallTime> released;
};

std::string to_string(const BrakeScope& scope, const EngagedBrake& brake) {
  if (scope.nodes) {
    return fmt::format("{} of {} nodes with {} reject the pods that they are given", brake.devices, brake.known,
                       scope.scope);
  }
  if (!scope.workload.empty()) {
    return fmt::format("{} of {} devices of {} that {} holds are bad", brake.devices, brake.known, scope.scope,
                       words_of_workload(scope.workload));
  }
  const auto bad = fmt::format("{} of {} devices of {} {} are bad", brake.devices, brake.known, scope.scope,
                               scope.node.empty() ? "in the cluster" : "on node " + scope.node);
  return scope.words.empty() ? bad : fmt::format("{} in the same words, \"{}\"", bad, scope.words);
}

std::string_view suspect_of(const BrakeScope& scope) {
  return scope.workload.empty() ? "a reporting fault" : "what the workload runs";
}

namespace {

/// The brakes that count it by what is said of it, or by who holds it.
void add_narrow(std::vector<BrakeScope>& scopes, const DeviceKey& key, const BadDevice& bad) {
  if (!bad.words.empty()) scopes.push_back({.scope = key.scope, .node = {}, .words = bad.words});
  if (!bad.workload.empty()) scopes.push_back({.scope = key.scope, .node = {}, .workload = bad.workload});
}

}  // namespace

/// The brakes that can hold a device on a node.
std::vector<BrakeScope> Brake::scopes_on(const DeviceKey& key, const std::string& node) const {
  std::vector<BrakeScope> scopes = {{.scope = key.scope, .node = node},
                                    {.scope = key.scope, .node = {}},
                                    {.scope = key.scope, .node = {}, .nodes = true}};
  if (const auto bad = bad_.find(key); bad != bad_.end()) add_narrow(scopes, key, bad->second);
  return scopes;
}

std::vector<BrakeScope> scopes_of(const DeviceKey& key, const BadDevice& bad) {
  std::vector<BrakeScope> scopes = {{.scope = key.scope, .node = {}}};
  add_narrow(scopes, key, bad);
  if (!bad.node.empty()) scopes.push_back({.scope = key.scope, .node = bad.node});
  return scopes;
}

std::int64_t known_cards(const World& world, const BrakeScope& scope) {
  return scope.nodes ? world.cards().nodes_with(scope.scope) : cards_of(world, scope, &CardCount::known);
}

std::int64_t cards_there(const World& world, const std::string& scope, const std::string& node) {
  return cards_of(world, {.scope = scope, .node = node}, &CardCount::there);
}

void Brake::observe(const BrakeSighting& seen) {
  note_signals(seen);
  look_at_silent(seen);
  weigh_devices(seen);
  weigh_nodes(seen);
  follow_trials(seen);
  looked_at_words_ = seen.policy.limits.brake_by_message.at_least > 0;
  looked_at_workloads_ = seen.policy.limits.brake_by_owner.at_least > 0;
}

void Brake::load(BrakeMemory memory, const Now& now) {
  grounds_.merge(std::exchange(grounds_set_aside_, {}));
  std::erase_if(engaged_, [&](const auto& entry) { return !grounds_.contains(entry.first); });
  for (auto& [scope, engaged] : memory.engaged) {
    if (auto own = grounds_.extract(scope)) grounds_set_aside_.insert(std::move(own));
    doubted_.erase(scope);
    engaged_.insert_or_assign(scope, std::move(engaged));
  }
  unnamed_.clear();
  for (const auto& [scope, cards] : memory.unnamed) {
    if (engaged_.contains(scope)) unnamed_[scope] = {.cards = cards, .like = {}, .before = now.wall};
  }
  for (auto& [key, bad] : memory.unheld) {
    for (const auto& scope : scopes_of(key, bad)) {
      if (const auto found = unnamed_.find(scope); found != unnamed_.end()) found->second.like.insert(key);
    }
    bad_.try_emplace(key, std::move(bad));
    count_unheld(key);
    count(key);
  }
  // Of a brake of few devices none may have a name: others of the driver or resource do.
  for (auto& [scope, unnamed] : unnamed_) {
    if (!unnamed.like.empty()) continue;
    for (const auto& [key, bad] : memory.unheld) {
      if (key.scope == scope.scope) unnamed.like.insert(key);
    }
  }
}

void Brake::recall_onsets(const DeviceRecords& records, const World& world, const Now& now) {
  std::set<DeviceKey> moved;
  for (auto& [key, bad] : bad_) {
    const auto onset = remembered_onset(key, onset_by_brakes(key, bad, engaged_, grounds_), records, world, now);
    if (!onset || onset->mono >= bad.onset.mono) continue;
    bad.onset = *onset;
    moved.insert(key);
  }
  if (moved.empty()) return;
  for (auto& [scope, devices] : grounds_) {
    const auto lost = std::erase_if(devices, [&](const auto& entry) { return moved.contains(entry.first); });
    if (lost > 0) doubted_.insert(scope);
  }
}

std::int64_t Brake::unnamed(const BrakeScope& scope, std::optional<WallTime> released) const {
  const auto found = unnamed_.find(scope);
  if (found == unnamed_.end()) return 0;
  const auto& [cards, like, before] = found->second;
  if (like.empty() || (released && before <= *released)) return 0;
  const auto still = std::ranges::count_if(like, [&](const auto& key) { return counted_.contains(key); });
  const auto all = std::ssize(like);
  return (cards * still + all - 1) / all;
}

void Brake::note_signals(const BrakeSighting& seen) {
  std::erase_if(asked_again_, [&](const DeviceKey& key) { return is_in(seen.focus, key); });
  for_each_in(seen.focus, bad_, [](const DeviceKey& /*key*/, BadDevice& bad) { bad.speaks = false; });
  for_each_affected(seen.affected_pods, seen.in_focus,
                    [&](const AffectedPod& affected) { note_signal(affected, seen); });
  for_each_in(seen.focus, bad_, [&](const DeviceKey& key, BadDevice& bad) {
    bad.acknowledged = is_vouched_for(key, bad, seen, asked_again_);
  });
}

void Brake::note_signal(const AffectedPod& affected, const BrakeSighting& seen) {
  if (is_called_healthy(affected, seen.records)) return;
  const auto& key = affected.key;
  const auto [found, is_new] = bad_.try_emplace(key);
  auto& bad = found->second;
  if (is_new) bad.card = seen.world.inventory().card_of(key);
  if (!bad.speaks) {
    const auto& limits = seen.policy.limits;
    auto words = limits.brake_by_message.at_least > 0 ? words_after(bad, affected) : std::string();
    auto workload = limits.brake_by_owner.at_least > 0 ? workload_on(affected, seen.world) : std::string();
    if (!is_new && looked_at_words_ && words != bad.words) bad.words_since = seen.now.mono;
    if (!is_new && looked_at_workloads_ && workload != bad.workload) bad.workload_since = seen.now.mono;
    bad.words = std::move(words);
    bad.workload = std::move(workload);
  }
  if (!bad.speaks || affected.since.wall < bad.began) bad.began = affected.since.wall;
  bad.speaks = true;
  bad.node = affected.pod().node_name;
  bad.out = false;
  bad.unheld_since.reset();
  if (!is_new) return;
  const auto by_brakes = onset_by_brakes(key, bad, engaged_, grounds_);
  bad.onset = remembered_onset(key, by_brakes, seen.records, seen.world, seen.now).value_or(moment_of(seen.now));
}

/// Devices that no report calls bad any more: well again, or without anybody who could say so.
void Brake::look_at_silent(const BrakeSighting& seen) {
  std::vector<DeviceKey> keys;
  if (seen.focus == nullptr || seen.focus->all) {
    for (const auto& [key, bad] : bad_) keys.push_back(key);
    for (const auto& [key, bad] : counted_) keys.push_back(key);
    for (const auto& [key, place] : unheld_) keys.push_back(key);
  } else {
    keys.assign(seen.focus->devices.begin(), seen.focus->devices.end());
  }
  for (const auto& key : keys) {
    look_at_silent(key, seen);
    count_unheld(key);
  }
  // Whoever was here before the first look has been counted by now.
  if (std::exchange(has_new_unheld_, false)) drop_most(seen.world);
  for (const auto& key : keys) count(key);
}

void Brake::look_at_silent(const DeviceKey& key, const BrakeSighting& seen) {
  due_.erase(key);
  const auto found = bad_.find(key);
  if (found == bad_.end() || found->second.speaks) return;
  auto& bad = found->second;
  const bool was_unheld = bad.unheld_since.has_value();
  if (is_over(key, bad, seen)) return (void)bad_.erase(found);
  if (!bad.unheld_since) return;
  has_new_unheld_ = has_new_unheld_ || !was_unheld || seen.focus == nullptr || seen.focus->all;
  if (bad.out) due_.note(key, bad.onset.mono + seen.policy.limits.brake_within);
  const bool is_unlisted =
      key.source == DeviceKey::Source::Dra && !seen.world.inventory().pools().contains({key.scope, key.place});
  if (is_unlisted) due_.note(key, *bad.unheld_since + kUnlistedMemory);
}

std::vector<DeviceKey> Brake::due(const Now& now) const {
  std::vector<DeviceKey> keys(asked_again_.begin(), asked_again_.end());
  std::ranges::move(due_.due(now.mono), std::back_inserter(keys));
  return keys;
}

/// Drops those that nobody holds for longest, where there are more than a node can have.
void Brake::drop_most(const World& world) {
  if (crowded_.empty()) return;
  std::map<Place, std::vector<std::pair<MonoTime, DeviceKey>>> unheld;
  for (const auto& [key, place] : unheld_) {
    if (crowded_.contains(place)) unheld[place].emplace_back(*bad_.at(key).unheld_since, key);
  }
  std::vector<DeviceKey> dropped;
  for (auto& [place, devices] : unheld) {
    const auto most = most_unheld(world, place.first, place.second);
    if (devices.size() <= most) continue;
    std::ranges::sort(devices);
    for (std::size_t i = 0; i + most < devices.size(); ++i) dropped.push_back(devices[i].second);
  }
  for (const auto& key : dropped) {
    bad_.erase(key);
    due_.erase(key);
    count_unheld(key);
    count(key);
  }
}

/// Brings the counts of devices that nobody holds to what is known of this one now.
void Brake::count_unheld(const DeviceKey& key) {
  const auto found = bad_.find(key);
  const auto known = unheld_.find(key);
  const bool is_unheld = found != bad_.end() && found->second.unheld_since;
  const auto place = is_unheld ? Place(key.scope, found->second.node) : Place();
  if (is_unheld ? known != unheld_.end() && known->second == place : known == unheld_.end()) return;
  const auto change = [&](const Place& at, bool is_more) {
    auto& there = unheld_on_[at];
    is_more ? ++there : --there;
    there > kMostUnheld ? (void)crowded_.insert(at) : (void)crowded_.erase(at);
    if (there == 0) unheld_on_.erase(at);
  };
  if (known != unheld_.end()) {
    change(known->second, false);
    unheld_.erase(known);
  }
  if (!is_unheld) return;
  change(place, true);
  unheld_.emplace(key, place);
}

/// Brings the groups to what is known of the device now.
void Brake::count(const DeviceKey& key) {
  const auto known = counted_.find(key);
  const auto found = bad_.find(key);
  const auto is_same = [&] {
    const bool counts = found != bad_.end() && !found->second.acknowledged;
    if (known == counted_.end()) return !counts;
    const auto where = [](const BadDevice& bad) { return std::tie(bad.node, bad.card, bad.words, bad.workload); };
    return counts && where(known->second) == where(found->second);
  };
  if (is_same()) return;
  if (known != counted_.end()) {
    for (const auto& scope : scopes_of(key, known->second)) {
      const auto group = groups_.find(scope);
      group->second.devices.erase(key);
      const auto card = group->second.cards.find({key.place, known->second.card});
      if (--card->second == 0) group->second.cards.erase(card);
      if (group->second.devices.size() < 2) several_.erase(scope);
      if (group->second.devices.empty()) groups_.erase(group);
    }
    counted_.erase(known);
  }
  if (found == bad_.end() || found->second.acknowledged) return;
  for (const auto& scope : scopes_of(key, found->second)) {
    auto& group = groups_[scope];
    group.devices.insert(key);
    if (group.devices.size() >= 2) several_.insert(scope);
    ++group.cards[{key.place, found->second.card}];
  }
  counted_.emplace(key, found->second);
}

/// Whether a device that nobody reports now counts no longer, and never will without a new report. Time alone is no
/// repair: it counts until somebody calls it well, or it is there no more.
bool Brake::is_over(const DeviceKey& key, BadDevice& bad, const BrakeSighting& seen) {
  const auto& now = seen.now;
  // No pod speaks of it: a process after this one learns of it by the state alone.
  const auto note_silent = [&] {
    if (!bad.unheld_since && !engaged_.empty()) ++revision_;
    if (!bad.unheld_since) bad.unheld_since = now.mono;
  };
  if (is_allocatable_again(key, seen.world, now)) return true;
  if (!bad.node.empty() && seen.world.node(bad.node) == nullptr) return true;
  if (is_held(key, seen.world)) {
    bad.out = false;
    if (is_taken_back(key, bad, seen.world)) return true;
    note_silent();
    return false;
  }
  if (is_unpublished(key, seen.world, now.mono - bad.unheld_since.value_or(now.mono))) return true;
  note_silent();
  bad.out = bad.out || is_our_account(key, bad, seen);
  if (bad.out) return now.mono - bad.onset.mono >= seen.policy.limits.brake_within;
  return is_untainted(key, seen.world);
}

void Brake::weigh_devices(const BrakeSighting& seen) {
  const Group none;
  std::map<BrakeScope, const Group*> weighed;
  const auto look = [&](const BrakeScope& scope, const Group& group) {
    const auto enough = static_cast<std::size_t>(share_for(scope, seen.policy.limits).at_least);
    if (enough > 0 && group.devices.size() >= enough) weighed.emplace(scope, &group);
  };
  const auto& limits = seen.policy.limits;
  if (limits.brake_at_least == 1 || limits.brake_by_message.at_least == 1 || limits.brake_by_owner.at_least == 1) {
    for (const auto& [scope, group] : groups_) look(scope, group);
  } else {
    for (const auto& scope : several_) look(scope, groups_.at(scope));
  }
  for (const auto& [scope, brake] : engaged_) {
    if (scope.nodes) continue;
    const auto group = groups_.find(scope);
    weighed.try_emplace(scope, group == groups_.end() ? &none : &group->second);
  }
  for (const auto& [scope, group] : weighed) judge(scope, tally_of(scope, *group, seen), seen);
}

/// Of how many: of a workload those that its pods hold, and those that broke under pods which are gone.
std::int64_t Brake::known_of(const BrakeScope& scope, const Group& group, const World& world) const {
  const auto standing = static_cast<std::int64_t>(group.cards.size());
  if (scope.workload.empty()) return std::max(known_cards(world, scope), standing);
  std::set<std::pair<std::string_view, std::string_view>> cards;
  for (const auto& [card, count] : group.cards) cards.emplace(card.first, card.second);
  for (const auto* record : pods_of_workload(scope.workload, world)) {
    for (const auto& held : record->held_devices) {
      if (held.key.scope == scope.scope && !held.ambiguous)
        cards.emplace(held.key.place, world.inventory().card_of(held.key));
    }
  }
  return static_cast<std::int64_t>(cards.size());
}

/// What counts of a group now. Who went bad within the window is asked only where so many are bad that it matters.
Brake::Tally Brake::tally_of(const BrakeScope& scope, const Group& group, const BrakeSighting& seen) const {
  Tally tally;
  tally.released = released_until(scope, seen);
  const auto unnamed = this->unnamed(scope, tally.released);
  tally.standing = static_cast<std::int64_t>(group.cards.size()) + unnamed;
  tally.known = known_of(scope, group, seen.world);
  const auto most = most_bad(seen.policy.limits, scope, tally.known);
  if (tally.standing <= most && !tally.released) return tally;
  std::set<std::pair<std::string_view, std::string_view>> standing;
  std::set<std::pair<std::string_view, std::string_view>> recent;
  for (const auto& key : group.devices) {
    const auto& bad = bad_.at(key);
    if (tally.released && bad.began <= *tally.released) continue;
    standing.emplace(key.place, bad.card);
    if (seen.now.mono - began_in(scope, bad) < seen.policy.limits.brake_within) recent.emplace(key.place, bad.card);
  }
  tally.standing = static_cast<std::int64_t>(standing.size()) + unnamed;
  tally.recent = static_cast<std::int64_t>(recent.size());
  return tally;
}

/// Rejecting nodes count in the cluster alone, against the nodes that have the resource.
void Brake::weigh_nodes(const BrakeSighting& seen) {
  std::map<BrakeScope, Tally> tallies;
  for (const auto& [scope, brake] : engaged_) {
    if (scope.nodes) tallies[scope].released = released_until(scope, seen);
  }
  for (const auto& [place, rejecting] : seen.rejecting_nodes) {
    const auto since = rejecting.since();
    if (!since) continue;
    auto& tally = tallies[{.scope = place.second, .node = {}, .nodes = true}];
    tally.released = released_until({.scope = place.second, .node = {}, .nodes = true}, seen);
    if (tally.released && since->wall <= *tally.released) continue;
    ++tally.standing;
    if (seen.now.mono - since->mono < seen.policy.limits.brake_within) ++tally.recent;
  }
  for (auto& [scope, tally] : tallies) {
    tally.known = std::max(known_cards(seen.world, scope), tally.standing);
    judge(scope, tally, seen);
  }
}

/// On what it has just engaged.
void Brake::note_grounds(const BrakeScope& scope, const BrakeSighting& seen) {
  auto& grounds = grounds_[scope];
  const auto group = groups_.find(scope);
  if (scope.nodes || group == groups_.end()) return;
  for (const auto& key : group->second.devices) {
    const auto& bad = bad_.at(key);
    if (seen.now.mono - began_in(scope, bad) < seen.policy.limits.brake_within) grounds.emplace(key, bad.card);
  }
}

/// Whether it would have engaged without what was old news then: on the devices that are left, or on those that have
/// gone bad within one window, then or since.
bool Brake::has_grounds(const BrakeScope& scope, std::int64_t known, const Limits& limits) const {
  using Card = std::pair<std::string_view, std::string_view>;
  std::set<Card> left;
  for (const auto& [key, card] : grounds_.at(scope)) left.emplace(key.place, card);
  if (engages(limits, scope, std::ssize(left), known)) return true;
  const auto group = groups_.find(scope);
  if (group == groups_.end()) return false;
  std::vector<std::pair<MonoTime, Card>> onsets;
  for (const auto& key : group->second.devices) {
    const auto& bad = bad_.at(key);
    onsets.emplace_back(began_in(scope, bad), Card(key.place, bad.card));
  }
  std::ranges::sort(onsets);
  std::map<Card, std::int64_t> window;
  auto first = onsets.begin();
  for (const auto& [at, card] : onsets) {
    ++window[card];
    for (; at - first->first >= limits.brake_within; ++first) {
      if (--window[first->second] == 0) window.erase(first->second);
    }
    if (engages(limits, scope, std::ssize(window), known)) return true;
  }
  return false;
}

void Brake::judge(const BrakeScope& scope, const Tally& tally, const BrakeSighting& seen) {
  const auto& limits = seen.policy.limits;
  auto found = engaged_.find(scope);
  const auto at_least = share_for(scope, limits).at_least;
  if (found == engaged_.end() && !engages(limits, scope, tally.recent, tally.known)) return;
  const auto most = most_bad(limits, scope, tally.known);
  if (found == engaged_.end()) {
    const auto now = moment_of(seen.now);
    found = engaged_.try_emplace(scope).first;
    found->second.since = now;
    found->second.waits_from = now;
    note_grounds(scope, seen);
    ++revision_;
  } else if (doubted_.erase(scope) > 0 && !has_grounds(scope, tally.known, limits)) {
    return release(found);
  }
  auto& brake = found->second;
  brake.devices = tally.standing;
  brake.known = tally.known;
  brake.most = most;
  const bool is_off = at_least == 0;
  if (!is_off && tally.standing > most) return brake.low_since.reset();
  if (!brake.low_since) brake.low_since = seen.now.mono;
  const bool by_operator = is_off || (tally.released && brake.since.wall <= *tally.released);
  if (!by_operator && seen.now.mono - *brake.low_since < kReleaseSettle) return;
  release(found);
}

void Brake::release(std::map<BrakeScope, EngagedBrake>::iterator engaged) {
  unnamed_.erase(engaged->first);
  grounds_.erase(engaged->first);
  grounds_set_aside_.erase(engaged->first);
  engaged_.erase(engaged);
  ++revision_;
}

const HeldScope* Brake::holding(const DeviceKey& key, const std::string& node, std::string_view pod_uid) const {
  if (engaged_.empty()) return nullptr;
  const auto lets_go = [&](const std::optional<BrakeTrial>& trial) {
    return trial && trial->is_written && trial->key == key && (pod_uid.empty() || trial->pod_uid == pod_uid);
  };
  for (const auto& scope : scopes_on(key, node)) {
    const auto found = engaged_.find(scope);
    if (found != engaged_.end() && !lets_go(found->second.trial)) return &*found;
  }
  return nullptr;
}

bool Brake::doubts(const DeviceKey& key, const std::string& node) const {
  if (engaged_.empty()) return false;
  return std::ranges::any_of(scopes_on(key, node), [&](const BrakeScope& scope) {
    const auto found = engaged_.find(scope);
    if (found == engaged_.end() || !scope.workload.empty()) return false;
    const auto& trial = found->second.trial;
    return !trial || !trial->is_written || trial->key != key;
  });
}

bool Brake::covers(const DeviceKey& key, const std::string& node) const {
  return !engaged_.empty() && std::ranges::any_of(scopes_on(key, node), [&](const BrakeScope& scope) {
    return !scope.nodes && engaged_.contains(scope);
  });
}

std::optional<MonoTime> Brake::next_change_at(const Limits& limits, const Now& now) const {
  if (engaged_.empty()) return std::nullopt;
  Wake wake;
  for (const auto& [scope, brake] : engaged_) {
    if (brake.low_since) wake.note_after(now.mono, *brake.low_since + kReleaseSettle);
    if (brake.trial) wake.note_after(now.mono, next_step_at(*brake.trial, limits));
    if (!brake.trial) wake.note_after(now.mono, next_trial_at(brake, limits));
    for (const auto& [uid, until] : brake.not_again) wake.note_after(now.mono, until);
  }
  wake.note_after(now.mono, due_.next_after(now.mono));
  return wake.at();
}

}  // namespace dhc
