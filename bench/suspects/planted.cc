#include "bench/suspects/planted.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/fleet_year/dice.h"
#include "bench/fleet_year/ours.h"
#include "domain/contract/state_names.h"
#include "domain/findings/suspects.h"
#include "domain/incidents/suspect_state.h"

namespace dhc::planted {

namespace {
using sim::Json;
using sim::Res;
using std::chrono::hours;
using std::chrono::minutes;

constexpr Millis kTick = minutes(10);
constexpr Millis kLength = hours(48);
constexpr Millis kDay = hours(24);
constexpr int kPerNode = 8;
constexpr auto kSpace = "default";
constexpr auto kBase = "registry.test/base:1";
/// By themselves. **Source:** 6.5 failures in 1,000 node-days of 8 GPUs (Meta's RSC-1).
constexpr double kOfItself = 0.0008;  // a device and day
constexpr std::size_t kLeast = 3;

struct Device {
  bool is_bad = false;
  double a_day = kOfItself;
  std::string pod = {};       // that holds it
  std::string workload = {};  // of that
};

/// Of the devices that are held, how many are one's.
struct Held {
  std::array<double, 2> all = {};  // everywhere, on the node
  std::array<double, 2> its = {};
  void count(bool is_its, bool is_there) {
    for (const std::size_t at : {0U, 1U}) {
      if (at == 1 && !is_there) continue;
      ++all[at];
      if (is_its) ++its[at];
    }
  }
  [[nodiscard]] OwnerShare share() const { return {.scope = its[0] / all[0], .node = its[1] / all[1]}; }
};

/// A Deployment, or a place in which one Job runs after the other.
struct Workload {
  std::string name;
  std::string image;
  bool is_job = false;
  bool is_guilty = false;
  double a_day = 0;  // how often it breaks a device that it holds
  int number = 0;    // of its Jobs
};

class Schedule {
 public:
  Schedule(Truth truth, std::uint64_t number)
      : truth_(truth), dice_(number * 7919 + static_cast<std::uint64_t>(truth)), now_(begin()), cluster_(number, now_) {
    nodes_ = truth_ == Truth::Canary ? 32 + dice_.below(17) : 4 + dice_.below(13);
    devices_.resize(static_cast<std::size_t>(nodes_) * kPerNode);
    cluster_.settings().bookmark_every = hours(24 * 365 * 10);
    for (int n = 0; n < nodes_; ++n)
      cluster_.add_node({.name = node_name(n), .plugins = {}, .drivers = {{driver(), kPerNode}}, .labels = {}});
    sim::PodShape plugin;
    plugin.host_paths = {"/var/lib/kubelet/plugins", "/var/lib/kubelet/plugins_registry"};
    cluster_.create_daemon_set("kube-system", "gpu-driver", plugin);
    plant();
    fill();
    policy_ = year::default_policy();
    policy_.policies.front().evict->no_replacement_wait = minutes(1);
    ours_ = year::make_ours(cluster_, policy_);
    end_ = now_.mono + kLength;
  }

  Tally run() {
    tally_.schedules = 1;
    while (now_.mono < end_) {
      pass_until(now_.mono + kTick);
      look();
      renew_jobs();
      if (now_.mono - begin().mono > hours(2)) {
        roll_driver();
        befall();
        break_devices();
      }
      look_at_suspects();
    }
    close();
    return tally_;
  }

 private:
  static Now begin() {
    return {MonoTime(hours(1)), WallTime(std::chrono::sys_days(std::chrono::year(2026) / 11 / 20))};
  }
  static std::string driver() { return std::string(year::kDriver); }
  static std::string node_name(int n) { return fmt::format("node-{:02}", n); }
  static std::vector<std::size_t> devices_on(int node) {
    std::vector<std::size_t> there;
    for (std::size_t i = 0; i < kPerNode; ++i) there.push_back(static_cast<std::size_t>(node) * kPerNode + i);
    return there;
  }
  static std::string node_of(std::size_t device) { return node_name(static_cast<int>(device) / kPerNode); }
  static std::string name_of(std::size_t device) { return fmt::format("gpu-{}", device % kPerNode); }
  std::optional<std::size_t> device_at(const std::string& pool, const std::string& name) const {
    for (int n = 0; n < nodes_; ++n) {
      if (node_name(n) == pool && name.starts_with("gpu-"))
        return static_cast<std::size_t>(n * kPerNode + std::stoi(name.substr(4)));
    }
    return std::nullopt;
  }
  bool happens(double a_day) { return dice_.share() < a_day * (std::chrono::duration<double>(kTick) / hours(24)); }

