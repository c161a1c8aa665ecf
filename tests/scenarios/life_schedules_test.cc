// Random schedules of days in the life of devices: what breaks and heals them, who vouches for them, exchanges them,
// takes their nodes away, rolls their drivers out, and edits what the controller remembers of them. What must hold is
// not asked here: every scenario checks the invariants after each of its steps.
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "tests/support/core/schedules.h"
#include "tests/support/core/taint_world.h"

namespace dhc::test {

using namespace dhc::sim;
using namespace std::chrono_literals;

namespace {

constexpr std::array<std::string_view, 3> kNodes = {"node-a", "node-b", "node-c"};
constexpr std::array<std::string_view, 3> kWords = {"Xid 79", "double-bit error", "lost link 3 of gpu-1"};

/// What breaks the devices of a fleet.
enum class Culprit : std::uint8_t { Program, Node, Release };

constexpr int kRolled = 6;  // nodes of a fleet that have the new release

/// Which of the cluster's ways and rules a schedule has is dealt once; then one thing after the other befalls it.
class LifeSchedule {
 public:
  explicit LifeSchedule(unsigned seed)
      : dice_(seed), world_(seed + 1), is_fleet_(seed % 16 == 5), culprit_(static_cast<Culprit>(seed / 16 % 3)) {
    choose_policy();
    if (is_fleet_) world_.whole_policy().limits.suspect_after = 3;
    world_.send_policy();
    add_node("node-c");
    PodShape driver;
    driver.host_paths = {"/var/lib/kubelet/plugins", "/var/lib/kubelet/plugins_registry"};
    world_.cluster.create_daemon_set("kube-system", "gpu-driver", driver);
    PodShape plugin;
    plugin.host_paths = {"/var/lib/kubelet/device-plugins"};
    world_.cluster.create_daemon_set("kube-system", "gpu-plugin", plugin);
    world_.cluster.create_deployment("default", "dra", 4, TaintWorld::dra_pod());
    world_.cluster.create_deployment("default", "plugin", 4, TaintWorld::plugin_pod());
    auto pair = TaintWorld::dra_pod();
    pair.count = 2;
    world_.cluster.create_stateful_set("default", "pair", 1, pair);
    if (dice_.one_in(3)) world_.cluster.share_counters("node-a", {"gpu-0", "gpu-1", "gpu-2"}, "card");
    if (is_fleet_) add_fleet();
    world_.run_for(dice_.one_in(3) ? Millis(15min) : Millis(20s));  // what is new is not judged like what is old
  }

  void run() {
    const int steps = is_fleet_ ? 12 : 24;
    for (int step = 0; step < steps; ++step) {
      if (is_fleet_ && dice_.one_in(culprit_ == Culprit::Program ? 3 : 2)) {
        spoil();
      } else {
        befall();
      }
      pass();
    }
    heal();
    world_.run_for(40min);
    const auto from = world_.now.mono;
    const auto writes = world_.write_count();
    world_.run_for(10min);
    // Of a fleet's dozens what is given back and still bad costs a condition, an eviction and a new rule, with what is
    // said and kept of it.
    CHECK(world_.write_count() - writes <= 20 + (is_fleet_ ? 10 * untainted_since(from) : 0));
    CHECK(world_.controller().synced());
  }

