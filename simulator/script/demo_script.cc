#include "simulator/script/demo_script.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dhc::sim {
namespace {

constexpr std::array<const char*, 3> kNodes = {"node-a", "node-b", "node-c"};
constexpr int kDevicesOfAKind = 4;

/// What the example DRA driver says of a device, before and after its name. **Source:**
/// kubernetes-sigs/dra-example-driver b8c2e70e, health_simulator.go.
constexpr std::array<std::array<const char*, 2>, 3> kMessages = {
    {{"Driver communication timeout on ", " (attempt 3)"},
     {"ECC error count exceeded threshold on ", " (12 errors in last hour)"},
     {"", " initiating recovery sequence (diagnostics in progress)"}}};

PodShape plugin_shape() {
  PodShape shape;
  shape.resource = DemoScript::kResource;
  shape.grace_seconds = 5;
  return shape;
}

}  // namespace

void DemoScript::set_up(Cluster& cluster, const Now& now) {
  for (const auto* node : kNodes) {
    cluster.add_node({node,
                      {{std::string(kResource), kDevicesOfAKind}},
                      {{std::string(kDriver), kDevicesOfAKind}},
                      {{"example.com/rack", "r1"}}});
  }
  const std::string ns(kNamespace);
  cluster.create_deployment(ns, "inference", 3, plugin_shape());
  cluster.add_budget({ns, "inference", {{"app", "inference"}}, std::nullopt, 1});
  JobShape training;
  training.ns = ns;
  training.name = "training";
  training.parallelism = 2;
  training.completions = 2;
  training.shape = plugin_shape();
  cluster.create_job(training);
  PodShape render;
  render.device_class = kDriver;
  render.grace_seconds = 5;
  cluster.create_deployment(ns, "render", 3, render);
  next_break_ = now.mono + kFirst;
}

std::size_t DemoScript::pick(std::size_t count) {
  random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
  return static_cast<std::size_t>(random_ >> 33U) % count;
}

std::vector<DemoScript::Candidate> DemoScript::in_use(const Cluster& cluster, bool dra) const {
  std::vector<Candidate> candidates;
  for (const auto* node : kNodes) {
    for (int i = 0; i < kDevicesOfAKind; ++i) {
      Candidate candidate{node, fmt::format("{}-{}", dra ? "gpu" : "GPU", i), dra, {}};
      const bool broken = std::ranges::any_of(broken_, [&](const Broken& one) {
        return one.what.node == candidate.node && one.what.device == candidate.device;
      });
      candidate.holders = cluster.holders(candidate.node, candidate.device);
      if (!broken && !candidate.holders.empty()) candidates.push_back(std::move(candidate));
    }
  }
  return candidates;
}

std::optional<DemoEvent> DemoScript::break_one(Cluster& cluster, const Now& now) {
  const bool dra = turns_++ % 2 == 1;
  auto candidates = in_use(cluster, dra);
  if (candidates.empty()) return std::nullopt;
  auto chosen = std::move(candidates[pick(candidates.size())]);
  // A plugin has no words of its own for what is wrong. **Source:** KEP-4680.
  std::string message;
  if (dra) {
    const auto& [before, after] = kMessages.at(pick(kMessages.size()));
    message = before + chosen.device + after;
  }
  cluster.set_device_health(chosen.node, chosen.device, "Unhealthy", message);
  if (dra) cluster.taint_device(chosen.node, chosen.device, {std::string(kDriver) + "/unhealthy", "", "NoSchedule"});
  DemoEvent event{DemoEvent::What::Broke, chosen.node, chosen.device, std::string(dra ? kDriver : kResource), message,
                  chosen.holders};
  broken_.push_back({std::move(chosen), now.mono + kRepairAfter});
  return event;
}

DemoEvent DemoScript::repair(Cluster& cluster, const Broken& broken) const {
  const auto& what = broken.what;
  cluster.set_device_health(what.node, what.device, "Healthy");
  if (what.dra) cluster.untaint_device(what.node, what.device);
  return {DemoEvent::What::Repaired,
          what.node,
          what.device,
          std::string(what.dra ? kDriver : kResource),
          "",
          cluster.holders(what.node, what.device)};
}

std::vector<DemoEvent> DemoScript::advance(Cluster& cluster, const Now& now) {
  std::vector<DemoEvent> events;
  for (const auto& one : broken_) {
    if (one.repair_at <= now.mono) events.push_back(repair(cluster, one));
  }
  std::erase_if(broken_, [&](const Broken& one) { return one.repair_at <= now.mono; });
  if (next_break_ && *next_break_ <= now.mono) {
    next_break_ = now.mono + kEvery;
    if (auto event = break_one(cluster, now)) events.push_back(*std::move(event));
  }
  return events;
}

std::optional<MonoTime> DemoScript::next_due() const {
  auto due = next_break_;
  for (const auto& one : broken_) {
    if (!due || one.repair_at < *due) due = one.repair_at;
  }
  return due;
}

}  // namespace dhc::sim
