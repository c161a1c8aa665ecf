#include "bench/first_lists.h"

#include <cstdint>
#include <ctime>
#include <utility>

namespace dhc::bench {

double cpu_millis() { return static_cast<double>(std::clock()) * 1000.0 / CLOCKS_PER_SEC; }

Now at(Millis since) { return {MonoTime{Seconds(100)} + since, WallTime{std::chrono::days{20'000}} + since}; }

k8s::Meta meta_of(std::string name, std::string ns) {
  k8s::Meta meta;
  meta.ns = std::move(ns);
  meta.uid = "uid-" + name;
  meta.name = std::move(name);
  meta.resource_version = "1";
  return meta;
}

std::vector<Message> first_lists(const std::function<void(k8s::Snapshot&)>& fill) {
  std::vector<Message> messages;
  for (const auto kind : k8s::kAllKinds) {
    k8s::Snapshot snapshot{.kind = kind, .objects = {}, .served = true, .api_version = "v1"};
    if (kind == k8s::Kind::DeviceTaintRule) snapshot.api_version = "resource.k8s.io/v1";
    fill(snapshot);
    messages.emplace_back(k8s::Delivery(std::move(snapshot)));
  }
  return messages;
}

Limits no_limits() {
  constexpr std::int64_t kMore = 1'000'000;  // than there is of anything here
  constexpr Cap kNoCap{.percent = 100, .at_least = kMore};
  return {.evictions_per_minute = kMore,
          .max_in_flight = kMore,
          .per_node = kMore,
          .per_owner = kMore,
          .taints_per_minute = kMore,
          .brake_at_least = kMore,
          .cap_cluster = kNoCap,
          .cap_node = kNoCap,
          .cap_per_day = kNoCap};
}

}  // namespace dhc::bench