  /// Of Jobs under ever new names each is a workload of its own.
  static std::string who_of(const Workload& workload) {
    return workload.is_job ? fmt::format("{}-{}", workload.name, workload.number - 1) : workload.name;
  }

  void plant() {
    if (truth_ == Truth::Cards || truth_ == Truth::ProgramAndCards || truth_ == Truth::ImageAndCards) {
      for (int bad = 1 + dice_.below(std::max(2, nodes_ / 4)); bad > 0; --bad) {
        const auto card = static_cast<std::size_t>(dice_.below(static_cast<int>(devices_.size())));
        bad_cards_.insert(card);
        devices_[card].a_day = 1 + dice_.share() * 12;
      }
    }
    if (truth_ == Truth::Node) {
      for (int bad = 1 + dice_.below(2); bad > 0; --bad) {
        const int node = dice_.below(nodes_);
        bad_nodes_.insert(node);
        for (const auto i : devices_on(node)) devices_[i].a_day = 0.5 + 4 * dice_.share();
      }
    }
    if (truth_ == Truth::Driver || truth_ == Truth::Canary) {
      rolls_at_ = begin().mono + hours(2 + dice_.below(24));
      roll_pause_ = minutes(5 + dice_.below(60));
      roll_to_ = truth_ == Truth::Canary ? 5 + dice_.below(4) : nodes_;
    }
    guilty_at_ = begin().mono + hours(3 + dice_.below(20));
  }

  std::string any_image(const std::string& name) {
    return dice_.below(5) < 2 ? std::string(kBase) : fmt::format("registry.test/{}:1", name);
  }

  /// So many devices, one a pod.
  void deploy(const std::string& name, const std::string& image, int replicas) {
    auto pod = shape_of(name, image);
    cluster_.create_deployment(kSpace, name, replicas, pod);
    workloads_[name] = {.name = name, .image = image};
  }
  static sim::PodShape shape_of(const std::string& name, const std::string& image) {
    sim::PodShape pod;
    pod.labels = {{"app", name}};
    pod.image = image;
    pod.device_class = driver();
    return pod;
  }

  /// A few are large, most are small.
  void fill() {
    int left = nodes_ * kPerNode * 8 / 10;
    for (int i = 0; left > 0; ++i) {
      const int size = std::min(left, static_cast<int>(std::pow(2.0, dice_.share() * std::log2(nodes_ * 2))));
      left -= size;
      if (dice_.below(3) > 0) {
        const auto name = fmt::format("service-{}", i);
        deploy(name, any_image(name), size);
        continue;
      }
      for (int n = 0; n < size; ++n) {
        const auto name = fmt::format("batch-{}-{}", i, n);
        workloads_[name] = {.name = name, .image = any_image(fmt::format("batch-{}", i)), .is_job = true};
        next_job(workloads_[name]);
      }
    }
  }

  void begin_guilt() {
    if (has_begun_ || now_.mono < guilty_at_) return;
    has_begun_ = true;
    const int few = 1 + dice_.below(std::max(1, nodes_ / 4));
    if (truth_ == Truth::Program || truth_ == Truth::ProgramAndCards || truth_ == Truth::BaseImage) {
      deploy("guilty", truth_ == Truth::BaseImage ? kBase : "registry.test/guilty:1", few);
      workloads_["guilty"].is_guilty = true;
      workloads_["guilty"].a_day = 3 + dice_.share() * 140;
    }
    if (truth_ != Truth::Image && truth_ != Truth::ImageAndCards) return;
    guilty_image_ = "registry.test/guilty:1";
    const double a_day = 3 + dice_.share() * 60;
    for (int i = 0; i < few; ++i) {
      const auto name = fmt::format("guilty-{}", i);
      workloads_[name] = {.name = name, .image = guilty_image_, .is_job = true, .is_guilty = true, .a_day = a_day};
      next_job(workloads_[name]);
    }
  }

  void next_job(Workload& workload) {
    sim::JobShape job;
    job.ns = kSpace;
    job.name = fmt::format("{}-{}", workload.name, workload.number++);
    job.shape = shape_of(workload.name, workload.image);
    job.shape.run_for = minutes(workload.is_guilty ? 60 + dice_.below(600) : 60 + dice_.below(3000));
    cluster_.create_job(std::move(job));
  }

