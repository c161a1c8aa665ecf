// What the live page costs the loop while somebody looks: the overview of 5,000 nodes with 8 devices each, all held,
// and what a reader gets.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "app/controller.h"
#include "app/live/overview_log.h"
#include "bench/benches.h"
#include "bench/first_lists.h"

namespace dhc::bench {

namespace {

constexpr int kNodes = 5'000;
constexpr int kDevices = 8;
constexpr int kRounds = 10;
constexpr auto kResource = "nvidia.com/gpu";

k8s::Node node_of(int number) {
  k8s::Node node;
  node.meta = meta_of(fmt::format("gpu-node-{:04}", number));
  node.ready = true;
  node.capacity = {{kResource, kDevices}};
  node.allocatable = node.capacity;
  return node;
}

k8s::Pod pod_of(int number) {
  k8s::Pod pod;
  pod.meta = meta_of(fmt::format("train-{}", number), "team-0");
  pod.node_name = fmt::format("gpu-node-{:04}", number / kDevices);
  pod.phase = k8s::PodPhase::Running;
  pod.requests = {{kResource, 1}};
  pod.allocated.push_back({.name = kResource, .devices = {}});
  const bool is_bad = number % 700 == 0;
  pod.allocated.back().devices.push_back({fmt::format("GPU-{:08x}", number),
                                          is_bad ? k8s::Health::Unhealthy : k8s::Health::Healthy,
                                          is_bad ? "Xid 79" : ""});
  return pod;
}

Controller watching() {
  Policy policy;
  policy.policies.push_back(DevicePolicy{.name = "p", .mode = Mode::Observe, .after = Seconds(0)});
  auto messages = first_lists([&](k8s::Snapshot& snapshot) {
    if (snapshot.kind == k8s::Kind::Namespace) snapshot.objects.emplace_back(k8s::Namespace{meta_of("team-0")});
    for (int i = 0; i < kNodes * kDevices; ++i) {
      if (snapshot.kind == k8s::Kind::Pod) snapshot.objects.emplace_back(pod_of(i));
      if (snapshot.kind == k8s::Kind::Node && i % kDevices == 0) snapshot.objects.emplace_back(node_of(i / kDevices));
    }
  });
  messages.emplace_back(PolicyChanged{std::make_shared<const Policy>(std::move(policy))});
  Controller controller;
  (void)controller.turn(messages, at(Millis(0)));
  return controller;
}

template <class Work>
double best_of(Work work) {
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const auto began = cpu_millis();
    work();
    best = std::min(best, cpu_millis() - began);
  }
  return best;
}

}  // namespace

void live_page() {
  auto controller = watching();
  OverviewLog log("bench");
  const Now now = at(Seconds(1));
  (void)log.take(OverviewLog::Part::Facts, {});
  Overview overview;
  const double made = best_of([&] { overview = controller.overview(now); });
  (void)log.take(OverviewLog::Part::Cluster, overview);
  const double compared = best_of([&] { (void)log.take(OverviewLog::Part::Cluster, overview); });
  const double news = best_of([&] {
    const auto nodes = controller.busy_nodes();
    (void)log.take(OverviewLog::Part::Cluster, controller.overview(now, &nodes), kNodeEntry);
  });
  std::optional<OverviewLog::Piece> whole;
  const double read = best_of([&] { whole = log.since("", now); });
  fmt::print("\n{:<44} {:>12}\n", fmt::format("the live page of {} nodes x {} devices", kNodes, kDevices), "ms of CPU");
  fmt::print("{:<44} {:>12.1f}\n", "the overview is made", made);
  fmt::print("{:<44} {:>12.1f}\n", "and compared with the last", compared);
  fmt::print("{:<44} {:>12.1f}\n", "what is decided, and nodes with bad devices", news);
  fmt::print("{:<44} {:>12.1f}   {:.1f} MB\n", "a new reader gets everything", read,
             whole ? static_cast<double>(whole->text.size()) / 1e6 : 0);
}

}  // namespace dhc::bench