 private:
  void choose_policy() {
    auto& whole = world_.whole_policy();
    auto& limits = whole.limits;
    auto& policy = world_.policy();
    policy.after = dice_.between(0s, 60s);
    policy.mode = dice_.one_in(8) ? Mode::Observe : Mode::Enforce;
    if (dice_.one_in(10)) whole.mode_cap = Mode::Observe;
    if (dice_.one_in(3)) policy.evict.reset();
    if (policy.evict) policy.evict->no_replacement_wait = dice_.between(0s, 3min);
    policy.taint->node = dice_.one_in(2);
    policy.taint->node_at_least_devices = 1 + dice_.below(2);
    policy.taint->node_at_least_percent = 10;
    policy.taint->device = dice_.any_of(std::array{TaintRules::Device::NoSchedule, TaintRules::Device::NoSchedule,
                                                   TaintRules::Device::Staged, TaintRules::Device::Never});
    policy.recover.healthy_for = dice_.between(10s, 3min);
    policy.recover.hold = dice_.between(5min, 2h);
    policy.recover.probation = !dice_.one_in(4);
    policy.recover.quarantine_above = dice_.any_of(std::array{0.5, 1.5, 2.0, 100.0});
    policy.job_retry = JobRetryRules{};
    policy.job_retry->taints_rejecting_node = dice_.one_in(2);
    policy.job_retry->rejections = 1 + dice_.below(3);
    if (dice_.one_in(3)) policy.match.health.push_back(k8s::Health::Unknown);
    if (dice_.one_in(2)) policy.match.device_taints = {{.key = "gpu.example.com/*", .effect = {}}};
    if (dice_.one_in(2)) {
      policy.hand_over.emplace();
      policy.hand_over->incidents = dice_.below(3);
      policy.hand_over->condition = HandOverCondition{.type = "DevicesHealthy", .is_problem = dice_.one_in(2)};
      if (dice_.one_in(2)) policy.hand_over->resource = remediation();
    }
    if (dice_.one_in(6)) policy.enforce_on = EnforceOn{.namespaces = {}, .nodes = {}, .percent = 50};
    limits.brake_at_least = dice_.one_in(3) ? 2 + dice_.below(3) : 1000;
    limits.brake_trial_after = dice_.between(2min, 30min);
    limits.cap_nodes_handed_over = {.percent = 5, .at_least = 1 + dice_.below(2)};
    limits.suspect_after = 0;
    whole.status = dice_.one_in(3);
    if (dice_.one_in(3)) world_.hold_caps();
  }

  [[nodiscard]] HandOverResource remediation() {
    return {.api_version = "remediation.example.com/v1",
            .kind = "Remediation",
            .ns = "repair",
            .name = "{node}",
            .text = R"({"apiVersion":"remediation.example.com/v1","kind":"Remediation",)"
                    R"("metadata":{"name":"{node}","namespace":"repair"},"spec":{"node":"{node}"}})",
            .per_device = false,
            .keeps = dice_.one_in(2)};
  }

  void add_node(const std::string& name) {
    world_.cluster.add_node({name, {{TaintWorld::kResource, 4}}, {{TaintWorld::kDriver, 4}}, {}});
  }

  /// Enough devices under different owners for one of those to be told from chance.
  void add_fleet() {
    // Of a release each node counts once.
    const int nodes = culprit_ == Culprit::Release ? 32 : 8;
    for (int n = 0; n < nodes; ++n)
      world_.cluster.add_node({fmt::format("fleet-{}", n), {}, {{TaintWorld::kDriver, 64 / nodes}}, {}});
    world_.cluster.create_deployment("default", "poison", 4, TaintWorld::dra_pod());
    for (int i = 0; i < 56; ++i)
      world_.cluster.create_stateful_set("default", fmt::format("tenant-{}", i), 1, TaintWorld::dra_pod());
  }

  void spoil() {
    switch (culprit_) {
      case Culprit::Program:
        return poison();
      case Culprit::Node:
        for (int i = 0; i < 3; ++i) break_one_on(0);
        return;
      case Culprit::Release:
        if (!std::exchange(is_rolled_, true)) roll_fleet();
        for (int i = 0; i < 3; ++i) break_one_on(next_rolled_++ % kRolled);
    }
  }

  /// The program breaks what it is given.
  void poison() {
    for (const auto& name : world_.live("poison-")) {
      if (!world_.dra_device(name).empty()) world_.set_health(world_.device_of(name), "Unhealthy", "Xid 31");
    }
  }

  /// A device of this node of the fleet, under a tenant that has broken none.
  void break_one_on(int node) {
    for (const auto& name : world_.live("tenant-")) {
      if (world_.dra_device(name).empty() || broken_under_.contains(name)) continue;
      const auto device = world_.device_of(name);
      if (device.find(fmt::format("/fleet-{}/", node)) == std::string::npos) continue;
      broken_under_.insert(name);
      return world_.set_health(device, "Unhealthy", "Xid 63");
    }
  }

