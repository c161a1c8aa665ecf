// A month of a fleet, recorded and replayed: how large it is, and how long it takes.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "app/controller.h"
#include "app/record/recorder.h"
#include "app/record/rehearsal.h"
#include "app/record/rerun.h"
#include "bench/benches.h"
#include "bench/first_lists.h"
#include "domain/contract/names.h"

namespace dhc::bench {

namespace {

constexpr auto kDevice = "nvidia.com/gpu";
constexpr int kOnNode = 8;
constexpr int kSpare = 10;                 // nodes without a pod, for replacements
constexpr int kFaultsAYear = 40;           // for each hundred devices
constexpr Millis kLook = Seconds(5);       // as the loop does
constexpr std::chrono::hours kLife{24};    // of a pod
constexpr std::chrono::hours kBroken{12};  // of a device

/// A fleet whose nodes are each held by one pod of a Job, for a day; then another comes.
class Fleet {
 public:
  explicit Fleet(int nodes) : nodes_(nodes) {
    policy_.mode_cap = Mode::Enforce;
    policy_.policies.push_back(
        DevicePolicy{.name = "p", .mode = Mode::Enforce, .after = Seconds(60), .evict = EvictRules{}});
  }

  /// Records so many days; the text of it.
  std::string record(int days) {
    std::string text = record::file_line("bench", 1).text;
    controller_.record_to(std::make_shared<record::Recorder>([&](const record::Line& line) { text += line.text; }));
    begin();
    const auto end = std::chrono::hours(24) * days;
    for (Millis now{0}; now < end; now += kLook) step(now);
    return text;
  }

  [[nodiscard]] const Policy& policy() const { return policy_; }
  [[nodiscard]] std::size_t evictions() const { return evictions_; }
  [[nodiscard]] std::size_t faults() const { return faults_; }

 private:
  struct Place {
    std::string pod;  // its name; empty: none
    Millis until{0};
    int bad = -1;  // the device
    std::optional<k8s::Condition> told;
  };

  [[nodiscard]] static std::string node_name(int node) {
    return fmt::format("gpu-node-{:05}.eu-central.example.com", node);
  }

  k8s::Pod pod_on(int node) const {
    const auto& place = places_[static_cast<std::size_t>(node)];
    k8s::Pod pod;
    pod.meta = meta_of(place.pod, "team-0");
    pod.meta.labels = {{"app.kubernetes.io/name", "training"}, {"batch.kubernetes.io/job-name", "train-large-model"}};
    pod.meta.controller = k8s::OwnerRef{.api_version = "apps/v1", .kind = "ReplicaSet", .name = "r", .uid = "uid-r"};
    pod.meta.creation = at(place.until - kLife).wall;
    pod.node_name = node_name(node);
    pod.phase = k8s::PodPhase::Running;
    pod.grace_period_seconds = 30;
    pod.requests = {{kDevice, kOnNode}};
    pod.allocated.push_back({.name = kDevice, .devices = {}});
    for (int i = 0; i < kOnNode; ++i) {
      const bool is_bad = place.bad == i;
      pod.allocated.back().devices.push_back({.resource_id = fmt::format("GPU-{:08x}-0000-0000-0000-{:012x}", node, i),
                                              .health = is_bad ? k8s::Health::Unhealthy : k8s::Health::Healthy,
                                              .message = {},
                                              .other_word = {},
                                              .containers = {"main"}});
    }
    if (place.told) pod.conditions.push_back(*place.told);
    pod.has_kept_condition = place.told.has_value();
    return pod;
  }

  k8s::Node node_with(int node, bool is_bad) const {
    k8s::Node object;
    object.meta = meta_of(node_name(node));
    object.meta.labels = {{"kubernetes.io/hostname", node_name(node)}, {"topology.kubernetes.io/zone", "a"}};
    object.ready = true;
    object.boot_id = "boot";
    object.capacity = {{kDevice, kOnNode}};
    object.allocatable = {{kDevice, is_bad ? kOnNode - 1 : kOnNode}};
    return object;
  }

  void upsert(k8s::Object object) { inbox_.emplace_back(k8s::Delivery(k8s::Upsert{std::move(object)})); }