  void renew_jobs() {
    begin_guilt();
    if (std::exchange(renewed_at_, cluster_.store().rv()) == cluster_.store().rv()) return;
    for (auto& [name, workload] : workloads_) {
      if (!workload.is_job) continue;
      const auto job = fmt::format("{}-{}", name, workload.number - 1);
      const auto object = cluster_.get(Res::Jobs, kSpace, job);
      const bool ended = object == nullptr || sim::condition_status(*object, "Complete") == "True" ||
                         sim::condition_status(*object, "Failed") == "True";
      if (!ended) continue;
      if (object != nullptr) (void)cluster_.kubectl_delete(Res::Jobs, kSpace, job);
      next_job(workload);
    }
  }

  void settle() {
    for (int round = 0; round < 2000; ++round) {
      const auto before = cluster_.store().rv();
      cluster_.step(now_);
      note_rules();
      if (!ours_->act() && cluster_.store().rv() == before) return;
    }
    throw std::runtime_error("the cluster does not come to rest");
  }

  void pass_until(MonoTime end) {
    settle();
    while (now_.mono < end) {
      auto next = end;
      const auto note = [&](std::optional<MonoTime> when) {
        if (when) next = std::min(next, *when);
      };
      note(cluster_.next_wake());
      note(ours_->next_due());
      next = std::max(next, now_.mono + Millis(1));
      now_ = {next, now_.wall + (next - now_.mono)};
      settle();
    }
  }

  /// Who holds what; what nobody holds is reset.
  void look() {
    if (std::exchange(looked_at_, cluster_.store().rv()) == cluster_.store().rv()) return;
    for (auto& device : devices_) device.pod = device.workload = {};
    for (const auto& [name, claim] : cluster_.store().all(Res::Claims)) {
      for (const auto& user : sim::list(*claim, {"status", "reservedFor"})) {
        const auto pod = cluster_.get(Res::Pods, kSpace, sim::text(user, {"name"}));
        if (pod == nullptr || sim::text(*pod, {"status", "phase"}) != "Running") continue;
        for (const auto& result : sim::list(*claim, {"status", "allocation", "devices", "results"})) {
          const auto at = device_at(sim::text(result, {"pool"}), sim::text(result, {"device"}));
          if (!at) continue;
          devices_[*at].pod = sim::text(user, {"name"});
          devices_[*at].workload = sim::text(*pod, {"metadata", "labels", "app"});
        }
      }
    }
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      if (!devices_[i].is_bad || !devices_[i].pod.empty()) continue;
      devices_[i].is_bad = false;
      cluster_.set_device_health(node_of(i), name_of(i), "Healthy");
    }
  }

  void break_devices() {
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      auto& device = devices_[i];
      if (device.pod.empty() || device.is_bad) continue;
      const auto& workload = workloads_.at(device.workload);
      if (!happens(device.a_day + workload.a_day)) continue;
      device.is_bad = true;
      ++tally_.broken;
      cluster_.set_device_health(node_of(i), name_of(i), "Unhealthy", "Xid 31");
      broken_on_[static_cast<int>(i) / kPerNode].insert(i);
      if (workload.is_guilty && !is_told_) note_guilt(i);
    }
  }