  /// The driver of the fleet's first nodes is of another release from now on.
  void roll_fleet() {
    (void)world_.cluster.kubectl_patch(Res::DaemonSets, "kube-system", "gpu-driver",
                                       {{"spec", {{"template", {{"metadata", {{"labels", {{"version", "2"}}}}}}}}}});
    for (int n = 0; n < kRolled; ++n) world_.cluster.kubectl_delete_pods_on("kube-system", fmt::format("fleet-{}", n));
    world_.run_for(15min);  // what is new is not judged like what is old
  }

  void pass() {
    if (dice_.one_in(12)) {
      // Everything stands still for a day, as when a machine sleeps.
      world_.now = {world_.now.mono + 25h, world_.now.wall + 25h};
      return world_.run_for(1min);
    }
    if (dice_.one_in(5)) return world_.run_for(dice_.between(5min, 30min));
    world_.run_for(dice_.between(500ms, 90s));
  }

  std::string any_node() { return std::string(dice_.any_of(kNodes)); }
  /// A DRA device of the node, or one of its plugin's.
  std::string any_device() { return fmt::format("{}-{}", dice_.one_in(3) ? "GPU" : "gpu", dice_.below(4)); }

  [[nodiscard]] std::string time() const { return format_rfc3339(world_.now.wall); }

  void annotate(Res res, const std::string& ns, const std::string& name, std::string_view key, const Json& value) {
    (void)world_.cluster.kubectl_patch(res, ns, name, {{"metadata", {{"annotations", {{std::string(key), value}}}}}});
  }

  /// How many devices' rules have been taken off, each counted once.
  [[nodiscard]] std::size_t untainted_since(MonoTime from) const {
    std::set<std::string> rules;
    for (const auto& request : world_.cluster.requests()) {
      const bool is_removal = request.method == k8s::Method::Delete && request.target.contains("/devicetaintrules/");
      if (is_removal && request.at.mono >= from) rules.insert(request.target);
    }
    return rules.size();
  }

  std::vector<std::string> rules() const {
    std::vector<std::string> names;
    for (const auto& [name, rule] : world_.cluster.store().all(Res::TaintRules)) {
      if (name.name.starts_with("dhc-")) names.push_back(name.name);
    }
    return names;
  }

  void befall() {
    switch (dice_.below(20)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return world_.cluster.set_device_health(any_node(), any_device(), "Unhealthy",
                                                std::string(dice_.any_of(kWords)));
      case 4:
      case 5:
        return world_.cluster.set_device_health(any_node(), any_device(), dice_.one_in(4) ? "Unknown" : "Healthy");
      case 6:
        for (const auto node : kNodes) {
          for (int i = 0; i < 4; ++i)
            world_.cluster.set_device_health(std::string(node), fmt::format("gpu-{}", i), "Healthy");
          for (int i = 0; i < 4; ++i)
            world_.cluster.set_device_health(std::string(node), fmt::format("GPU-{}", i), "Healthy");
        }
        return;
      case 7:
        return world_.cluster.replace_device(any_node(), fmt::format("gpu-{}", dice_.below(4)));
      case 8:
        return change_devices();
      case 9:
      case 10:
        return vouch();
      case 11:
      case 12:
        return touch_taints();
      case 13:
        return begin_anew();
      case 14:
        return roll_out();
      case 15:
        return change_node();
      case 16:
        return edit_state();
      case 17:
        return change_policy();
      case 18:
        return taint_by_driver();
      default:
        return hurt_requests();
    }
  }

  void change_devices() {
    const auto node = any_node();
    const auto device = any_device();
    if (dice_.one_in(2)) return world_.cluster.vanish_device(node, device);
    for (int i = 0; i < 4; ++i) {
      world_.cluster.restore_device(node, TaintWorld::kDriver, fmt::format("gpu-{}", i));
      world_.cluster.restore_device(node, TaintWorld::kResource, fmt::format("GPU-{}", i));
    }
  }

