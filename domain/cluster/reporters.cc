#include "domain/cluster/reporters.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

namespace dhc {

namespace {

/// How long news of a container's start may take to reach us.
constexpr Millis kOldNews = std::chrono::minutes(1);

constexpr std::string_view kDriverFolder = "plugins/";

bool is_of_node(const k8s::Pod& pod) {
  const auto& controller = pod.meta.controller;
  return controller && (controller->kind == "DaemonSet" || controller->kind == "Node");
}

bool has_ended(const k8s::Pod& pod) {
  return pod.phase == k8s::PodPhase::Succeeded || pod.phase == k8s::PodPhase::Failed;
}

}  // namespace

bool may_have_forgotten(const Reporter& reporter, const LastWord& word) {
  const bool seems_anew = began_after(reporter.began, word.called_bad_at);
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
    return drop(pod.meta.uid);
  }
  Entry entry{.ns = pod.meta.ns, .name = pod.meta.name, .uid = pod.meta.uid, .drivers = {}, .start = {}, .began = {}};
  for (const auto& folder : pod.plugin_folders) {
    entry.serves_plugins = entry.serves_plugins || folder == "device-plugins";
    entry.serves_drivers = entry.serves_drivers || folder == "plugins" || folder == "plugins_registry";
    if (folder.starts_with(kDriverFolder)) entry.drivers.push_back(folder.substr(kDriverFolder.size()));
  }
  // What we make of a time changes with what is known of the clocks: that is no other start.
  entry.start = pod.last_start ? *pod.last_start : pod.meta.creation.value_or(WallTime());
  entry.has_run = pod.last_start.has_value();
  auto& entries = on_node_[pod.node_name];
  const auto known = std::ranges::find(entries, entry.uid, &Entry::uid);
  if (known != entries.end() && known->start == entry.start) return {};
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

std::string Reporters::drop(const std::string& uid) {
  const auto found = node_of_.find(uid);
  if (found == node_of_.end()) return {};
  auto node = std::move(found->second);
  node_of_.erase(found);
  const auto entries = on_node_.find(node);
  std::erase_if(entries->second, [&](const Entry& entry) { return entry.uid == uid; });
  if (entries->second.empty()) on_node_.erase(entries);
  return node;
}

std::vector<std::string> Reporters::missing_in(const std::vector<k8s::Object>& pods,
                                               const k8s::UnreadableNames& unreadable) const {
  std::set<std::string_view> listed;
  for (const auto& pod : pods) listed.insert(k8s::meta_of(pod).uid);
  std::vector<std::string> missing;
  for (const auto& [node, entries] : on_node_) {
    for (const auto& entry : entries) {
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

std::optional<Reporter> Reporters::latest(const DeviceKey& key, const std::string& node) const {
  const auto found = on_node_.find(node);
  if (found == on_node_.end()) return std::nullopt;
  const Entry* latest = nullptr;
  WallTime newest;
  for (const auto& entry : found->second) {
    // Where the node's clock is ahead of ours, several may seem to begin now.
    if (!serves(entry, key)) continue;
    newest = std::max(newest, entry.start);
    if (latest == nullptr || std::tie(latest->began, latest->start) < std::tie(entry.began, entry.start)) {
      latest = &entry;
    }
  }
  if (latest == nullptr) return std::nullopt;
  const bool is_plugin = key.source == DeviceKey::Source::Plugin;
  return Reporter{.name = (is_plugin ? "device plugin pod " : "driver pod ") + latest->ns + "/" + latest->name,
                  .began = latest->began,
                  .start = latest->start,
                  .newest = newest};
}

}  // namespace dhc
