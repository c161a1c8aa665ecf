#include "domain/cluster/gang.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "domain/contract/names.h"

namespace dhc {

namespace {

bool is_gang_name(std::string_view name) {
  const auto is_printed = [](char c) { return c > ' ' && c <= '~'; };
  return !name.empty() && name.size() <= kLongestGangName && std::ranges::all_of(name, is_printed);
}

std::optional<std::string_view> given_name(const k8s::Pod& pod) {
  const auto annotation = k8s::find(pod.meta.annotations, kGangMark);
  return annotation ? annotation : k8s::find(pod.meta.labels, kGangMark);
}

std::optional<std::string_view> named_by(const k8s::Pod& pod, std::string_view label) {
  const auto name = k8s::find(pod.meta.labels, label);
  return name && is_gang_name(*name) ? name : std::nullopt;
}

Gang gang_named(const k8s::Pod& pod, std::string_view kind, std::string_view id, std::string words) {
  return {.key = fmt::format("{}/{}/{}", pod.meta.ns, kind, id), .words = std::move(words)};
}

}  // namespace

std::optional<Gang> gang_of(const k8s::Pod& pod) {
  if (!pod.is_marked) return std::nullopt;
  if (const auto name = given_name(pod); name && is_gang_name(*name)) {
    return gang_named(pod, "gang", *name, fmt::format("gang {}", *name));
  }
  if (is_gang_name(pod.pod_group)) {
    return gang_named(pod, "PodGroup", pod.pod_group, fmt::format("PodGroup {}", pod.pod_group));
  }
  if (const auto group = named_by(pod, kLwsGroupLabel)) {
    const auto set = named_by(pod, kLwsNameLabel).value_or("");
    return gang_named(pod, "LeaderWorkerSet", fmt::format("{}/{}", set, *group),
                      fmt::format("LeaderWorkerSet {} (group {})", set, *group));
  }
  const auto set = named_by(pod, kJobSetNameLabel);
  const auto uid = named_by(pod, kJobSetUidLabel);
  if (!set && !uid) return std::nullopt;
  return gang_named(pod, "JobSet", uid.value_or(set.value_or("")), fmt::format("JobSet {}", set ? *set : *uid));
}

std::optional<std::string> refused_gang_name(const k8s::Pod& pod) {
  const auto name = pod.is_marked ? given_name(pod) : std::nullopt;
  if (!name || is_gang_name(*name)) return std::nullopt;
  return fmt::format("{} has no effect: write a name of 1 to {} printable ASCII characters without a blank", kGangMark,
                     kLongestGangName);
}

}  // namespace dhc
