#pragma once
#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "domain/contract/notice_text.h"
#include "tests/support/core/stage.h"

namespace dhc::test {

/// A gang of four, `w-0` to `w-3`, on a node each, of a StatefulSet; the device of `w-0` is bad from 12:00 on and its
/// incident opens at 12:01. The policy says `groups: Together`.
struct GangStage : Stage {
  explicit GangStage(int size = 4) {
    for (int i = 0; i < size; ++i) {
      node(fmt::format("node-{}", i), 4, i == 0 ? 3 : 4);
      pod({.name = name(i),
           .node = fmt::format("node-{}", i),
           .owner = "StatefulSet/w",
           .device = "gpu-0",
           .health = i == 0 ? k8s::Health::Unhealthy : k8s::Health::Healthy});
      mark(name(i), "train");
    }
    policy().evict->groups_together = true;
    limits().evictions_per_minute = 600;
    limits().max_in_flight = 50;
    limits().per_node = 9;
    limits().brake_at_least = 99;
    whole_policy().own_namespace = "dhc";
    send_policy();
  }

  static std::string name(int i) { return fmt::format("w-{}", i); }

  void mark(const std::string& pod, const std::string& gang) {
    annotate(pod, kGangMark, gang);
    pod_named(pod).is_marked = !gang.empty();
    pod_named(pod).meta.labels = {{"app", "w"}};
    pod_named(pod).conditions.push_back({.type = "Ready", .status = "True"});
    upsert_pod(pod);
  }

  void annotate(const std::string& pod, std::string_view key, const std::string& value) {
    auto& annotations = pod_named(pod).meta.annotations;
    annotations.erase_if([&](const auto& entry) { return entry.first == key; });
    if (!value.empty()) annotations.emplace_back(key, value);
    annotations.sort();
    upsert_pod(pod);
  }

  /// Whose owner is of a kind that is read, not watched.
  void own_by_cluster(const std::string& pod, const std::string& cluster) {
    pod_named(pod).meta.controller =
        k8s::OwnerRef{.api_version = "ray.io/v1", .kind = "RayCluster", .name = cluster, .uid = "uid-" + cluster};
    upsert_pod(pod);
  }

  k8s::DisruptionBudget& budget(std::int64_t allowed, const std::string& name = "train") {
    auto& budget = budgets_[name];
    budget.meta.ns = "default";
    budget.meta.name = name;
    budget.meta.uid = "uid-" + name;
    budget.selector = {{.key = "app", .op = k8s::LabelRequirement::Operator::In, .values = {"w"}}};
    budget.disruptions_allowed = allowed;
    put(budget);
    return budget;
  }
  void upsert_budget(const std::string& name = "train") { put(budgets_.at(name)); }

  /// Refuses the evictions of these pods, as a budget does.
  void refuse(std::vector<std::string> names) {
    answer_evictions([names = std::move(names)](const eviction::EvictPod& evict) -> Status {
      if (std::ranges::find(names, evict.name) == names.end()) return {};
      return fail(ErrorKind::Blocked, "the budget says not now");
    });
  }

  [[nodiscard]] std::optional<Notice> notice(const std::string& pod) {
    const auto text = k8s::find(pod_named(pod).meta.annotations, kNoticeAnnotation);
    return text ? read_notice(*text) : std::nullopt;
  }

  [[nodiscard]] std::string message(const std::string& pod, Reason reason) const {
    const auto* found = verdict(pod, reason);
    return found == nullptr ? "no such verdict" : found->message;
  }

  /// The pods that were evicted until the time of day, sorted.
  std::vector<std::string> run_until(const std::string& time) {
    const auto span = std::chrono::duration_cast<Millis>(*parse_rfc3339("2026-11-20T" + time + "Z") - now().wall);
    constexpr Millis kStride = Seconds(10);
    const auto strides = std::max<Millis>(span / kStride * kStride - kStride, Millis(0));
    auto gone = run_for(strides, kStride);
    for (auto& name : run_for(span - strides)) gone.push_back(std::move(name));
    std::ranges::sort(gone);
    return gone;
  }

 private:
  std::map<std::string, k8s::DisruptionBudget> budgets_;
};

}  // namespace dhc::test
