// Random schedules of what runs on devices that break: Jobs of every kind, gangs, groups, pods that are told before
// they go, pods that nobody may move, and what tenants and other controllers write meanwhile. What must hold is not
// asked here: every scenario checks the invariants after each of its steps.
#include <array>
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

constexpr std::array<std::string_view, 2> kNamespaces = {"default", "team"};
constexpr auto kMuteDriver = "mute.example.com";

/// Which of the many workloads are there is dealt once; then one thing after the other befalls them.
class WorkSchedule {
 public:
  explicit WorkSchedule(unsigned seed) : dice_(seed), world_(seed + 1) {
    // Half of the API servers are later ones, which know a word more than 1.37's; the others refuse it.
    if (seed % 2 == 0) world_.cluster.store().serve_health_word("Degraded");
    choose_policy();
    world_.cluster.add_namespace("team");
    world_.cluster.add_node({"node-c", {{TaintWorld::kResource, 8}}, {{TaintWorld::kDriver, 8}}, {}});
    world_.cluster.add_node({"node-mute", {}, {{kMuteDriver, 1}}, {}});
    add_job();
    add_gang();
    add_others();
    world_.restart_controller();  // the API server may serve PodGroups by now
    world_.run_for(20s);
    after_start();
    world_.run_for(10s);
  }

  void run() {
    CAPTURE(story_);
    for (int step = 0; step < 24; ++step) {
      befall();
      if (!pass(dice_.one_in(6) ? dice_.between(2min, 12min) : dice_.between(500ms, 40s))) return;
    }
    heal();
    if (!pass(30min)) return;
    const auto writes = world_.write_count();
    world_.run_for(10min);
    // Half gangs and Jobs' back-offs that end by time; a loop would write hundreds.
    CHECK(world_.write_count() - writes <= 60);
    CHECK(world_.controller().synced());
  }

 private:
  /// False: a node rejects whatever its workloads make anew, several pods a second and without end. Nothing more is
  /// learned by that.
  [[nodiscard]] bool pass(Millis span) {
    constexpr std::size_t kStorm = 200;
    for (; span > Millis(0); span -= Millis(10s)) {
      if (world_.cluster.store().all(Res::Pods).size() > kStorm) return false;
      world_.run_for(std::min(span, Millis(10s)));
    }
    return true;
  }

  void choose_policy() {
    auto& whole = world_.whole_policy();
    auto& limits = whole.limits;
    auto& policy = world_.policy();
    policy.after = dice_.between(0s, 40s);
    if (dice_.one_in(8)) policy.mode = Mode::Observe;
    policy.taint->node = dice_.one_in(2);
    policy.taint->node_at_least_devices = 1;
    policy.taint->node_at_least_percent = 10;
    if (dice_.one_in(3)) policy.taint.reset();
    limits.cap_per_day.at_least = 2 + dice_.below(4);
    policy.evict->untainted = dice_.one_in(3);
    policy.evict->no_replacement_wait = dice_.between(0s, 2min);
    policy.evict->bare_pods = dice_.one_in(4);
    policy.evict->shared_claims_together = dice_.one_in(2);
    policy.evict->groups_together = !dice_.one_in(3);
    if (dice_.one_in(2)) {
      policy.evict->notice = NoticeRules{.deadline = dice_.between(10s, 4min), .extend_up_to = 5min};
      policy.evict->notice->whole_owner = dice_.one_in(2);
    }
    if (!dice_.one_in(4)) {
      policy.job_retry.emplace();
      auto& rules = *policy.job_retry;
      rules.credit = !dice_.one_in(4);
      rules.max_per_job = dice_.below(4);
      rules.settle = dice_.between(0s, 15s);
      rules.not_creditable =
          dice_.any_of(std::array{JobRetryRules::NotCreditable::Evict, JobRetryRules::NotCreditable::HoldIfFatal,
                                  JobRetryRules::NotCreditable::Hold});
      rules.take_back = dice_.one_in(4);
      rules.recreate_once = dice_.one_in(3);
      rules.taints_rejecting_node = dice_.one_in(3);
    }
    // Devices of the other kind have no policy then, or none where the driver says something else.
    if (dice_.one_in(6)) policy.match.resources = {TaintWorld::kResource};
    if (dice_.one_in(8))
      policy.match.namespaces.requirements = {
          {.key = "kubernetes.io/metadata.name", .op = LabelSelector::Operator::In, .values = {"default"}}};
    if (dice_.one_in(8)) {
      policy.match.pods.requirements = {{.key = "lonely", .op = LabelSelector::Operator::DoesNotExist, .values = {}}};
    }
    limits.brake_at_least = dice_.one_in(4) ? 4 : 1000;
    limits.brake_trial_after = dice_.between(2min, 10min);
    limits.evictions_per_minute = dice_.one_in(4) ? 2 : 100;
    limits.max_in_flight = dice_.one_in(4) ? 2 : 100;
    limits.per_node = dice_.one_in(4) ? 1 : 100;
    limits.per_owner = dice_.one_in(2) ? 1 : 100;
    limits.suspect_after = 0;
    if (dice_.one_in(6))
      limits.webhook = WebhookRules{.url = {.host = "hook.example.com", .target = "/"}, .secret_file = "/secret"};
    if (dice_.one_in(4)) world_.hold_caps();
    world_.send_policy();
  }