  void start_pod(int node, Millis now, Millis until) {
    auto& place = places_[static_cast<std::size_t>(node)];
    place.pod = fmt::format("train-{:07}", ++pods_);
    place.until = until;
    at_end_.emplace(until, node);
    auto pod = pod_on(node);
    pod.meta.creation = at(now).wall;
    auto pending = pod;
    pending.phase = k8s::PodPhase::Pending;
    pending.allocated.clear();
    pending.node_name.clear();
    upsert(pending);
    pending.node_name = pod.node_name;
    upsert(std::move(pending));
    upsert(std::move(pod));
  }

  void end_pod(int node) {
    auto& place = places_[static_cast<std::size_t>(node)];
    inbox_.emplace_back(k8s::Delivery(
        k8s::Remove{.kind = k8s::Kind::Pod, .ns = "team-0", .name = place.pod, .uid = "uid-" + place.pod}));
    place.pod.clear();
    place.told.reset();
  }

  void begin() {
    places_.resize(static_cast<std::size_t>(nodes_ + kSpare));
    inbox_ = first_lists([&](k8s::Snapshot& snapshot) {
      if (snapshot.kind == k8s::Kind::Namespace) snapshot.objects.emplace_back(k8s::Namespace{meta_of("team-0")});
      if (snapshot.kind == k8s::Kind::ReplicaSet)
        snapshot.objects.emplace_back(k8s::Owner{.kind = snapshot.kind, .meta = meta_of("r", "team-0")});
      if (snapshot.kind != k8s::Kind::Node) return;
      for (int node = 0; node < nodes_ + kSpare; ++node) snapshot.objects.emplace_back(node_with(node, false));
    });
    inbox_.emplace_back(EarlierState{});
    inbox_.emplace_back(PolicyChanged{std::make_shared<const Policy>(policy_)});
    for (int node = 0; node < nodes_; ++node) start_pod(node, Millis(0), kLife * (node + 1) / nodes_);
    for (int node = nodes_; node < nodes_ + kSpare; ++node) free_.push_back(node);
  }

  void say(k8s::Kind kind, Millis now) {
    inbox_.emplace_back(k8s::Delivery(k8s::Told{.kind = kind, .name = {}, .at = at(now).mono}));
  }

  void step(Millis now) {
    say(k8s::Kind::Pod, now);
    say(k8s::Kind::Node, now);
    if (now % std::chrono::minutes(1) == Millis(0)) {
      for (const auto kind : k8s::kAllKinds) say(kind, now);
    }
    while (!at_end_.empty() && at_end_.begin()->first <= now) {
      const auto [when, node] = *at_end_.begin();
      at_end_.erase(at_end_.begin());
      const auto& place = places_[static_cast<std::size_t>(node)];
      if (place.pod.empty() || place.until != when) continue;
      end_pod(node);
      start_pod(node, now, now + kLife);
    }
    break_some(now);
    const bool is_news = controller_.take(inbox_, at(now));
    inbox_.clear();
    if (!is_news && wake_at_ > at(now).mono && now < looked_at_ + kLook) return;
    looked_at_ = now;
    plan(now);
    // What was done is answered and seen.
    if (!inbox_.empty()) {
      (void)controller_.take(inbox_, at(now + Millis(50)));
      inbox_.clear();
      plan(now + Millis(50));
    }
  }

  void plan(Millis now) {
    auto turn = controller_.plan(at(now));
    wake_at_ = turn.wake_at.value_or(MonoTime::max());
    for (auto& action : turn.actions) carry_out(std::move(action), now);
  }

  [[nodiscard]] std::optional<int> node_of(const std::string& pod) const {
    const auto found = std::ranges::find(places_, pod, &Place::pod);
    return found == places_.end() ? std::nullopt : std::optional(static_cast<int>(found - places_.begin()));
  }

  void carry_out(Action action, Millis now) {
    if (const auto* evict = std::get_if<eviction::EvictPod>(&action)) {
      ++evictions_;
      if (const auto node = node_of(evict->name)) {
        const auto until = places_[static_cast<std::size_t>(*node)].until;
        end_pod(*node);
        if (!free_.empty()) {
          start_pod(free_.back(), now, until);
          free_.pop_back();
        }
      }
    } else if (const auto* condition = std::get_if<notice::ApplyCondition>(&action); condition && condition->wanted) {
      if (const auto node = node_of(condition->name)) {
        places_[static_cast<std::size_t>(*node)].told =
            k8s::Condition{.type = std::string(kConditionType),
                           .status = condition->wanted->status ? "True" : "False",
                           .reason = condition->wanted->reason,
                           .message = condition->wanted->message,
                           .last_transition = condition->wanted->last_transition};
        upsert(pod_on(*node));
      }
    }
    inbox_.emplace_back(Outcome{.action = std::move(action), .status = {}});
  }

