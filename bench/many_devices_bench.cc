// A turn with one pod that holds thousands of bad devices: its cost must grow as their number does, not as its square.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/controller.h"
#include "bench/allocations.h"
#include "bench/benches.h"
#include "bench/first_lists.h"

namespace dhc::bench {

namespace {

constexpr int kRounds = 20;
constexpr auto kResource = "nvidia.com/gpu";

k8s::Pod pod_with(int devices) {
  k8s::Pod pod;
  pod.meta = meta_of("many", "team-0");
  pod.node_name = "node-a";
  pod.phase = k8s::PodPhase::Running;
  pod.requests = {{kResource, devices}};
  pod.allocated.push_back({.name = kResource, .devices = {}});
  for (int i = 0; i < devices; ++i) {
    pod.allocated.back().devices.push_back({fmt::format("GPU-{:08x}", i), k8s::Health::Unhealthy, "Xid 79"});
  }
  return pod;
}

Controller watching(int devices) {
  Policy policy;
  policy.mode_cap = Mode::Enforce;
  policy.policies.push_back(DevicePolicy{.name = "p", .mode = Mode::Enforce, .after = Seconds(0)});
  auto messages = first_lists([&](k8s::Snapshot& snapshot) {
    if (snapshot.kind == k8s::Kind::Namespace) snapshot.objects.emplace_back(k8s::Namespace{meta_of("team-0")});
    if (snapshot.kind == k8s::Kind::Pod) snapshot.objects.emplace_back(pod_with(devices));
    if (snapshot.kind == k8s::Kind::Node) {
      k8s::Node node;
      node.meta = meta_of("node-a");
      node.ready = true;
      node.capacity = {{kResource, devices}};
      node.allocatable = {{kResource, 0}};
      snapshot.objects.emplace_back(std::move(node));
    }
  });
  messages.emplace_back(PolicyChanged{std::make_shared<const Policy>(std::move(policy))});
  Controller controller;
  (void)controller.turn(messages, at(Millis(0)));
  return controller;
}

void print_turns(int devices) {
  auto controller = watching(devices);
  double best = 1e9;
  const auto made = allocations().count;
  for (int round = 1; round <= kRounds; ++round) {
    const auto began = cpu_millis();
    (void)controller.turn({}, at(Seconds(round)));
    best = std::min(best, cpu_millis() - began);
  }
  const auto each = static_cast<double>(allocations().count - made) / kRounds / devices;
  fmt::print("{:<44} {:>12.2f} {:>14.2f} {:>14.1f}\n", fmt::format("{} devices", devices), best, best * 1000 / devices,
             each);
}

}  // namespace

void many_devices() {
  fmt::print("\n{:<44} {:>12} {:>14} {:>14}\n", "a turn, one pod holds so many bad devices", "ms of CPU", "us a device",
             "allocations");
  for (const int devices : {500, 1'000, 2'000, 4'000}) print_turns(devices);
}

}  // namespace dhc::bench