  /// What could be told of the guilty one if nothing else ever broke, by the same rule.
  void note_guilt(std::size_t broken) {
    guilty_devices_.insert(broken);
    const auto& workload = workloads_.at(devices_[broken].workload);
    const auto who = who_of(workload);
    Held of_who;
    Held of_image;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      if (devices_[i].pod.empty()) continue;
      const auto& other = workloads_.at(devices_[i].workload);
      const bool is_there = i / kPerNode == broken / kPerNode;
      of_who.count(who_of(other) == who, is_there);
      of_image.count(other.image == workload.image, is_there);
    }
    largest_share_ = std::max(largest_share_, (workload.is_job ? of_image : of_who).share().scope);
    DeviceOnset onset{.card = DeviceKey::dra(driver(), node_of(broken), name_of(broken)),
                      .node = node_of(broken),
                      .at = now_.wall,
                      .named_at = now_.wall,
                      .since = now_.wall,
                      .workloads = {{who, of_who.share()}}};
    if (workload.is_job) onset.images = {{workload.image, of_image.share()}};
    alone_.note(std::move(onset));
    SuspectHearing hearing;
    hearing.now = now_;
    (void)alone_.judge(hearing);
    if (!clear_at_ && !alone_.suspicions().empty()) clear_at_ = guilty_devices_.size();
  }

  void roll_driver() {
    if (!rolls_at_ || now_.mono < *rolls_at_ || rolled_ == roll_to_) return;
    rolls_at_ = now_.mono + roll_pause_;
    if (old_release_.empty()) {
      old_release_ = releases().front();
      (void)cluster_.kubectl_patch(Res::DaemonSets, "kube-system", "gpu-driver",
                                   {{"spec", {{"template", {{"metadata", {{"labels", {{"version", "2"}}}}}}}}}});
    }
    restart_driver(rolled_++);
  }

  /// Of the driver's pods, sorted.
  std::vector<std::string> releases() {
    std::set<std::string> found;
    for (const auto& name : cluster_.pod_names("kube-system")) {
      const auto pod = cluster_.get(Res::Pods, "kube-system", name);
      found.insert(sim::text(*pod, {"metadata", "labels", "controller-revision-hash"}));
    }
    return {found.begin(), found.end()};
  }

  /// A pod that begins anew is of the new release, whoever has ended the one before.
  void spoil(int node) {
    if (old_release_.empty()) return;
    for (const auto i : devices_on(node)) {
      if (devices_[i].a_day < 0.2) devices_[i].a_day = 0.2 + 3 * dice_.share();
    }
  }

  void restart_driver(int node) {
    cluster_.kubectl_delete_pods_on("kube-system", node_name(node));
    cluster_.forget_health(node_name(node), driver());
    spoil(node);
  }

  /// What befalls any cluster.
  void befall() {
    switch (dice_.below(400)) {
      case 0:
      case 1:
      case 2:
        ours_ = year::make_ours(cluster_, policy_);
        ours_->set_clock_ahead(ahead_);
        return;
      case 3:
      case 4:
        ahead_ = minutes(dice_.below(21) - 10);
        return ours_->set_clock_ahead(ahead_);
      case 5:
        cluster_.compact();
        cluster_.store().cut_watches();
        return;
      case 6:
        return cluster_.restart_kubelet(node_name(dice_.below(nodes_)), Seconds(20));
      case 7:
        return restart_driver(dice_.below(nodes_));
      case 8:
        return cluster_.faults().add(
            {.method = k8s::Method::Patch, .count = 1 + dice_.below(6), .status = 504, .handled_first = true});
      case 9:
        return cluster_.faults().add({.method = k8s::Method::Post,
                                      .path_contains = "/eviction",
                                      .count = 1 + dice_.below(6),
                                      .status = 500,
                                      .handled_first = dice_.below(2) == 0});
      default:
        return;
    }
  }

  /// Devices go out of service for the pods that hold them then.
  void note_rules() {
    const auto& changes = cluster_.store().changes(Res::TaintRules);
    if (changes.empty() || changes.back().rv <= seen_rules_) return;
    for (const auto& change : changes) {
      if (change.rv <= seen_rules_ || change.type != sim::ChangeType::Added) continue;
      const auto& rule = *change.object;
      const auto at = device_at(sim::text(rule, {"spec", "deviceSelector", "pool"}),
                                sim::text(rule, {"spec", "deviceSelector", "device"}));
      if (!at || !workloads_.contains(devices_[*at].workload)) continue;
      const auto& workload = workloads_.at(devices_[*at].workload);
      if (!workload.is_guilty) continue;
      auto& times = taken_[who_of(workload)];
      times.push_back(now_.mono);
      const auto recent = std::ranges::count_if(times, [&](MonoTime one) { return now_.mono - one < kDay - hours(1); });
      tally_.most_a_day = std::max(tally_.most_a_day, static_cast<std::size_t>(recent));
      tally_.most_in_all = std::max(tally_.most_in_all, workload.is_job ? ++taken_by_image_ : times.size());
    }
    seen_rules_ = changes.back().rv;
  }

  void look_at_suspects() {
    for (const auto& verdict : ours_->verdicts()) {
      look_at_ground(verdict);
      if (verdict.reason != Reason::WorkloadSuspected || verdict.subject.kind == "Pod") continue;
      const bool is_image = verdict.message.starts_with("image ");
      const auto whose = is_image ? verdict.message.substr(0, verdict.message.find(" is suspected"))
                                  : verdict.subject.kind + " " + verdict.subject.name;
      if (!told_.insert(whose).second) continue;
      const bool is_right = is_image ? !guilty_image_.empty() && whose.starts_with("image " + guilty_image_)
                                     : verdict.subject.name.starts_with("guilty") ||
                                           verdict.subject.name.find("/guilty") != std::string::npos;
      ++(is_right ? tally_.right : tally_.wrong);
      if (!is_right) continue;
      if (!is_told_ && clear_at_ && guilty_devices_.size() <= *clear_at_) tally_.at_once = 1;
      is_told_ = true;
    }
    count_excused();
  }

  /// What is said of a node, or of a driver's release.
  void look_at_ground(const Verdict& verdict) {
    if (verdict.reason == Reason::NodeSuspected && told_.insert("node " + verdict.subject.name).second) {
      const bool is_right =
          std::ranges::any_of(bad_nodes_, [&](int node) { return node_name(node) == verdict.subject.name; });
      ++(is_right ? tally_.nodes_right : tally_.nodes_wrong);
    }
    if (verdict.reason != Reason::DriverSuspected) return;
    const auto whose = verdict.message.substr(0, verdict.message.find(" is suspected"));
    if (!told_.insert(whose).second) return;
    const bool is_right = !old_release_.empty() && !whose.starts_with("revision " + old_release_ + " ");
    ++(is_right ? tally_.drivers_right : tally_.drivers_wrong);
  }

  /// What the controller has written down of it.
  void count_excused() {
    if (bad_cards_.empty() || told_.empty()) return;
    const auto map = cluster_.get(Res::ConfigMaps, policy_.own_namespace, std::string(kIncidentsName));
    if (map == nullptr) return;
    const auto state = Json::parse(sim::text(*map, {"data", std::string(kIncidentsEntry)}), nullptr, false);
    if (!state.is_object() || !state.contains(kSuspectSection)) return;
    const auto suspects = parse_suspect_state(state[std::string(kSuspectSection)].dump());
    // All that one card broke under one workload is excused at once.
    std::set<std::size_t> at_once;
    for (const auto& onset : suspects.onsets()) {
      const auto at = device_at(onset.card.place, onset.card.device);
      if (!onset.excused || !at || !bad_cards_.contains(*at) || !excused_.emplace(*at, onset.at).second) continue;
      at_once.insert(*at);
    }
    for (const auto device : at_once) {
      ++tally_.bad_excused;
      tally_.most_excused = std::max(tally_.most_excused, ++times_excused_[device]);
    }
  }

  /// Whether what is visible can tell it at all: enough devices, and a share that is small enough.
  void close() {
    tally_.moved = cluster_.evictions().size();
    for (const int node : bad_nodes_) tally_.bad_nodes += broken_on_[node].size() >= kLeast ? 1U : 0U;
    if (guilty_devices_.size() < kLeast || largest_share_ > Suspects::kLargestShare) {
      tally_.at_once = 0;
      return;
    }
    tally_.visible = 1;
    if (is_told_) tally_.in_the_end = 1;
    if (clear_at_) tally_.clear = 1;
  }

  Truth truth_;
  year::Dice dice_;
  Now now_;
  sim::Cluster cluster_;
  Policy policy_;
  std::unique_ptr<year::Ours> ours_;
  Tally tally_;
  int nodes_ = 0;
  MonoTime end_;
  Millis ahead_{0};
  std::vector<Device> devices_;
  std::map<std::string, Workload> workloads_;
  std::set<std::size_t> bad_cards_;
  std::uint64_t looked_at_ = 0;   // the store's version
  std::uint64_t renewed_at_ = 0;  // likewise
  MonoTime guilty_at_;
  bool has_begun_ = false;
  std::string guilty_image_;
  std::optional<MonoTime> rolls_at_;
  Millis roll_pause_{0};
  int rolled_ = 0;
  int roll_to_ = 0;
  std::string old_release_;  // empty: there is no other
  std::set<int> bad_nodes_;
  std::map<int, std::set<std::size_t>> broken_on_;  // by node
  std::uint64_t seen_rules_ = 0;
  std::map<std::string, std::vector<MonoTime>> taken_;
  std::size_t taken_by_image_ = 0;
  std::set<std::string> told_;
  bool is_told_ = false;
  std::set<std::size_t> guilty_devices_;
  Suspects alone_;
  double largest_share_ = 0;
  std::optional<std::size_t> clear_at_;  // how many devices
  std::set<std::pair<std::size_t, WallTime>> excused_;
  std::map<std::size_t, std::size_t> times_excused_;
};

