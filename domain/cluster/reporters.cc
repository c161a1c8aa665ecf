#include "domain/cluster/reporters.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "domain/cluster/disruption.h"
#include "domain/contract/ground_names.h"

namespace dhc {

namespace {

/// How long news of a container's start may take to reach us.
constexpr Millis kOldNews = std::chrono::minutes(1);

constexpr std::string_view kDriverFolder = "plugins/";

/// One that follows another was made after it was asked to go, also within the second to which the API cuts its times.
constexpr Millis kSameSecond{1};

bool is_of_node(const k8s::Pod& pod) {
  const auto& controller = pod.meta.controller;
  return controller && (controller->kind == "DaemonSet" || controller->kind == "Node");
}

bool has_ended(const k8s::Pod& pod) {
  return pod.phase == k8s::PodPhase::Succeeded || pod.phase == k8s::PodPhase::Failed;
}

}  // namespace

Subject subject_of(const Rollout& rollout) {
  return {.kind = rollout.owner.kind, .ns = rollout.ns, .name = rollout.owner.name, .uid = rollout.owner.uid};
}

bool may_have_forgotten(const Reporter& reporter, const LastWord& word) {
  const bool seems_anew = began_after(reporter.began, word.called_bad_at, reporter.within);
  // Our sight of the kubelet's own restart is no time of its pods, and may be late.
  if (!reporter.start) return seems_anew;
  // The node's clock may be ahead of ours, so that a start that we know seems to be a new one, or behind, so that a new
  // one seems to be old.
  const bool is_later = word.by_start && reporter.newest > *word.by_start;
  if (!is_later && (!seems_anew || reporter.start == word.by_start)) return false;
  // A start that was seen late may have come before that, by its own word.
  return !word.taken_back_at || std::min(reporter.began, *reporter.start) <= *word.taken_back_at;
}

std::string Reporters::put(const k8s::Pod& pod, Millis server_ahead, bool is_news, const Now& now) {
  if (pod.plugin_folders.empty() || pod.node_name.empty() || !is_of_node(pod) || has_ended(pod)) {
    return drop(pod.meta.uid, now);
  }
  Entry entry;
  entry.ns = pod.meta.ns;
  entry.name = pod.meta.name;
  entry.uid = pod.meta.uid;
  for (const auto& folder : pod.plugin_folders) {
    entry.serves_plugins = entry.serves_plugins || folder == "device-plugins";
    entry.serves_drivers = entry.serves_drivers || folder == "plugins" || folder == "plugins_registry";
    entry.informs_amd = entry.informs_amd || folder == k8s::kAmdExporterFolder;
    if (folder.starts_with(kDriverFolder)) entry.drivers.push_back(folder.substr(kDriverFolder.size()));
  }
  // What we make of a time changes with what is known of the clocks: that is no other start.
  entry.start = pod.last_start ? *pod.last_start : pod.meta.creation.value_or(WallTime());
  entry.has_run = pod.last_start.has_value();
  entry.owner = *pod.meta.controller;
  entry.revision = k8s::find(pod.meta.labels, k8s::kRevisionLabel).value_or("");
  entry.is_first_release = k8s::find(pod.meta.labels, k8s::kGenerationLabel) == std::string_view("1");
  entry.made = pod.meta.creation.value_or(WallTime());
  if (pod.meta.deletion) entry.asked = asked_to_end_at(pod);
  entry.rolls_since = entry.made;
  auto& entries = on_node_[pod.node_name];
  auto known = std::ranges::find(entries, entry.uid, &Entry::uid);
  if (known != entries.end()) {
    entry.rolls_since = known->rolls_since;
    if (known->start == entry.start) {
      if (known->asked == entry.asked && !known->is_gone) return {};
      known->asked = entry.asked;
      known->is_gone = false;
      node_of_[entry.uid] = pod.node_name;
      return pod.node_name;
    }
  } else {
    // It takes the place of one of its owner's that is gone.
    std::erase_if(entries, [&](const Entry& other) {
      if (!other.is_gone || other.owner.uid != entry.owner.uid) return false;
      entry.rolls_since = std::min({entry.rolls_since, rollout_began(other), entry.made - kSameSecond});
      return true;
    });
    known = entries.end();
  }
  const auto told = std::max(pod.meta.creation.value_or(WallTime()), entry.start);
  entry.began = std::min(told - server_ahead, now.wall);
  if (is_news) entry.began = std::max(entry.began, now.wall - kOldNews);
  // An earlier start than the one that was known is of data that went back.
  const bool is_later = known != entries.end() && entry.has_run && (!known->has_run || known->start < entry.start);
  if (is_later) entry.began = now.wall;
  node_of_[entry.uid] = pod.node_name;
  if (known == entries.end()) {
    entries.push_back(std::move(entry));
  } else {
    *known = std::move(entry);
  }
  return pod.node_name;
}

std::string Reporters::drop(const std::string& uid, const Now& now) {
  const auto found = node_of_.find(uid);
  if (found == node_of_.end()) return {};
  auto node = std::move(found->second);
  node_of_.erase(found);
  const auto entries = on_node_.find(node);
  auto& there = entries->second;
  const auto known = std::ranges::find(there, uid, &Entry::uid);
  // What is said without it counts for nothing, also where nobody has asked it to go.
  if (known->informs_amd && !known->serves_plugins && !known->asked) known->asked = now.wall;
  // One that was asked to go is kept until its successor comes, which may be there already.
  known->is_gone = known->asked.has_value();
  for (auto& other : there) {
    if (!known->asked || other.asked || other.owner.uid != known->owner.uid) continue;
    other.rolls_since = std::min({other.rolls_since, rollout_began(*known), other.made - kSameSecond});
    known->is_gone = false;
  }
  if (!known->is_gone) there.erase(known);
  if (there.empty()) on_node_.erase(entries);
  return node;
}

void Reporters::forget_gone(const std::string& node) {
  const auto entries = on_node_.find(node);
  if (entries == on_node_.end()) return;
  std::erase_if(entries->second, [](const Entry& entry) { return entry.is_gone; });
  if (entries->second.empty()) on_node_.erase(entries);
}

std::vector<std::string> Reporters::missing_in(const std::vector<k8s::Object>& pods,
                                               const k8s::UnreadableNames& unreadable) const {
  std::set<std::string_view> listed;
  for (const auto& pod : pods) listed.insert(k8s::meta_of(pod).uid);
  std::vector<std::string> missing;
  for (const auto& [node, entries] : on_node_) {
    for (const auto& entry : entries) {
      if (entry.is_gone) continue;
      k8s::Meta meta;
      meta.ns = entry.ns;
      meta.name = entry.name;
      meta.uid = entry.uid;
      if (!listed.contains(entry.uid) && !unreadable.contains(meta)) missing.push_back(entry.uid);
    }
  }
  return missing;
}

bool Reporters::serves(const Entry& entry, const DeviceKey& key) {
  if (key.source == DeviceKey::Source::Plugin) return entry.serves_plugins;
  if (entry.drivers.empty()) return entry.serves_drivers;
  return std::ranges::find(entry.drivers, key.scope) != entry.drivers.end();
}

/// **Source:** ROCm/k8s-device-plugin, internal/pkg/exporter: while the exporter is away, or does not list a card, that
/// card reads Healthy.
bool Reporters::informs(const Entry& entry, const DeviceKey& key) {
  return entry.informs_amd && !entry.serves_plugins && key.source == DeviceKey::Source::Plugin &&
         key.scope.starts_with("amd.com/");
}

bool Reporters::has_informer(const DeviceKey& key, const std::string& node) const {
  const auto found = on_node_.find(node);
  return found != on_node_.end() &&
         std::ranges::any_of(found->second, [&](const Entry& entry) { return !entry.is_gone && informs(entry, key); });
}

std::optional<Reporter> Reporters::latest(const DeviceKey& key, const std::string& node) const {
  const auto found = on_node_.find(node);
  if (found == on_node_.end()) return std::nullopt;
  std::optional<Reporter> latest;
  WallTime newest;
  const auto take = [&](const Entry& entry, std::string_view kind, WallTime began, WallTime start) {
    newest = std::max(newest, start);
    if (latest && std::tie(latest->began, *latest->start) >= std::tie(began, start)) return;
    latest = {
        .name = fmt::format("{} pod {}/{}", kind, entry.ns, entry.name), .began = began, .start = start, .newest = {}};
  };
  for (const auto& entry : found->second) {
    // Where the node's clock is ahead of ours, several may seem to begin now.
    if (!entry.is_gone && serves(entry, key)) {
      const bool is_plugin = key.source == DeviceKey::Source::Plugin;
      take(entry, is_plugin ? "device plugin" : "driver", entry.began, entry.start);
    } else if (informs(entry, key)) {
      // What is said without it is no better than what is said after its start.
      const auto asked = entry.asked.value_or(entry.start);
      take(entry, "metrics exporter", std::max(entry.began, asked), std::max(entry.start, asked));
    }
  }
  if (latest) latest->newest = newest;
  return latest;
}

/// One that goes within its own roll-out goes on with it.
WallTime Reporters::rollout_began(const Entry& entry) {
  return entry.asked && *entry.asked >= entry.made + kRolloutHold ? *entry.asked : entry.rolls_since;
}

std::optional<Rollout> Reporters::rollout(const DeviceKey& key, const std::string& node) const {
  const auto found = on_node_.find(node);
  if (found == on_node_.end()) return std::nullopt;
  const Entry* last = nullptr;
  for (const auto& entry : found->second) {
    if (!serves(entry, key)) continue;
    const auto ends = rollout_ends(entry);
    if (last == nullptr ||
        std::pair(rollout_ends(*last), std::string_view(last->uid)) < std::pair(ends, std::string_view(entry.uid)))
      last = &entry;
  }
  if (last == nullptr) return std::nullopt;
  auto began = rollout_began(*last);
  for (const auto& other : found->second) {
    if (&other == last || !other.asked || other.owner.uid != last->owner.uid) continue;
    began = std::min({began, rollout_began(other), last->made - kSameSecond});
  }
  const bool is_plugin = key.source == DeviceKey::Source::Plugin;
  return Rollout{.pod = (is_plugin ? "device plugin pod " : "driver pod ") + last->ns + "/" + last->name,
                 .ns = last->ns,
                 .owner = last->owner,
                 .revision = last->revision,
                 .is_first_release = last->is_first_release,
                 .is_leaving = last->asked.has_value(),
                 .made = last->made,
                 .began = began,
                 .until = rollout_ends(*last)};
}

std::optional<WallTime> Reporters::revision_began(const std::string& owner_uid, const std::string& revision) const {
  std::optional<WallTime> first;
  for (const auto& [node, entries] : on_node_) {
    for (const auto& entry : entries) {
      if (entry.owner.uid == owner_uid && entry.revision == revision)
        first = std::min(first.value_or(entry.made), entry.made);
    }
  }
  return first;
}

std::vector<ServingRelease> Reporters::releases(const DeviceKey& key, const std::string& node) const {
  std::vector<ServingRelease> found;
  const auto entries = on_node_.find(node);
  if (entries == on_node_.end()) return found;
  for (const auto& entry : entries->second) {
    if (entry.is_gone || entry.revision.empty() || entry.owner.kind != "DaemonSet" || !serves(entry, key)) continue;
    auto name = ground_of_release({.ns = entry.ns, .name = entry.owner.name, .revision = entry.revision});
    const auto at = std::ranges::lower_bound(found, name, {}, &ServingRelease::name);
    if (at != found.end() && at->name == name) {
      at->made = std::min(at->made, entry.made);
    } else {
      found.insert(at, {.name = std::move(name), .made = entry.made});
    }
  }
  return found;
}

std::optional<k8s::OwnerRef> Reporters::daemon_set(std::string_view ns, std::string_view name) const {
  std::optional<k8s::OwnerRef> found;
  for (const auto& [node, entries] : on_node_) {
    for (const auto& entry : entries) {
      if (entry.ns != ns || entry.owner.kind != "DaemonSet" || entry.owner.name != name) continue;
      // One that was made anew may still have pods of before: the answer must not depend on their order.
      if (!found || found->uid < entry.owner.uid) found = entry.owner;
    }
  }
  return found;
}

}  // namespace dhc