  void add_job() {
    JobShape job;
    job.name = "train";
    job.parallelism = job.completions = 1 + dice_.below(3);
    job.backoff_limit = dice_.below(3);
    job.shape = dice_.one_in(2) ? TaintWorld::plugin_pod() : TaintWorld::dra_pod();
    job.shape.labels = {{"app", "train"}};
    job.shape.on_sigterm = dice_.any_of(std::array{OnSigterm::Exit, OnSigterm::Exit, OnSigterm::ExitZero});
    if (dice_.one_in(3)) {
      job.indexed = true;
      job.limit_per_index = dice_.below(2);
      if (dice_.one_in(2)) job.most_failed_indexes = dice_.below(2);
    }
    if (dice_.one_in(4)) job.ignore_condition = dice_.one_in(2) ? "DisruptionTarget" : std::string(kConditionType);
    job.replace_when_failed = dice_.one_in(4);
    world_.cluster.create_job(job);
    const int kind = dice_.below(12);
    edit_job([&](Json& object) {
      if (kind == 0) object["spec"]["managedBy"] = "other.example.com/controller";
      if (kind == 1) object["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "queue";
      if (kind == 2) {
        object["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "jobset.x-k8s.io/v1alpha2"},
                                                              {"kind", "JobSet"},
                                                              {"name", "set"},
                                                              {"uid", "uid-set"},
                                                              {"controller", true}}});
      }
      if (kind == 3) {
        const Json pattern = {{"type", "DisruptionTarget"}, {"status", "True"}};
        object["spec"]["podFailurePolicy"] = {
            {"rules", Json::array({{{"action", "FailJob"}, {"onPodConditions", Json::array({pattern})}}})}};
      }
    });
  }

  void add_gang() {
    const int kind = dice_.below(5);
    if (kind == 0) return;
    JobShape job;
    job.name = "gang";
    job.parallelism = job.completions = 3;
    job.backoff_limit = 0;
    job.ignore_condition = "DisruptionTarget";
    job.shape = dice_.one_in(2) ? TaintWorld::plugin_pod() : TaintWorld::dra_pod();
    job.shape.labels = {{"app", "gang"}};
    if (kind <= 2) job.shape.labels[std::string(kGangMark)] = "ring";
    if (kind >= 2) {
      job.shape.pod_group = "ring";
      world_.cluster.add_pod_group("default", "ring", dice_.one_in(3) ? "single" : "all");
    }
    job.shape.on_sigterm = dice_.one_in(5) ? OnSigterm::Ignore : OnSigterm::Exit;
    world_.cluster.create_job(job);
    if (!dice_.one_in(3)) return;
    // A pod of the gang that the policy's selectors may not fit.
    auto lonely = job.shape;
    lonely.labels["lonely"] = "true";
    lonely.labels["app"] = "lonely";
    world_.cluster.create_deployment("default", "lonely", 1, lonely);
  }

  void add_others() {
    auto& cluster = world_.cluster;
    cluster.create_deployment("default", "serve", 3, TaintWorld::dra_pod());
    cluster.create_deployment("team", "serve", 2, TaintWorld::plugin_pod());
    auto pair = TaintWorld::dra_pod();
    pair.count = 2;
    cluster.create_stateful_set("team", "pair", 1, pair);
    cluster.create_claim("default", "shared", TaintWorld::kDriver, 1);
    auto shared = TaintWorld::dra_pod();
    shared.shared_claim = "shared";
    cluster.create_deployment("default", "shared", 2, shared);
    const auto is_one = [&](int of) { return dice_.one_in(of); };
    if (is_one(3)) cluster.create_pod("default", "bare", TaintWorld::plugin_pod());
    if (is_one(4)) {
      auto mirror = TaintWorld::plugin_pod();
      mirror.annotations[std::string(kMirrorAnnotation)] = "hash";
      cluster.create_pod("default", "static", mirror);
    }
    if (is_one(3)) {
      auto daemon = TaintWorld::plugin_pod();
      if (is_one(2)) daemon.host_paths = {"/var/lib/kubelet/device-plugins"};
      cluster.create_daemon_set("team", "monitor", daemon);
    }
    if (is_one(4)) {
      auto mute = PodShape{};
      mute.device_class = kMuteDriver;
      cluster.set_device_health("node-mute", "gpu-0", "Unknown");
      cluster.create_deployment("default", "mute", 1, mute);
    }
    if (is_one(3)) {
      auto bound = TaintWorld::plugin_pod();
      bound.node_selector = {{"kubernetes.io/hostname", "node-a"}};
      cluster.create_deployment("default", "bound", 2, bound);
    }
  }

  /// What is known only once there are pods.
  void after_start() {
    if (dice_.one_in(4)) {
      const auto names = world_.live("serve-");
      if (!names.empty()) world_.whole_policy().own_pod_uid = world_.uid(names.front());
      world_.send_policy();
    }
  }

  template <class Edit>
  void edit_job(const Edit& edit, const std::string& name = "train") {
    if (world_.object(Res::Jobs, name).is_null()) return;
    world_.cluster.store().edit(Res::Jobs, {"default", name}, edit);
  }

  struct Place {
    std::string ns;
    std::string name;
  };
  Place any_pod() {
    const std::string ns(dice_.any_of(kNamespaces));
    const auto names = world_.cluster.pod_names(ns);
    return {ns, names.empty() ? std::string() : dice_.any_of(names)};
  }

  void annotate(Res res, const Place& at, std::string_view key, const Json& value) {
    if (at.name.empty()) return;
    (void)world_.cluster.kubectl_patch(res, at.ns, at.name,
                                       {{"metadata", {{"annotations", {{std::string(key), value}}}}}});
  }

  /// A device that a pod holds, of whatever kind; gives the pod.
  Place break_any() {
    const auto& cluster = world_.cluster;
    auto at = any_pod();
    const auto pod = at.name.empty() ? nullptr : cluster.get(Res::Pods, at.ns, at.name);
    if (pod == nullptr) return {};
    const auto node = text(*pod, {"spec", "nodeName"});
    for (const auto* stem : {"gpu", "GPU"}) {
      for (int i = 0; i < 8; ++i) {
        const auto device = fmt::format("{}-{}", stem, i);
        const auto holders = node.empty() ? std::vector<std::string>() : cluster.holders(node, device);
        if (std::ranges::find(holders, at.ns + "/" + at.name) == holders.end()) continue;
        world_.cluster.set_device_health(node, device, dice_.one_in(12) ? "Degraded" : "Unhealthy", "Xid 79");
        return at;
      }
    }
    return {};
  }

  void befall() {
    const int what = dice_.below(20);
    story_ += fmt::format("{}:{} ", (world_.now.mono - MonoTime()) / Seconds(1), what);
    switch (what) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        (void)break_any();
        return;
      case 5:
        return heal_any();
      case 6:
        return opt_out();
      case 7:
      case 8:
        return answer_notice();
      case 9:
      case 10:
        return end_pods();
      case 11:
        return change_budgets();
      case 12:
      case 13:
        return write_jobs();
      case 14:
        return begin_anew();
      case 15:
      case 16:
        return hurt_requests();
      case 17:
        return blur_claims();
      case 18:
        return lag();
      default:
        return write_other();
    }
  }

  void heal_any() {
    const auto node = dice_.any_of(std::array{"node-a", "node-b", "node-c"});
    for (int i = 0; i < 8; ++i) {
      world_.cluster.set_device_health(node, fmt::format("gpu-{}", i), "Healthy");
      world_.cluster.set_device_health(node, fmt::format("GPU-{}", i), "Healthy");
    }
  }

  void opt_out() {
    const Json value = dice_.one_in(2) ? Json("true") : Json(nullptr);
    switch (dice_.below(4)) {
      case 0:
        return annotate(Res::Namespaces, {"", std::string(dice_.any_of(kNamespaces))}, kOptOutAnnotation, value);
      case 1:
        return annotate(Res::Deployments, {"default", "serve"}, kOptOutAnnotation, value);
      case 2: {
        const auto at = any_pod();
        const Json patch = {{"metadata", {{"labels", {{std::string(kOptOutAnnotation), value}}}}}};
        if (!at.name.empty()) (void)world_.cluster.kubectl_patch(Res::Pods, at.ns, at.name, patch);
        return;
      }
      default:
        return annotate(Res::Pods, any_pod(), kOptOutAnnotation, value);
    }
  }

  void answer_notice() {
    const auto in = [&](Millis time) { return Json(format_rfc3339(world_.now.wall + time)); };
    const Json answer =
        dice_.any_of(std::array{Json("done"), Json("never"), in(1min), in(4min), in(2h), Json(nullptr)});
    for (const auto ns : kNamespaces) {
      for (const auto& name : world_.cluster.pod_names(std::string(ns))) {
        if (!dice_.one_in(3)) continue;
        if (dice_.one_in(5)) {
          world_.cluster.restart_containers(std::string(ns), name);
        } else {
          annotate(Res::Pods, {std::string(ns), name}, kNoticeResponseAnnotation, answer);
        }
      }
    }
  }

  void end_pods() {
    const auto at = any_pod();
    if (at.name.empty()) return;
    switch (dice_.below(4)) {
      case 0:
        (void)world_.cluster.kubectl_delete(Res::Pods, at.ns, at.name);
        return;
      case 1:
        // Whoever is bound to a node is made anew there, again and again.
        for (int round = 0; round < 6; ++round) {
          for (const auto& name : world_.live("bound-"))
            (void)world_.cluster.kubectl_delete(Res::Pods, "default", name);
          world_.run_for(dice_.between(5s, 20s));
        }
        return;
      default:
        for (const auto& name : world_.live("train-")) {
          if (dice_.one_in(2)) world_.cluster.crash_pod("default", name, 1 + dice_.below(3));
        }
    }
  }

  void change_budgets() {
    if (dice_.one_in(3)) {
      for (const auto& name : budgets_) (void)world_.cluster.kubectl_delete(Res::Budgets, "default", name);
      return;
    }
    budgets_.push_back(fmt::format("budget-{}", budgets_.size()));
    world_.cluster.add_budget({.name = budgets_.back(),
                               .match_labels = {{"app", dice_.any_of(std::array{"gang", "serve", "train"})}},
                               .min_available = dice_.below(4),
                               .max_unavailable = {}});
  }

  void write_jobs() {
    const auto name = dice_.one_in(4) ? "gang" : "train";
    switch (dice_.below(4)) {
      case 0:
        (void)world_.cluster.kubectl_patch(Res::Jobs, "default", name, {{"spec", {{"backoffLimit", 0}}}});
        return;
      case 1:
        return annotate(Res::Jobs, {"default", name}, kRetryCreditsAnnotation,
                        dice_.one_in(2) ? Json("unreadable") : Json(nullptr));
      case 2:
        return edit_job([&](Json& job) { job["spec"]["suspend"] = dice_.one_in(2); }, name);
      default:
        return edit_job([&](Json& job) { job["metadata"]["annotations"]["note"] = std::to_string(dice_.below(1000)); },
                        name);
    }
  }

  void begin_anew() {
    if (dice_.one_in(2)) return world_.restart_controller();
    world_.lead(false);
    world_.run_for(dice_.between(1s, 3min));
    world_.lead(true);
  }

  void hurt_requests() {
    auto& faults = world_.cluster.faults();
    const auto path = dice_.any_of(std::array{"/eviction", "/eviction", "/jobs/", "/status", "/configmaps"});
    const auto status = dice_.any_of(std::array{403U, 409U, 422U, 429U, 500U, 504U});
    faults.add({.path_contains = path,
                .watches = false,
                .count = dice_.one_in(8) ? 500 : 1 + dice_.below(5),
                .status = status,
                .headers = {{"retry-after", std::to_string(1 + dice_.below(20))}},
                .handled_first = status >= 500 && dice_.one_in(2)});
  }

  /// What a driver's report means can no longer be told, or its claim tolerates the taint, or only observes the device.
  void blur_claims() {
    auto& store = world_.cluster.store();
    std::vector<Name> names;
    const int how = dice_.below(4);
    for (const auto& [name, claim] : store.all(Res::Claims)) {
      if (list(*claim, {"status", "allocation", "devices", "results"}).size() > (how == 2 ? 1U : 0U))
        names.push_back(name);
    }
    if (names.empty()) return;
    store.edit(Res::Claims, dice_.any_of(names), [&](Json& claim) {
      auto& results = claim["status"]["allocation"]["devices"]["results"];
      auto other = results.front();
      other["device"] = "gpu-7";
      switch (how) {
        case 0:
          for (auto& result : results) result["tolerations"] = Json::array({{{"operator", "Exists"}}});
          return;
        case 1:
          results.push_back(std::move(other));
          return;
        case 2:
          for (auto& result : results) result["device"] = "other-" + text(result, {"device"});
          return;
        default:
          results.front()["device"] = "other";
          other["adminAccess"] = true;
          results.push_back(std::move(other));
      }
    });
    world_.restart_controller();  // no allocation is ever another than it was
  }

  void lag() {
    const auto kind = dice_.any_of(std::array{k8s::Kind::ResourceClaim, k8s::Kind::Pod, k8s::Kind::Job});
    auto& lags = world_.cluster.lags();
    lags.job_cache = dice_.between(0s, 9s);
    lags.job_pod_cache = dice_.between(0s, 5s);
    lags.node_status = dice_.between(0s, 10s);
    world_.hold(kind, true);
    if (dice_.one_in(2)) (void)world_.cluster.kubectl_delete(Res::Pods, "default", any_pod().name);
    world_.run_for(dice_.between(1s, 40s));
    (void)break_any();
    world_.run_for(dice_.between(1s, 40s));
    world_.hold(kind, false);
  }

  /// What other programs write.
  void write_other() {
    auto& cluster = world_.cluster;
    switch (dice_.below(5)) {
      case 0: {
        // Another node's driver publishes this one's pool.
        const Json devices = Json::array({{{"name", "gpu-0"}}});
        const Json pool = {{"name", "node-a"}, {"generation", 1}, {"resourceSliceCount", 1}};
        const Json spec = {
            {"driver", TaintWorld::kDriver}, {"nodeName", "node-b"}, {"pool", pool}, {"devices", devices}};
        (void)cluster.store().create(Res::Slices,
                                     {{"metadata", {{"name", fmt::format("claims-{}", slices_++)}}}, {"spec", spec}});
        return;
      }
      case 1: {
        const auto at = break_any();
        if (at.name.empty()) return;
        // Meanwhile it has a field that no client can read.
        const auto say = [&](const Json& grace) {
          if (cluster.get(Res::Pods, at.ns, at.name) == nullptr) return;
          cluster.store().edit(Res::Pods, {at.ns, at.name},
                               [&](Json& pod) { pod["spec"]["terminationGracePeriodSeconds"] = grace; });
        };
        world_.run_for(dice_.between(2s, 30s));
        say("long");
        world_.run_for(dice_.between(2s, 30s));
        return say(30);
      }
      case 2: {
        const auto at = any_pod();
        if (at.name.empty()) return;
        const Json condition = {{"type", std::string(kConditionType)}, {"status", "False"}, {"reason", "Theirs"}};
        (void)world_.apply(fmt::format("/api/v1/namespaces/{}/pods/{}/status", at.ns, at.name),
                           {{"metadata", {{"name", at.name}}}, {"status", {{"conditions", Json::array({condition})}}}},
                           "another-remediator", true);
        return;
      }
      case 3:
        return world_.webhook_says(dice_.one_in(2) ? "webhook.url: connection refused" : "");
      default:
        return cluster.set_node_condition("node-b", "MaintenanceInProgress", dice_.one_in(3) ? "True" : "False");
    }
  }

  /// Nothing that the controller needs is broken any more; what is bad stays bad.
  void heal() {
    world_.cluster.faults().clear();
    for (const auto& name : budgets_) (void)world_.cluster.kubectl_delete(Res::Budgets, "default", name);
    world_.lead(true);
  }

  Dice dice_;
  TaintWorld world_;
  std::vector<std::string> budgets_;
  int slices_ = 0;
  std::string story_;  // seconds, and which thing befell it
};

}  // namespace

TEST_CASE("in any schedule of work on failing devices, whatever runs and whoever writes, no step breaks an invariant") {
  run_schedules("work", [](unsigned seed) { WorkSchedule(seed).run(); });
}

}  // namespace dhc::test