/// Each figure of a tally, in the order of its members, and whether it is a maximum.
template <class Look>
void for_each_figure(Tally& tally, const Look& look) {
  for (auto* sum : {&tally.schedules, &tally.broken, &tally.moved, &tally.right, &tally.wrong, &tally.visible,
                    &tally.in_the_end, &tally.clear, &tally.at_once, &tally.bad_excused, &tally.bad_nodes,
                    &tally.nodes_right, &tally.nodes_wrong, &tally.drivers_right, &tally.drivers_wrong}) {
    look(*sum, false);
  }
  for (auto* most : {&tally.most_a_day, &tally.most_in_all, &tally.most_excused}) look(*most, true);
}

std::vector<std::size_t> figures_of(Tally tally) {
  std::vector<std::size_t> figures;
  for_each_figure(tally, [&](std::size_t& figure, bool /*is_most*/) { figures.push_back(figure); });
  return figures;
}

}  // namespace

std::string_view to_string(Truth truth) {
  switch (truth) {
    case Truth::Nothing:
      return "nothing";
    case Truth::Cards:
      return "bad cards";
    case Truth::Program:
      return "a Deployment";
    case Truth::Image:
      return "ever new Jobs of an image";
    case Truth::BaseImage:
      return "a Deployment of a base image";
    case Truth::Node:
      return "bad nodes";
    case Truth::Driver:
      return "a driver, rolled out";
    case Truth::ProgramAndCards:
      return "a Deployment, and bad cards";
    case Truth::ImageAndCards:
      return "Jobs of an image, and bad cards";
    case Truth::Canary:
      return "a driver, on few nodes";
  }
  return {};
}

