#include "bench/fleet_year/fleet.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dhc::year {
namespace {

using sim::Json;
using sim::Res;

constexpr std::string_view kJobs = "batch";
constexpr std::string_view kServices = "serving";

Now first_moment() {
  return {MonoTime(std::chrono::hours(1)), WallTime(std::chrono::sys_days(std::chrono::year(2024) / 3 / 30))};
}

}  // namespace

Fleet::Fleet(const FleetShape& shape, const Demand& demand, std::uint64_t seed)
    : now(first_moment()),
      cluster(seed, first_moment()),
      shape_(shape),
      dice_(seed ^ 0x5eedULL),
      ledger_(static_cast<std::size_t>(shape.nodes * shape.devices), now.mono),
      devices_(static_cast<std::size_t>(shape.nodes * shape.devices)),
      nodes_(static_cast<std::size_t>(shape.nodes)) {
  cluster.lags().start = shape.start;
  cluster.settings().bookmark_every = std::chrono::hours(24 * 365 * 10);
  cluster.add_namespace(std::string(kJobs));
  cluster.add_namespace(std::string(kServices));
  for (int i = 0; i < shape.nodes; ++i) {
    const auto name = fmt::format("node-{:03}", i);
    node_numbers_[name] = i;
    cluster.add_node({.name = name,
                      .plugins = {},
                      .drivers = {{std::string(kDriver), shape.devices}},
                      .labels = {{std::string(kPoolLabel), demand.pools.at(static_cast<std::size_t>(i))}}});
  }
  cluster.step(now);
  for (const auto& service : demand.services) {
    sim::PodShape pod;
    pod.labels = {{"app", service.name}};
    pod.node_selector = {{std::string(kPoolLabel), service.pool}};
    pod.device_class = kDriver;
    pod.count = service.gpus;
    cluster.create_deployment(std::string(kServices), service.name, service.replicas, pod);
    cluster.add_budget({.ns = std::string(kServices),
                        .name = service.name,
                        .match_labels = pod.labels,
                        .min_available = {},
                        .max_unavailable = std::max(1, service.replicas / 10)});
  }
  for (const auto& slot : demand.slots) slots_.push_back({.what = slot, .job = {}});
  // They are met in the middle of their work.
  for (std::size_t i = 0; i < slots_.size(); ++i) next_job(i, dice_.share());
}

std::string Fleet::node_of(std::size_t device) const {
  return fmt::format("node-{:03}", device / static_cast<std::size_t>(shape_.devices));
}

std::string Fleet::name_of(std::size_t device) const {
  return fmt::format("gpu-{}", device % static_cast<std::size_t>(shape_.devices));
}

std::string Fleet::holder_of(std::size_t device) const {
  for (const auto& uid : devices_[device].holders) {
    if (const auto pod = pods_.find(uid); pod != pods_.end()) return pod->second.name.ns + "/" + pod->second.name.name;
  }
  return {};
}

std::optional<std::size_t> Fleet::device_at(const std::string& node, const std::string& name) const {
  const auto number = node_numbers_.find(node);
  if (number == node_numbers_.end() || !name.starts_with("gpu-")) return std::nullopt;
  return static_cast<std::size_t>(number->second * shape_.devices + std::stoi(name.substr(4)));
}

Cause Fleet::cause_at(std::size_t device) const {
  return nodes_[device / static_cast<std::size_t>(shape_.devices)].cause;
}

void Fleet::set_health(std::size_t device, bool bad, const std::string& what) {
  const auto node = node_of(device);
  const auto name = name_of(device);
  cluster.set_device_health(node, name, bad ? "Unhealthy" : "Healthy", what);
  if (!shape_.driver_taints) return;
  cluster.untaint_device(node, name);
  if (bad) cluster.taint_device(node, name, {"gpu.example.com/unhealthy", "", "NoSchedule"});
}

std::vector<std::size_t> Fleet::begin(const Fault& fault) {
  ++counts_.faults[static_cast<std::size_t>(fault.of_server ? Cause::Server : Cause::Device)];
  auto& node = nodes_[static_cast<std::size_t>(fault.node)];
  if (fault.of_server) ++node.server_faults;
  node.cause = node.server_faults > 0 ? Cause::Server : Cause::Device;
  std::vector<std::size_t> changed;
  for (const int number : fault.devices) {
    const auto device = static_cast<std::size_t>(fault.node) * static_cast<std::size_t>(shape_.devices) +
                        static_cast<std::size_t>(number);
    if (devices_[device].faults++ > 0) continue;
    changed.push_back(device);
    devices_[device].known = !devices_[device].holders.empty();
    set_health(device, true, fault.what);
  }
  for (const auto device : changed) update_around(device);
  return changed;
}

