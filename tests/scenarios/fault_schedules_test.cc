// Random schedules of all that may befall a controller and its cluster at once, with brake, caps and limits on and off.
// What must hold is not asked here: every scenario checks the invariants after each of its steps.
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/core/schedules.h"
#include "tests/support/core/taint_world.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::Dice;
using dhc::test::run_schedules;
using dhc::test::TaintWorld;
using namespace std::chrono_literals;

namespace {

constexpr std::array<k8s::Kind, 5> kHeld = {k8s::Kind::Pod, k8s::Kind::ResourceClaim, k8s::Kind::ResourceSlice,
                                            k8s::Kind::Node, k8s::Kind::DeviceTaintRule};
constexpr std::array<std::string_view, 2> kNodes = {"node-a", "node-b"};

/// Pods of every kind of owner on DRA devices and on those of a plugin, drivers that are pods, and faults by the dice.
class FaultSchedule {
 public:
  explicit FaultSchedule(unsigned seed) : dice_(seed), world_(seed + 1) {
    // Not by the dice, whose later words would be others.
    if (seed % 3 == 0) world_.whole_policy().limits.brake_by_owner = {.percent = 30, .at_least = 2};
    if (seed % 4 == 0) world_.whole_policy().limits.brake_by_message = {.percent = 0, .at_least = 2};
    choose_policy();
    PodShape driver;
    driver.host_paths = {"/var/lib/kubelet/plugins", "/var/lib/kubelet/plugins_registry"};
    world_.cluster.create_daemon_set("kube-system", "gpu-driver", driver);
    PodShape plugin;
    plugin.host_paths = {"/var/lib/kubelet/device-plugins"};
    world_.cluster.create_daemon_set("kube-system", "gpu-plugin", plugin);
    world_.cluster.create_claim("default", "shared", TaintWorld::kDriver, 1);
    auto shared = TaintWorld::dra_pod();
    shared.shared_claim = "shared";
    deploy("shared", 2, shared);
    deploy("dra", 3, TaintWorld::dra_pod());
    deploy("plugin", 4, TaintWorld::plugin_pod());
    world_.cluster.create_stateful_set("default", "set", 1, TaintWorld::dra_pod());
    JobShape job;
    job.name = "train";
    job.shape = TaintWorld::plugin_pod();
    job.shape.labels = {{"app", "train"}};
    world_.cluster.create_job(job);
    world_.run_for(20s);
    backup_ = world_.cluster.store().back_up();
  }

  void run() {
    for (int step = 0; step < 20; ++step) {
      befall();
      world_.run_for(dice_.between(500ms, 40s));
    }
    heal();
    world_.run_for(40min);
    const auto writes = world_.write_count();
    world_.run_for(10min);
    // Trials and holds that end by time; a loop would write hundreds.
    CHECK(world_.write_count() - writes <= 15);
    CHECK(world_.controller().synced());
  }

 private:
  void choose_policy() {
    auto& policy = world_.policy();
    auto& limits = world_.whole_policy().limits;
    policy.after = dice_.between(0s, 90s);
    policy.evict->after = dice_.one_in(3) ? Millis(dice_.between(0s, 5min)) : 0ms;
    policy.evict->untainted = dice_.one_in(2);
    policy.evict->shared_claims_together = dice_.one_in(2);
    policy.evict->no_replacement_wait = dice_.between(0s, 3min);
    policy.evict->hold_without_replacement = dice_.one_in(4);
    policy.job_retry = JobRetryRules{};
    policy.taint->node = dice_.one_in(2);
    policy.recover.healthy_for = dice_.between(10s, 5min);
    if (dice_.one_in(4)) policy.match.health.push_back(k8s::Health::Unknown);
    if (dice_.one_in(2)) policy.match.device_taints = {{.key = "gpu.example.com/*", .effect = {}}};
    limits.brake_at_least = dice_.one_in(3) ? 1000 : 2 + dice_.below(3);
    limits.brake_trial_after = dice_.between(2min, 30min);
    limits.brake_trial_runs = dice_.between(30s, 5min);
    limits.evictions_per_minute = 1 + dice_.below(10);
    limits.max_in_flight = 1 + dice_.below(5);
    limits.per_node = 1 + dice_.below(3);
    limits.per_owner = 1 + dice_.below(3);
    // Brake, limits and caps are off in any combination.
    if (dice_.one_in(4)) limits.evictions_per_minute = limits.max_in_flight = limits.per_node = limits.per_owner = 1000;
    if (dice_.one_in(2)) world_.hold_caps();
    world_.send_policy();
  }

  void deploy(const std::string& name, int replicas, PodShape shape) {
    shape.labels = {{"app", name}};
    shape.on_sigterm =
        dice_.any_of(std::array{OnSigterm::Exit, OnSigterm::ExitZero, OnSigterm::Ignore, OnSigterm::Hang});
    world_.cluster.create_deployment("default", name, replicas, shape);
  }

  std::string any_node() { return std::string(dice_.any_of(kNodes)); }

  void set_any(std::string_view health) {
    const auto number = dice_.below(4);
    world_.cluster.set_device_health(
        any_node(), dice_.one_in(2) ? fmt::format("gpu-{}", number) : fmt::format("GPU-{}", number), health);
  }

  void set_all(const std::string& node, std::string_view health) {
    for (int i = 0; i < 4; ++i) {
      world_.cluster.set_device_health(node, fmt::format("gpu-{}", i), health);
      world_.cluster.set_device_health(node, fmt::format("GPU-{}", i), health);
    }
  }

