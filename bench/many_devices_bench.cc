// A turn with one pod that holds thousands of bad devices: its cost must grow as their number does, not as its square.
#include <algorithm>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/controller.h"
#include "bench/allocations.h"
#include "bench/benches.h"

namespace dhc::bench {

namespace {

constexpr int kRounds = 20;
constexpr auto kResource = "nvidia.com/gpu";

double process_millis() { return static_cast<double>(std::clock()) * 1000.0 / CLOCKS_PER_SEC; }

Now moment(int second) {
  return {MonoTime{Seconds(100 + second)}, WallTime{std::chrono::days{20'000}} + Seconds(second)};
}

k8s::Meta named(std::string name, std::string ns = {}) {
  k8s::Meta meta;
  meta.ns = std::move(ns);
  meta.uid = "uid-" + name;
  meta.name = std::move(name);
  meta.resource_version = "1";
  return meta;
}

k8s::Pod pod_with(int devices) {
  k8s::Pod pod;
  pod.meta = named("many", "team-0");
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
  std::vector<Message> messages;
  messages.emplace_back(PolicyChanged{std::make_shared<const Policy>(std::move(policy))});
  for (const auto kind : k8s::kAllKinds) {
    k8s::Snapshot snapshot{.kind = kind, .objects = {}, .served = true, .api_version = "v1"};
    if (kind == k8s::Kind::Namespace) snapshot.objects.emplace_back(k8s::Namespace{named("team-0")});
    if (kind == k8s::Kind::Pod) snapshot.objects.emplace_back(pod_with(devices));
    if (kind == k8s::Kind::Node) {
      k8s::Node node;
      node.meta = named("node-a");
      node.ready = true;
      node.capacity = {{kResource, devices}};
      node.allocatable = {{kResource, 0}};
      snapshot.objects.emplace_back(std::move(node));
    }
    messages.emplace_back(k8s::Delivery(std::move(snapshot)));
  }
  Controller controller;
  (void)controller.turn(messages, moment(0));
  return controller;
}

void print_turns(int devices) {
  auto controller = watching(devices);
  double best = 1e9;
  const auto made = allocations().count;
  for (int round = 1; round <= kRounds; ++round) {
    std::vector<Message> messages;
    messages.emplace_back(Tick{});
    const auto began = process_millis();
    (void)controller.turn(messages, moment(round));
    best = std::min(best, process_millis() - began);
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