  void break_some(Millis now) {
    const double each_step = static_cast<double>(nodes_) * kOnNode * kFaultsAYear / 100 / 365 /
                             (static_cast<double>(std::chrono::hours(24) / kLook));
    if (std::uniform_real_distribution<double>(0, 1)(dice_) < each_step) {
      const int node = std::uniform_int_distribution<int>(0, nodes_ - 1)(dice_);
      auto& place = places_[static_cast<std::size_t>(node)];
      if (place.bad < 0) {
        place.bad = std::uniform_int_distribution<int>(0, kOnNode - 1)(dice_);
        at_repair_.emplace(now + kBroken, node);
        ++faults_;
        upsert(node_with(node, true));
        if (!place.pod.empty()) upsert(pod_on(node));
      }
    }
    while (!at_repair_.empty() && at_repair_.begin()->first <= now) {
      const auto node = at_repair_.begin()->second;
      at_repair_.erase(at_repair_.begin());
      auto& place = places_[static_cast<std::size_t>(node)];
      place.bad = -1;
      upsert(node_with(node, false));
      if (!place.pod.empty()) {
        upsert(pod_on(node));
      } else {
        free_.push_back(node);
      }
    }
  }

  const int nodes_;
  Policy policy_;
  Controller controller_;
  std::vector<Message> inbox_;
  std::vector<Place> places_;
  std::vector<int> free_;
  std::multimap<Millis, int> at_end_;
  std::multimap<Millis, int> at_repair_;
  std::minstd_rand dice_{7};
  MonoTime wake_at_;
  Millis looked_at_{0};
  std::size_t pods_ = 0;
  std::size_t evictions_ = 0;
  std::size_t faults_ = 0;
};

template <class Feed>
bool feed_all(std::string_view text, Feed feed) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    if (auto fed = feed(text.substr(0, end)); !fed) {
      fmt::print(stderr, "{}\n", fed.error().message);
      return false;
    }
    text.remove_prefix(end + 1);
  }
  return true;
}

}  // namespace

bool replay() {
  fmt::print("\n{:<44} {:>12} {:>14} {:>14} {:>14}\n", "a recording", "MB a day", "s to record", "s to replay",
             "s to rehearse");
  bool is_good = true;
  for (const auto& [nodes, days] : {std::pair(1'000, 1), std::pair(1'250, 30)}) {
    Fleet fleet(nodes);
    auto began = cpu_millis();
    const auto text = fleet.record(days);
    const auto recorded = cpu_millis() - began;
    record::Rerun rerun;
    began = cpu_millis();
    is_good = feed_all(text, [&](std::string_view line) { return rerun.feed(line); }) && is_good;
    const auto replayed = cpu_millis() - began;
    auto policy = fleet.policy();
    policy.policies.front().after = Seconds(10);
    record::Rehearsal rehearsal(policy);
    began = cpu_millis();
    is_good = feed_all(text, [&](std::string_view line) { return rehearsal.feed(line); }) && is_good;
    const auto report = rehearsal.finish();
    const auto rehearsed = cpu_millis() - began;
    fmt::print("{:<44} {:>12.2f} {:>14.1f} {:>14.1f} {:>14.1f}\n",
               fmt::format("{} devices on {} nodes, {} day{}", nodes * kOnNode, nodes, days, days == 1 ? "" : "s"),
               static_cast<double>(text.size()) / days / 1e6, recorded / 1000, replayed / 1000, rehearsed / 1000);
    fmt::print(
        "  {} faults, {} evictions, {} lines, {} plans; rehearsed {} evictions, held bad {:.1f} device-hours for "
        "{:.1f}\n",
        fleet.faults(), fleet.evictions(), rerun.report().lines, rerun.report().plans, report.now.evictions,
        report.now.held_bad, report.then.held_bad);
    is_good = is_good && rerun.report().differences == 0 && fleet.evictions() > 0;
    if (rerun.report().differences > 0) fmt::print("  it differs {} times\n", rerun.report().differences);
  }
  return is_good;
}

}  // namespace dhc::bench
