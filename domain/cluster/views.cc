#include "domain/cluster/views.h"

#include <algorithm>

#include "base/wake.h"

namespace dhc {

namespace {

constexpr KindSet kDra = {k8s::Kind::ResourceClaim, k8s::Kind::ResourceSlice, k8s::Kind::DeviceTaintRule};

KindSet views_of_device(const DeviceKey& key) { return key.source == DeviceKey::Source::Dra ? kDra : KindSet{}; }

KindSet view_of_owner(const k8s::Pod& pod) {
  if (!pod.meta.controller) return {};
  const auto& kind = pod.meta.controller->kind;
  if (kind == "Job") return {k8s::Kind::Job};
  if (kind == "ReplicaSet") return {k8s::Kind::ReplicaSet};
  if (kind == "StatefulSet") return {k8s::Kind::StatefulSet};
  return {};
}

}  // namespace

bool Views::told(const k8s::Told& word) {
  const auto [found, is_new] = views_.try_emplace({word.kind, word.name}, View{.heard_at = word.at});
  auto& view = found->second;
  switch (word.word) {
    case k8s::WatchWord::Heard: {
      const bool was_doubted = std::exchange(view.doubted, false);
      const bool was_silent = word.at - view.heard_at >= kOldestView;
      view.heard_at = std::max(view.heard_at, word.at);
      return is_new || was_doubted || was_silent;
    }
    case k8s::WatchWord::Doubted:
      return !std::exchange(view.doubted, true);
  }
  std::unreachable();
}

void Views::listed(k8s::Kind kind, bool served) {
  if (served) {
    not_served_.erase(kind);
  } else {
    not_served_.insert(kind);
  }
}

std::optional<OldView> Views::too_old(KindSet kinds, const Now& now) const {
  std::optional<OldView> worst;
  for (const auto& [key, view] : views_) {
    const auto kind = key.first;
    if (!kinds.contains(kind) || not_served_.contains(kind)) continue;
    if (!view.doubted && now.mono - view.heard_at < kOldestView) continue;
    const bool worse = !worst || (view.doubted == worst->doubted ? view.heard_at < worst->heard_at : view.doubted);
    if (worse) worst = OldView{.kind = kind, .heard_at = view.heard_at, .doubted = view.doubted};
  }
  return worst;
}

std::optional<MonoTime> Views::heard_at(KindSet kinds) const {
  std::optional<MonoTime> first;
  for (const auto& [key, view] : views_) {
    if (!kinds.contains(key.first) || not_served_.contains(key.first)) continue;
    if (view.doubted) return std::nullopt;
    if (!first || view.heard_at < *first) first = view.heard_at;
  }
  return first;
}

bool Views::is_silent(KindSet kinds, const Now& now) const {
  return std::ranges::any_of(views_, [&](const auto& entry) {
    const auto kind = entry.first.first;
    return kinds.contains(kind) && !not_served_.contains(kind) && now.mono - entry.second.heard_at >= kOldestView;
  });
}

std::optional<MonoTime> Views::next_change_at(const Now& now) const {
  Wake wake;
  for (const auto& [key, view] : views_) {
    if (!not_served_.contains(key.first)) wake.note_after(now.mono, view.heard_at + kOldestView);
  }
  return wake.at();
}

KindSet changed_views(const std::vector<OldView>& before, const std::vector<OldView>& after) {
  KindSet changed;
  for (const auto* one : {&before, &after}) {
    const auto& other = one == &before ? after : before;
    for (const auto& view : *one) {
      if (std::ranges::find(other, view) == other.end()) changed |= {view.kind};
    }
  }
  return changed;
}

KindSet views_of_eviction(const k8s::Pod& pod, const DeviceKey& key) {
  constexpr KindSet kAlways = {k8s::Kind::Pod, k8s::Kind::Node, k8s::Kind::Namespace, k8s::Kind::ConfigMap};
  return kAlways | views_of_device(key) | view_of_owner(pod);
}

KindSet views_of_taint(const DeviceKey& key) {
  constexpr KindSet kAlways = {k8s::Kind::Pod, k8s::Kind::Node, k8s::Kind::ConfigMap};
  return kAlways | views_of_device(key);
}

}  // namespace dhc