std::vector<std::size_t> Fleet::end(const Fault& fault) {
  std::vector<std::size_t> changed;
  auto& node = nodes_[static_cast<std::size_t>(fault.node)];
  if (fault.of_server) --node.server_faults;
  for (const int number : fault.devices) {
    const auto device = static_cast<std::size_t>(fault.node) * static_cast<std::size_t>(shape_.devices) +
                        static_cast<std::size_t>(number);
    if (--devices_[device].faults > 0) continue;
    changed.push_back(device);
    devices_[device].known = false;
    set_health(device, false, {});
  }
  for (const auto device : changed) update_around(device);
  // The pods that are still there go on: what a boot takes from them it takes under every contender.
  if (fault.of_server && shape_.server_boots && node.server_faults == 0) {
    const auto boot = cluster.store().new_uid();
    cluster.store().edit(Res::Nodes, {"", fmt::format("node-{:03}", fault.node)},
                         [&](Json& booted) { booted["status"]["nodeInfo"]["bootID"] = boot; });
  }
  return changed;
}

bool Fleet::is_stuck(const Pod& pod) const {
  return std::ranges::any_of(pod.devices, [&](std::size_t device) { return is_bad(device); });
}

void Fleet::update(std::size_t device) {
  const auto& entry = devices_[device];
  const bool closed = nodes_[device / static_cast<std::size_t>(shape_.devices)].closed;
  Use use = entry.slice_taint || !entry.rules.empty() || closed ? Use::Barred : Use::Idle;
  if (!entry.holders.empty()) {
    use = Use::Moving;
    const auto pod = pods_.find(*entry.holders.begin());
    if (pod != pods_.end() && is_stuck(pod->second)) {
      use = Use::Stuck;
    } else if (pod != pods_.end() && pod->second.running && !pod->second.leaving) {
      use = Use::Working;
    }
  }
  if (is_bad(device)) use = Use::Broken;
  const bool lost = use != Use::Working && use != Use::Idle;
  ledger_.set(device, use, lost ? cause_at(device) : Cause::Device, now.mono);
}

/// The kubelet ends a pod when its work is done; on bad hardware it is never done.
void Fleet::pace(Pod& pod) {
  if (pod.slot < 0) return;
  const auto& slot = slots_[static_cast<std::size_t>(pod.slot)];
  const bool pause = is_stuck(pod);
  if (pause == pod.paused) return;
  pod.paused = pause;
  const auto left = pause ? Millis(0) : std::max<Millis>(slot.length - slot.done - pod.worked, Millis(1));
  cluster.store().edit(Res::Pods, pod.name, [&](Json& changed) {
    changed["metadata"]["annotations"][std::string(sim::kBehaviour) + "run-for-ms"] = std::to_string(left.count());
  });
}

void Fleet::update(Pod& pod) {
  const bool works = pod.running && !pod.leaving && !pod.devices.empty() && !is_stuck(pod);
  if (works && !pod.works_since) {
    pod.works_since = now.mono;
  } else if (!works && pod.works_since) {
    pod.worked += now.mono - *pod.works_since;
    pod.works_since.reset();
  }
  pace(pod);
  for (const auto device : pod.devices) update(device);
}

void Fleet::update_around(std::size_t device) {
  update(device);
  for (const auto& uid : devices_[device].holders) {
    if (const auto pod = pods_.find(uid); pod != pods_.end()) update(pod->second);
  }
}

void Fleet::give(std::size_t device, const std::string& uid) {
  auto& entry = devices_[device];
  const auto pod = pods_.find(uid);
  if (pod == pods_.end() || !entry.holders.insert(uid).second) return;
  if (is_bad(device)) {
    if (entry.known) ++counts_.repeats;
    entry.known = true;
  }
  pod->second.devices.insert(device);
}

void Fleet::take(std::size_t device, const std::string& uid) {
  devices_[device].holders.erase(uid);
  if (const auto pod = pods_.find(uid); pod != pods_.end()) pod->second.devices.erase(device);
  update(device);
}

}  // namespace dhc::year
