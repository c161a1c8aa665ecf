#include "cli/demo_acts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "app/policy_desk.h"
#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "domain/policy/config.h"

namespace dhc::cli {

namespace {
using namespace std::chrono_literals;
using Events = std::vector<DemoEvent>;

constexpr std::string_view kDriver = "gpu.example.com";
constexpr std::string_view kResource = "example.com/gpu";
constexpr const char* kNamespace = "default";
constexpr std::array<const char*, 3> kNodes = {"node-a", "node-b", "node-c"};

/// What the example DRA driver says of a device, before and after its name. **Source:**
/// kubernetes-sigs/dra-example-driver b8c2e70e, health_simulator.go.
constexpr std::array<std::array<const char*, 2>, 3> kMessages = {
    {{"Driver communication timeout on ", " (attempt 3)"},
     {"ECC error count exceeded threshold on ", " (12 errors in last hour)"},
     {"", " initiating recovery sequence (diagnostics in progress)"}}};

sim::PodShape shape_of(std::string_view kind) {
  sim::PodShape shape;
  (kind == kDriver ? shape.device_class : shape.resource) = kind;
  shape.grace_seconds = 5;
  return shape;
}

/// Three nodes with so many devices of one kind each.
void add_nodes(sim::Cluster& cluster, std::string_view kind, int devices) {
  for (const auto* node : kNodes) {
    sim::NodeShape shape;
    shape.name = node;
    (kind == kDriver ? shape.drivers : shape.plugins)[std::string(kind)] = devices;
    cluster.add_node(shape);
  }
}

std::string device_name(std::string_view kind, int number) {
  return fmt::format("{}-{}", kind == kDriver ? "gpu" : "GPU", number);
}

/// A device that a pod of this workload holds, by the seed.
DemoDevice held_by(const sim::Cluster& cluster, DemoScene& scene, std::string_view kind, const std::string& workload) {
  std::vector<DemoDevice> found;
  for (const auto* node : kNodes) {
    for (int number = 0; number < 8; ++number) {
      const auto device = device_name(kind, number);
      const auto holders = cluster.holders(node, device);
      const bool fits = std::ranges::any_of(holders, [&](const std::string& holder) {
        return holder.starts_with(fmt::format("{}/{}-", kNamespace, workload));
      });
      if (fits) found.push_back({.node = node, .device = device, .kind = std::string(kind)});
    }
  }
  return found.empty() ? DemoDevice{} : found.at(scene.pick(found.size()));
}

/// A driver says what is wrong, a plugin has no words for it. **Source:** KEP-4680.
DemoEvent break_devices(sim::Cluster& cluster, DemoScene& scene) {
  DemoEvent event{.what = DemoEvent::What::Broke, .devices = scene.targets, .said = {}, .holders = {}};
  const auto& [before, after] = kMessages.at(scene.pick(kMessages.size()));
  for (const auto& device : scene.targets) {
    const auto said = device.kind == kDriver ? before + device.device + after : std::string();
    std::ranges::copy(cluster.holders(device.node, device.device), std::back_inserter(event.holders));
    cluster.set_device_health(device.node, device.device, "Unhealthy", said);
    if (event.said.empty()) event.said = said;
  }
  return event;
}

DemoEvent repair_devices(sim::Cluster& cluster, const DemoScene& scene) {
  for (const auto& device : scene.targets) cluster.set_device_health(device.node, device.device, "Healthy");
  return {.what = DemoEvent::What::Repaired, .devices = scene.targets, .said = {}, .holders = {}};
}

DemoStep break_one_of(Millis at, std::string_view kind, std::string workload) {
  return {at, [kind, workload = std::move(workload)](sim::Cluster& cluster, DemoScene& scene) {
            scene.targets = {held_by(cluster, scene, kind, workload)};
            return Events{break_devices(cluster, scene)};
          }};
}

/// What the last step broke fails again.
DemoStep break_again(Millis at) {
  return {at, [](sim::Cluster& cluster, DemoScene& scene) { return Events{break_devices(cluster, scene)}; }};
}

DemoStep repair(Millis at) {
  return {at, [](sim::Cluster& cluster, DemoScene& scene) { return Events{repair_devices(cluster, scene)}; }};
}

DemoEvent told(std::string text) {
  return {.what = DemoEvent::What::Told, .devices = {}, .said = std::move(text), .holders = {}};
}

/// An operator vouches for every device that we taint.
DemoStep acknowledge(Millis at) {
  return {
      at, [](sim::Cluster& cluster, DemoScene&) {
        Events events;
        std::vector<std::string> rules;
        for (const auto& [name, rule] : cluster.store().all(sim::Res::TaintRules)) rules.push_back(name.name);
        for (const auto& rule : rules) {
          (void)cluster.kubectl_patch(sim::Res::TaintRules, "", rule,
                                      {{"metadata", {{"annotations", {{"device-health.io/acknowledge", "tested"}}}}}});
          events.push_back(told("kubectl annotate devicetaintrule " + rule + " device-health.io/acknowledge=tested"));
        }
        return events;
      }};
}

/// An operator vouches for what the workload runs, on each of its pods.
DemoStep vouch_for(Millis at, std::string workload) {
  return {at, [workload = std::move(workload)](sim::Cluster& cluster, DemoScene&) {
            Events events;
            const auto time = format_rfc3339(cluster.now().wall);
            for (const auto& pod : cluster.pod_names(kNamespace)) {
              if (!pod.starts_with(workload + "-")) continue;
              (void)cluster.kubectl_patch(
                  sim::Res::Pods, kNamespace, pod,
                  {{"metadata", {{"annotations", {{std::string(kAcknowledgeAnnotation), time}}}}}});
              events.push_back(told(fmt::format("kubectl annotate pod {} {}={}", pod, kAcknowledgeAnnotation, time)));
            }
            return events;
          }};
}

DemoAct dra() {
  return {.name = "dra",
          .title = "A DRA device fails under a training Job, then one under a Deployment",
          .policy =
              "mode: enforce\n"
              "match: {drivers: [gpu.example.com]}\n"
              "after: 30s\n"
              "taint: {device: NoSchedule}\n"
              "jobRetry: {credit: true}\n"
              "evict: {after: 30s}\n",
          .limits = "",
          .set_up =
              [](sim::Cluster& cluster) {
                add_nodes(cluster, kDriver, 4);
                sim::JobShape training;
                training.name = "training";
                training.parallelism = 3;
                training.completions = 3;
                training.indexed = true;
                training.shape = shape_of(kDriver);
                cluster.create_job(training);
                cluster.create_deployment(kNamespace, "render", 2, shape_of(kDriver));
              },
          .steps = {break_one_of(5s, kDriver, "training"), break_one_of(150s, kDriver, "render")},
          .length = 240s,
          .longest_wait = 3500ms};
}

DemoAct plugin() {
  return {.name = "plugin",
          .title = "A device of a device plugin fails; another is back before anybody must move",
          .policy =
              "mode: enforce\n"
              "match: {resources: [example.com/gpu]}\n"
              "after: 30s\n"
              "evict: {}\n",
          .limits = "",
          .set_up =
              [](sim::Cluster& cluster) {
                add_nodes(cluster, kResource, 4);
                cluster.create_deployment(kNamespace, "inference", 4, shape_of(kResource));
              },
          .steps = {break_one_of(5s, kResource, "inference"), break_one_of(90s, kResource, "inference"), repair(105s)},
          .length = 180s,
          .longest_wait = 6s};
}

DemoAct budget() {
  return {.name = "budget",
          .title = "A PodDisruptionBudget says no, until its owner gives way",
          .policy =
              "mode: enforce\n"
              "match: {drivers: [gpu.example.com]}\n"
              "after: 30s\n"
              "taint: {device: NoSchedule}\n"
              "evict: {}\n",
          .limits = "",
          .set_up =
              [](sim::Cluster& cluster) {
                add_nodes(cluster, kDriver, 2);
                cluster.create_deployment(kNamespace, "serving", 2, shape_of(kDriver));
                cluster.add_budget({kNamespace, "serving", {{"app", "serving"}}, 2, std::nullopt});
              },
          .steps = {break_one_of(5s, kDriver, "serving"),
                    {4min,
                     [](sim::Cluster& cluster, DemoScene&) {
                       (void)cluster.kubectl_patch(sim::Res::Budgets, kNamespace, "serving",
                                                   {{"spec", {{"minAvailable", 1}}}});
                       return Events{told("kubectl patch pdb serving: minAvailable 2 -> 1")};
                     }}},
          .length = 8min,
          .longest_wait = 6s};
}

DemoAct flapping() {
  return {.name = "flapping",
          .title = "A card that fails, recovers and fails again ends in quarantine",
          .policy =
              "mode: enforce\n"
              "match: {drivers: [gpu.example.com]}\n"
              "after: 30s\n"
              "taint: {device: NoSchedule}\n"
              "recover: {healthyFor: 10m, halfLife: 720h, quarantineAbove: 2}\n"
              "evict: {after: 1h}\n",
          .limits = "",
          .set_up =
              [](sim::Cluster& cluster) {
                add_nodes(cluster, kDriver, 2);
                cluster.create_deployment(kNamespace, "render", 2, shape_of(kDriver));
              },
          .steps = {break_one_of(5s, kDriver, "render"), repair(5min), break_again(20min), repair(25min),
                    break_again(40min), repair(45min), acknowledge(3h)},
          .length = 3h + 1min};
}

DemoAct brake() {
  return {.name = "brake",
          .title = "A driver lies about all devices of a node: the brake stops, and nobody is evicted",
          .policy =
              "mode: enforce\n"
              "match: {drivers: [gpu.example.com]}\n"
              "after: 30s\n"
              "taint: {device: NoSchedule}\n"
              "evict: {after: 30s}\n",
          .limits = "brake: {percent: 40, atLeast: 3, within: 5m, trialAfter: 30m}\n",
          .set_up =
              [](sim::Cluster& cluster) {
                add_nodes(cluster, kDriver, 4);
                cluster.create_deployment(kNamespace, "render", 9, shape_of(kDriver));
              },
          .steps = {{5s,
                     [](sim::Cluster& cluster, DemoScene& scene) {
                       const std::string node = kNodes.at(scene.pick(kNodes.size()));
                       for (int number = 0; number < 4; ++number) {
                         scene.targets.push_back(
                             {.node = node, .device = device_name(kDriver, number), .kind = std::string(kDriver)});
                       }
                       return Events{break_devices(cluster, scene)};
                     }},
                    {20min,
                     [](sim::Cluster& cluster, DemoScene& scene) {
                       return Events{told("the fault is the driver's own: its daemon is repaired"),
                                     repair_devices(cluster, scene)};
                     }}},
          .length = 40min,
          .longest_wait = 7s};
}

DemoAct recovery() {
  return {.name = "recovery",
          .title = "Nobody reports on an empty device: its taint ends by time, on probation",
          .policy =
              "mode: enforce\n"
              "match: {drivers: [gpu.example.com]}\n"
              "after: 30s\n"
              "taint: {device: NoSchedule}\n"
              "recover: {healthyFor: 10m, hold: 2h}\n"
              "evict: {}\n",
          .limits = "",
          .set_up =
              [](sim::Cluster& cluster) {
                add_nodes(cluster, kDriver, 1);
                cluster.create_deployment(kNamespace, "render", 2, shape_of(kDriver));
              },
          .steps = {break_one_of(5s, kDriver, "render"),
                    {2h + 10min,
                     [](sim::Cluster& cluster, DemoScene&) {
                       cluster.create_deployment(kNamespace, "canary", 1, shape_of(kDriver));
                       return Events{told("kubectl create deployment canary: its pod gets the device, still broken")};
                     }},
                    repair(2h + 14min),
                    acknowledge(2h + 16min)},
          .length = 2h + 17min,
          .longest_wait = 3500ms};
}

/// Its program breaks each card that it is given, and each is well once it has gone.
DemoAct guilty() {
  return {.name = "guilty",
          .title = "A Job breaks each device that it is given: the Job is suspected, not the devices",
          .policy =
              "mode: enforce\n"
              "match: {drivers: [gpu.example.com]}\n"
              "after: 30s\n"
              "taint: {device: NoSchedule}\n"
              "recover: {healthyFor: 10m, hold: 2h}\n"
              "jobRetry: {credit: true}\n"
              "evict: {}\n",
          .limits = "caps: {cluster: {percent: 25}, ownerDevicesPerDay: {percent: 25, atLeast: 5}}\n",
          .set_up =
              [](sim::Cluster& cluster) {
                add_nodes(cluster, kDriver, 8);
                cluster.create_deployment(kNamespace, "render", 20, shape_of(kDriver));
                sim::JobShape miner;
                miner.name = "miner";
                miner.shape = shape_of(kDriver);
                cluster.create_job(miner);
              },
          .steps = {break_one_of(5s, kDriver, "miner"), repair(150s), break_one_of(5min, kDriver, "miner"),
                    repair(450s), break_one_of(10min, kDriver, "miner"), repair(750s),
                    break_one_of(15min, kDriver, "miner"), repair(24min), vouch_for(25min, "miner")},
          .length = 40min,
          .longest_wait = 1500ms};
}

/// Lines of YAML, moved to the right.
std::string indented(std::string_view lines) {
  std::string out;
  while (!lines.empty()) {
    const auto end = lines.find('\n');
    out += "  " + std::string(lines.substr(0, end)) + "\n";
    lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
  }
  return out;
}
}  // namespace

std::size_t DemoScene::pick(std::size_t count) {
  random = random * 6364136223846793005ULL + 1442695040888963407ULL;
  return static_cast<std::size_t>(random >> 33U) % count;
}

std::span<const DemoAct> demo_acts() {
  static const std::array kActs = {dra(), plugin(), budget(), flapping(), brake(), recovery(), guilty()};
  return kActs;
}

const DemoAct* find_act(std::string_view name) {
  const auto acts = demo_acts();
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error == std::errc() && end == name.data() + name.size()) {
    return number >= 1 && number <= acts.size() ? &acts[number - 1] : nullptr;
  }
  const auto found = std::ranges::find(acts, name, &DemoAct::name);
  return found == acts.end() ? nullptr : &*found;
}

std::string act_names() {
  std::vector<std::string_view> names;
  for (const auto& act : demo_acts()) names.push_back(act.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<Policy> policy_of(const DemoAct& act) {
  std::vector<ConfigFile> files = {
      {"policy.yaml", fmt::format("apiVersion: device-health.io/v1alpha1\nkind: DeviceHealthPolicy\n"
                                  "metadata: {{name: demo}}\nspec:\n{}",
                                  indented(act.policy))}};
  if (!act.limits.empty()) {
    files.push_back({"limits.yaml", fmt::format("apiVersion: device-health.io/v1alpha1\nkind: ControllerLimits\n"
                                                "metadata: {{name: demo}}\nspec:\n{}",
                                                indented(act.limits))});
  }
  auto policy = dhc::policy_of(parse_config(files));
  if (!policy) return policy;
  policy->mode_cap = Mode::Enforce;
  policy->own_namespace = "device-health-system";
  return policy;
}

}  // namespace dhc::cli