  void vouch() {
    const auto node = any_node();
    switch (dice_.below(5)) {
      case 0:
        return annotate(Res::Nodes, "", node, kAcknowledgeAnnotation, time());
      case 1:
        // Ahead of the clock, or no time at all.
        return annotate(Res::Nodes, "", node, kAcknowledgeAnnotation,
                        dice_.one_in(2) ? "yes" : format_rfc3339(world_.now.wall + 2min));
      case 2:
        return annotate(Res::Nodes, "", node, dice_.one_in(2) ? kBrakeReleaseAnnotation : kCapReleaseAnnotation,
                        time());
      case 3:
        world_.whole_policy().brake_release = time();
        return world_.send_policy();
      default:
        for (const auto& name : rules()) {
          if (dice_.one_in(2)) annotate(Res::TaintRules, "", name, kAcknowledgeAnnotation, "");
        }
    }
  }

  void touch_taints() {
    auto& cluster = world_.cluster;
    switch (dice_.below(6)) {
      case 0:
      case 1:
        for (const auto& name : rules()) {
          if (dice_.one_in(2)) (void)cluster.kubectl_delete(Res::TaintRules, "", name);
        }
        return;
      case 2:
        for (const auto& name : rules()) {
          (void)cluster.kubectl_patch(Res::TaintRules, "", name, {{"spec", {{"taint", {{"effect", "None"}}}}}});
        }
        return;
      case 3: {
        const Json selector = {{"driver", TaintWorld::kDriver}, {"pool", any_node()}, {"device", "gpu-1"}};
        const Json taint = {{"key", "vendor.example.com/bad"}, {"effect", "NoSchedule"}};
        (void)cluster.kubectl_create(Res::TaintRules, {{"metadata", {{"name", "vendor"}}},
                                                       {"spec", {{"deviceSelector", selector}, {"taint", taint}}}});
        return;
      }
      case 4:
        (void)cluster.kubectl_delete(Res::TaintRules, "", "vendor");
        return cluster.serve(Res::TaintRules, !dice_.one_in(2));
      default:
        // Our taint is taken off the node, or changed on it.
        for (const auto node : kNodes) {
          if (!world_.is_tainted(std::string(node))) continue;
          const bool changes = dice_.one_in(3);
          cluster.store().edit(Res::Nodes, {"", std::string(node)}, [&](Json& object) {
            auto& taints = object["spec"]["taints"];
            for (auto it = taints.begin(); it != taints.end();) {
              const bool is_ours = text(*it, {"key"}) == kTaintKey;
              if (is_ours && changes) (*it)["effect"] = "PreferNoSchedule";
              it = is_ours && !changes ? taints.erase(it) : it + 1;
            }
          });
        }
    }
  }

  void begin_anew() {
    const auto node = any_node();
    switch (dice_.below(5)) {
      case 0:
        return world_.restart_controller();
      case 1:
        world_.lead(false);
        world_.run_for(dice_.between(1s, 2min));
        return world_.lead(true);
      case 2:
        return world_.cluster.reboot(node, dice_.between(1s, 30s));
      case 3:
        return world_.cluster.forget_health(node, dice_.one_in(2) ? TaintWorld::kDriver : TaintWorld::kResource);
      default:
        return world_.cluster.restart_kubelet(node, dice_.between(1s, 30s));
    }
  }

  /// The driver's pod is replaced, and what breaks then may be its own doing.
  void roll_out() {
    const auto node = any_node();
    world_.cluster.kubectl_delete_pods_on("kube-system", node);
    world_.run_for(dice_.between(1s, 60s));
    world_.cluster.set_device_health(node, any_device(), "Unhealthy", "page fault");
  }

  void change_node() {
    const auto node = any_node();
    auto& cluster = world_.cluster;
    switch (dice_.below(5)) {
      case 0:
        return cluster.set_node_condition(node, "MaintenancePlanned", dice_.one_in(2) ? "True" : "False");
      case 1:
        return cluster.cordon(node, dice_.one_in(2));
      case 2:
        return cluster.set_node_ready(node, dice_.one_in(2));
      case 3:
        // Another machine under the same name.
        if (cluster.get(Res::Nodes, "", node) != nullptr) cluster.remove_node(node);
        world_.run_for(dice_.between(1s, 5min));
        return add_node(node);
      default:
        cluster.kill_driver(node, TaintWorld::kDriver);
        world_.run_for(dice_.between(1s, 2min));
        return cluster.start_driver(node, TaintWorld::kDriver);
    }
  }