Truth truth_of(std::size_t schedule) { return kTruths[schedule % kTruths.size()]; }

void Tally::add(const Tally& other) {
  const auto more = figures_of(other);
  std::size_t at = 0;
  for_each_figure(*this, [&](std::size_t& figure, bool is_most) {
    figure = is_most ? std::max(figure, more[at]) : figure + more[at];
    ++at;
  });
}

Tally play(Truth truth, std::uint64_t number) { return Schedule(truth, number).run(); }

std::string lines_of(const std::map<Truth, Tally>& tallies) {
  std::string text;
  for (const auto& [truth, tally] : tallies) {
    text += fmt::format("{}", static_cast<int>(truth));
    for (const auto figure : figures_of(tally)) text += fmt::format(" {}", figure);
    text += '\n';
  }
  return text;
}

bool add_lines(std::string_view text, std::map<Truth, Tally>& tallies) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return false;
    std::vector<std::size_t> figures;
    std::size_t figure = 0;
    for (const char letter : text.substr(0, end + 1)) {
      if (letter >= '0' && letter <= '9') {
        figure = figure * 10 + static_cast<std::size_t>(letter - '0');
      } else if (letter == ' ' || letter == '\n') {
        figures.push_back(std::exchange(figure, 0));
      } else {
        return false;
      }
    }
    text.remove_prefix(end + 1);
    Tally tally;
    if (figures.size() != figures_of(tally).size() + 1 || figures.front() >= kTruths.size()) return false;
    std::size_t at = 1;
    for_each_figure(tally, [&](std::size_t& one, bool /*is_most*/) { one = figures[at++]; });
    tallies[static_cast<Truth>(figures.front())].add(tally);
  }
  return true;
}

std::string table_of(const std::map<Truth, Tally>& tallies) {
  std::string text =
      "| what breaks devices | schedules | devices broken | pods evicted | suspected rightly | wrongly | visible | in "
      "the end | clear | at once | most devices a day | in all | bad cards given back | most of one | bad nodes | "
      "named | "
      "wrongly | drivers named | wrongly |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  Tally all;
  const auto row = [&](std::string_view name, const Tally& tally) {
    text += fmt::format(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", name,
        tally.schedules, tally.broken, tally.moved, tally.right, tally.wrong, tally.visible, tally.in_the_end,
        tally.clear, tally.at_once, tally.most_a_day, tally.most_in_all, tally.bad_excused, tally.most_excused,
        tally.bad_nodes, tally.nodes_right, tally.nodes_wrong, tally.drivers_right, tally.drivers_wrong);
  };
  for (const auto& [truth, tally] : tallies) {
    row(to_string(truth), tally);
    all.add(tally);
  }
  row("all", all);
  const auto precision = [](std::size_t right, std::size_t wrong) {
    const auto told = right + wrong;
    return told == 0 ? 0.0 : 100.0 * static_cast<double>(right) / static_cast<double>(told);
  };
  return text + fmt::format("\nPrecision: {:.2f} percent of workloads and images, {:.2f} of nodes and drivers.\n",
                            precision(all.right, all.wrong),
                            precision(all.nodes_right + all.drivers_right, all.nodes_wrong + all.drivers_wrong));
}

}  // namespace dhc::planted