  /// What the driver says by a taint of its own, whatever it said before.
  void taint_any() {
    const auto node = any_node();
    const auto device = fmt::format("gpu-{}", dice_.below(4));
    world_.cluster.untaint_device(node, device);
    if (dice_.one_in(3)) return;
    world_.cluster.taint_device(
        node, device, {"gpu.example.com/xid", dice_.one_in(2) ? "79" : "48", dice_.one_in(4) ? "None" : "NoSchedule"});
  }

  void befall() {
    switch (dice_.below(18)) {
      case 0:
      case 1:
      case 2:
        return set_any("Unhealthy");
      case 3:
        return set_any(dice_.one_in(2) ? "Healthy" : "Unknown");
      case 4:
        return set_all(any_node(), dice_.one_in(2) ? "Unhealthy" : "Healthy");
      case 5:
        return hurt_reporters();
      case 6:
        return world_.restart_controller();
      case 7:
        leads_ = !leads_;
        return world_.lead(leads_);
      case 8:
      case 9:
        return hurt_watches();
      case 10:
      case 11:
        return hurt_requests();
      case 12:
        return change_budgets();
      case 13:
        return hurt_etcd();
      case 14:
        // An answer may be without a Date, or none may come.
        return world_.set_clock_ahead(dice_.between(-10min, 10min), !dice_.one_in(3));
      case 15:
      case 16:
        return taint_any();
      default:
        return hurt_cluster();
    }
  }

  void hurt_reporters() {
    const auto node = any_node();
    switch (dice_.below(5)) {
      case 0:
        return world_.cluster.kill_driver(node, TaintWorld::kDriver);
      case 1:
        return world_.cluster.start_driver(node, TaintWorld::kDriver);
      case 2:
        return world_.cluster.forget_health(node, TaintWorld::kDriver);
      case 3:
        return world_.cluster.reboot(node, dice_.between(1s, 30s));
      default:
        return world_.cluster.restart_kubelet(node, dice_.between(1s, 30s));
    }
  }

  void hurt_watches() {
    const auto kind = dice_.any_of(kHeld);
    switch (dice_.below(5)) {
      case 0:
      case 1:
        return world_.hold(kind, true);
      case 2:
        for (const auto held : kHeld) world_.hold(held, false);
        return;
      case 3:
        return world_.mute(kind, true);
      default:
        for (const auto mute : kHeld) world_.mute(mute, false);
    }
  }

  void hurt_requests() {
    auto& faults = world_.cluster.faults();
    switch (dice_.below(5)) {
      case 0:
        return faults.add({.method = k8s::Method::Post,
                           .path_contains = "/eviction",
                           .count = 1 + dice_.below(6),
                           .status = 500,
                           .handled_first = dice_.one_in(2)});
      case 1:
        return faults.add({.method = k8s::Method::Patch, .count = 1 + dice_.below(6), .status = 409});
      case 2:
        return faults.add(
            {.method = k8s::Method::Patch, .count = 1 + dice_.below(3), .status = 504, .handled_first = true});
      case 3:
        return faults.add({.path_contains = "/pods?",
                           .count = 2,
                           .cut_after = static_cast<std::size_t>(500 + dice_.below(5'000)),
                           .duplicate = dice_.one_in(2)});
      default:
        return faults.add({.watches = false,
                           .count = 1 + dice_.below(10),
                           .status = 429,
                           .headers = {{"retry-after", std::to_string(1 + dice_.below(30))}}});
    }
  }

  void change_budgets() {
    const auto app = dice_.any_of(std::array{"dra", "plugin", "shared"});
    if (dice_.one_in(3)) return remove_budgets();
    budgets_.push_back(fmt::format("budget-{}", budgets_.size()));
    world_.cluster.add_budget({.name = budgets_.back(),
                               .match_labels = {{"app", app}},
                               .min_available = dice_.below(3),
                               .max_unavailable = {}});
  }

  void remove_budgets() {
    for (const auto& name : budgets_) (void)world_.cluster.kubectl_delete(Res::Budgets, "default", name);
  }

  void hurt_etcd() {
    if (dice_.one_in(2)) {
      backup_ = world_.cluster.store().back_up();
    } else {
      world_.restore_etcd(*backup_);
      restored_ = true;
    }
  }

  void hurt_cluster() {
    switch (dice_.below(4)) {
      case 0:
        world_.cluster.compact();
        world_.cluster.store().cut_watches();
        return;
      case 1:
        return world_.cluster.cordon(any_node(), dice_.one_in(2));
      case 2:
        return world_.cluster.set_node_ready(any_node(), dice_.one_in(2));
      default: {
        const auto names = world_.cluster.pod_names("default");
        if (names.empty()) return;
        (void)world_.cluster.kubectl_delete(Res::Pods, "default", dice_.any_of(names));
      }
    }
  }

  /// Nothing that the controller needs is broken any more; what is bad stays bad.
  void heal() {
    world_.cluster.faults().clear();
    for (const auto kind : kHeld) {
      world_.hold(kind, false);
      world_.mute(kind, false);
    }
    for (const auto node : kNodes) {
      world_.cluster.start_driver(std::string(node), TaintWorld::kDriver);
      world_.cluster.set_node_ready(std::string(node), true);
      world_.cluster.cordon(std::string(node), false);
    }
    remove_budgets();
    world_.set_clock_ahead(0s);
    world_.lead(true);
    // As the runbook of a restored etcd says.
    if (restored_ || dice_.one_in(4)) world_.restart_controller();
  }

  Dice dice_;
  TaintWorld world_;
  std::optional<Store> backup_;
  std::vector<std::string> budgets_;
  bool leads_ = true;
  bool restored_ = false;
};

}  // namespace

TEST_CASE("in any schedule of faults, with brake, caps and limits on and off, no step breaks an invariant") {
  run_schedules("faults", [](unsigned seed) { FaultSchedule(seed).run(); });
}