  void edit_state() {
    auto& faults = world_.cluster.faults();
    switch (dice_.below(6)) {
      case 0:
      case 1:
      case 2:
        return world_.spoil_state(std::nullopt);
      case 3:
        world_.spoil_state("no state");
        return world_.restart_controller();
      case 4:
        world_.spoil_state(R"({"version":99,"devices":[]})");
        world_.restart_controller();
        world_.run_for(1min);
        return world_.spoil_state(std::nullopt);
      default:
        faults.add({.method = k8s::Method::Get, .path_contains = "/configmaps", .count = 30, .status = 403});
        world_.restart_controller();
        world_.run_for(1min);
        return faults.clear();
    }
  }

  void change_policy() {
    auto& whole = world_.whole_policy();
    auto& policy = world_.policy();
    switch (dice_.below(9)) {
      case 0:
        whole.limits.paused = !whole.limits.paused;
        break;
      case 1:
        whole.limits.pauses = {{.nodes = {any_node()}, .until = world_.now.wall + dice_.between(1min, 10min)}};
        break;
      case 2:
        policy.mode = policy.mode == Mode::Observe ? Mode::Enforce : Mode::Observe;
        break;
      case 3:
        policy.recover.quarantine_above = dice_.any_of(std::array{0.5, 1.5, 100.0});
        break;
      case 4:
        if (policy.evict) {
          policy.evict.reset();
        } else {
          policy.evict.emplace();
        }
        break;
      case 5:
        policy.taint->device = dice_.one_in(2) ? TaintRules::Device::Never : TaintRules::Device::NoSchedule;
        break;
      case 6:
        whole.limits.taints_per_minute = 1 + dice_.below(60);
        break;
      case 7:
        return world_.reject_policy("gpus.yaml:3: after: must be a time");
      default:
        policy.name = policy.name == "gpus" ? "other-gpus" : "gpus";
        break;
    }
    world_.send_policy();
  }

  void taint_by_driver() {
    const auto node = any_node();
    const auto device = fmt::format("gpu-{}", dice_.below(4));
    world_.cluster.untaint_device(node, device);
    if (dice_.one_in(3)) return;
    world_.cluster.taint_device(node, device, {"gpu.example.com/xid", dice_.one_in(2) ? "79" : "48", "NoSchedule"});
  }

  void hurt_requests() {
    auto& faults = world_.cluster.faults();
    const auto path =
        dice_.any_of(std::array{"/devicetaintrules", "/nodes/", "/configmaps", "/status", "/events", "remediation"});
    const auto status = dice_.any_of(std::array{403U, 409U, 500U, 504U});
    faults.add({.path_contains = path,
                .watches = false,
                .count = 1 + dice_.below(6),
                .status = status,
                .handled_first = status >= 500 && dice_.one_in(2)});
  }

  /// Nothing that the controller needs is broken any more; what is bad stays bad.
  void heal() {
    world_.cluster.faults().clear();
    for (const auto node : kNodes) {
      world_.cluster.start_driver(std::string(node), TaintWorld::kDriver);
      world_.cluster.set_node_ready(std::string(node), true);
      world_.cluster.cordon(std::string(node), false);
    }
    world_.lead(true);
  }

  Dice dice_;
  TaintWorld world_;
  bool is_fleet_;
  Culprit culprit_;  // of a fleet
  bool is_rolled_ = false;
  int next_rolled_ = 0;
  std::set<std::string> broken_under_;
};

}  // namespace

TEST_CASE("in any schedule of a device's life, whoever vouches, exchanges or forgets, no step breaks an invariant") {
  run_schedules("life", [](unsigned seed) { LifeSchedule(seed).run(); });
}

}  // namespace dhc::test
