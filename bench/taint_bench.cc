// One turn of the controller with a thousand bad DRA devices: what it knows of each, the taints, the evictions and the
// verdicts, all planned anew. The figures are of the whole turn, of which the taints' plan is a part.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/controller.h"
#include "bench/benches.h"
#include "bench/first_lists.h"
#include "k8s-client/model/decoder.h"
#include "reconcilers/taint/build.h"

namespace dhc::bench {

namespace {

using nlohmann::json;

constexpr int kNodes = 1'250;
constexpr int kDevices = 8;  ///< On each node.
constexpr std::size_t kBad = 1'000;
constexpr int kTurns = 200;
constexpr auto kDriver = "gpu.nvidia.com";
constexpr auto kNamespace = "team-0";

k8s::Node node_of(int number) {
  k8s::Node node;
  node.meta = meta_of(fmt::format("gpu-node-{}", number));
  node.ready = true;
  node.boot_id = "boot";
  return node;
}

k8s::ResourceSlice slice_of(int number) {
  k8s::ResourceSlice slice;
  slice.meta = meta_of(fmt::format("slice-{}", number));
  slice.driver = kDriver;
  slice.pool = slice.node_name = fmt::format("gpu-node-{}", number);
  slice.generation = 1;
  for (int i = 0; i < kDevices; ++i) {
    slice.devices.push_back(
        {fmt::format("gpu-{}", i), {}, {{"productName", "H100"}, {"uuid", fmt::format("GPU-{}-{}", number, i)}}});
  }
  return slice;
}

/// The pod on device `number`, one bad device on as many nodes as there are.
k8s::Pod pod_of(int number, k8s::Health health) {
  k8s::Pod pod;
  pod.meta = meta_of(fmt::format("train-{}", number), kNamespace);
  pod.meta.controller =
      k8s::OwnerRef{"apps/v1", "ReplicaSet", fmt::format("rs-{}", number), fmt::format("uid-rs-{}", number)};
  pod.node_name = fmt::format("gpu-node-{}", number);
  pod.phase = k8s::PodPhase::Running;
  pod.claims = {{"gpu", fmt::format("claim-{}", number)}};
  pod.allocated = {{"claim:gpu", {{"cdi/gpu=x", health, "Xid 79: GPU has fallen off the bus"}}}};
  return pod;
}

k8s::ResourceClaim claim_of(int number) {
  k8s::ResourceClaim claim;
  claim.meta = meta_of(fmt::format("claim-{}", number), kNamespace);
  const auto pod = pod_of(number, k8s::Health::Healthy).meta;
  claim.meta.controller = k8s::OwnerRef{"v1", "Pod", pod.name, pod.uid};
  claim.allocated = true;
  claim.results = {{"gpu", kDriver, fmt::format("gpu-node-{}", number), "gpu-0", false, {}}};
  claim.reserved_for = {{"", "pods", pod.name, pod.uid}};
  return claim;
}

k8s::Object owner_of(int number) {
  k8s::Owner owner;
  owner.kind = k8s::Kind::ReplicaSet;
  owner.meta = meta_of(fmt::format("rs-{}", number), kNamespace);
  return owner;
}

void fill(k8s::Snapshot& snapshot, k8s::Health health) {
  using k8s::Kind;
  if (snapshot.kind == Kind::Namespace) snapshot.objects.emplace_back(k8s::Namespace{meta_of(kNamespace)});
  for (int i = 0; i < kNodes; ++i) {
    if (snapshot.kind == Kind::Node) snapshot.objects.emplace_back(node_of(i));
    if (snapshot.kind == Kind::ResourceSlice) snapshot.objects.emplace_back(slice_of(i));
  }
  for (int i = 0; i < static_cast<int>(kBad); ++i) {
    if (snapshot.kind == Kind::Pod) snapshot.objects.emplace_back(pod_of(i, health));
    if (snapshot.kind == Kind::ResourceClaim) snapshot.objects.emplace_back(claim_of(i));
    if (snapshot.kind == Kind::ReplicaSet) snapshot.objects.push_back(owner_of(i));
  }
}

Message policy_message(bool brakes) {
  Policy policy;
  policy.mode_cap = Mode::Enforce;
  policy.events = false;
  policy.policies.push_back(DevicePolicy{
      .name = "p", .mode = Mode::Enforce, .after = Seconds(60), .taint = TaintRules{}, .evict = EvictRules{}});
  policy.limits = no_limits();
  if (brakes) policy.limits.brake_at_least = Limits{}.brake_at_least;
  policy.limits.brake_percent = 5;
  return PolicyChanged{std::make_shared<const Policy>(std::move(policy))};
}

Controller filled_controller(bool brakes, k8s::Health health) {
  auto messages = first_lists([&](k8s::Snapshot& snapshot) { fill(snapshot, health); });
  messages.push_back(policy_message(brakes));
  Controller controller;
  (void)controller.turn(messages, at(Millis(0)));
  return controller;
}

/// What the server makes of an apply, as its watch shows it.
k8s::Object shown(const taint::ApplyRule& action) {
  auto body = json::parse(taint::build_rule(action).value().body);
  body["metadata"]["uid"] = "uid-" + action.name;
  body["metadata"]["resourceVersion"] = "2";
  body["metadata"]["generation"] = 1;
  body["metadata"]["creationTimestamp"] = "2024-10-04T00:00:00Z";
  return k8s::Decoder(k8s::Kind::DeviceTaintRule).decode_object(body.dump()).value();
}

struct Measured {
  std::vector<double> millis;
  std::size_t taints = 0;
};

void print(const std::string& what, Measured measured) {
  std::ranges::sort(measured.millis);
  const auto percentile = [&](double part) {
    return measured.millis[static_cast<std::size_t>(part * static_cast<double>(measured.millis.size() - 1))];
  };
  fmt::print("{:<44} {:>8} {:>12.1f} {:>12.1f}\n", what, measured.taints, percentile(0.5), percentile(0.99));
}

Measured measure(Controller& controller, Millis from, int turns, std::vector<Action>* actions = nullptr) {
  Measured measured;
  for (int i = 0; i < turns; ++i) {
    const auto began = cpu_millis();
    auto turn = controller.turn({}, at(from + Millis(i)));
    measured.millis.push_back(cpu_millis() - began);
    measured.taints += static_cast<std::size_t>(std::ranges::count_if(
        turn.actions, [](const Action& action) { return std::holds_alternative<taint::ApplyRule>(action); }));
    if (actions != nullptr) *actions = std::move(turn.actions);
  }
  return measured;
}

}  // namespace

bool taints() {
  fmt::print("\n{:<44} {:>8} {:>12} {:>12}\n",
             fmt::format("a turn, {} of {} devices bad, in ms of CPU", kBad, kNodes * kDevices), "rules", "p50", "p99");
  auto well = filled_controller(true, k8s::Health::Healthy);
  print("none is bad", measure(well, Seconds(61), kTurns));
  auto braked = filled_controller(true, k8s::Health::Unhealthy);
  print("braked", measure(braked, Seconds(61), kTurns));
  auto controller = filled_controller(false, k8s::Health::Unhealthy);
  std::vector<Action> actions;
  const auto all = measure(controller, Seconds(61), 1, &actions);
  print("the turn that taints them all", all);
  std::vector<Message> answers;
  for (const auto& action : actions) {
    answers.emplace_back(Outcome{action, {}});
    if (const auto* apply = std::get_if<taint::ApplyRule>(&action)) {
      answers.emplace_back(k8s::Delivery(k8s::Upsert{shown(*apply)}));
    }
  }
  (void)controller.turn(answers, at(Seconds(62)));
  print("tainted, nothing new", measure(controller, Seconds(63), kTurns));
  if (all.taints != kBad)
    fmt::print("{} devices were not tainted: the figures above do not count\n", kBad - all.taints);
  return all.taints == kBad;
}

}  // namespace dhc::bench
