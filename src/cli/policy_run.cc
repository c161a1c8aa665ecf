#include "cli/policy_run.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/demo_lockstep.h"
#include "cli/demo_play.h"
#include "domain/policy/config_duration.h"
#include "simulator/direct_transport.h"

namespace dhc::cli {

namespace {

constexpr Millis kClusterAlone = Seconds(60);
constexpr Millis kControllerAlone = Seconds(60);
constexpr std::size_t kMostWords = 6;

/// The simulated server asks nobody who he is.
class Anybody final : public k8s::Credentials {
 public:
  Result<std::vector<k8s::Header>> headers(std::stop_token /*stop*/) override { return std::vector<k8s::Header>{}; }
  void unauthorized() override {}
  Result<k8s::TlsMaterial> tls(std::stop_token /*stop*/) override { return k8s::TlsMaterial{}; }
};

/// Something that was said or done of somebody.
struct Saying {
  std::string kind;
  std::string name;    ///< `namespace/name`, or a node's name.
  std::string device;  ///< As in verdicts.
  Reason reason{};
  std::string message;
};

std::string name_of(const Subject& subject) {
  return subject.ns.empty() ? subject.name : subject.ns + "/" + subject.name;
}

/// The device as verdicts name it, and where it is.
struct FoundDevice {
  std::string node;
  std::string name;
  std::string in_verdicts;
};

class Stagehand {
 public:
  Stagehand(const PolicyCase& one, Policy policy)
      : one_(one),
        clock_(demo_beginning()),
        cluster_(1, clock_()),
        lockstep_({.with_cluster = [this](const DemoPlace::Work& work) { work(cluster_); },
                   .client = k8s::Client(std::make_shared<sim::DirectTransport>(cluster_, [this] { return clock_(); }),
                                         std::make_shared<Anybody>(), "policy-test"),
                   .clock = clock_},
                  std::move(policy)) {}

  CaseResult run() {
    set_up();
    pass_alone(kClusterAlone);
    begun_ = clock_().mono + kControllerAlone;
    while (clock_().mono < begun_) settle(next_moment(begun_));
    const auto end = begun_ + one_.length;
    do_steps();
    settle(clock_().mono);
    look();
    while (clock_().mono < end) {
      settle(next_moment(end));
      look();
    }
    for (std::size_t i = 0; i < one_.expectations.size(); ++i) judge_unmet(i);
    std::ranges::sort(failed_);
    result_.played = one_.length;
    for (auto& [place, what] : failed_) result_.failures.push_back(std::move(what));
    return std::move(result_);
  }

 private:
  [[nodiscard]] Millis passed() const { return clock_().mono - begun_; }

  void set_up() {
    using Kind = CaseWorkload::Kind;
    for (const auto& node : one_.nodes) cluster_.add_node(node);
    std::set<std::string> known;
    for (const auto& ns : one_.namespaces) {
      cluster_.add_namespace(ns.name, ns.labels, ns.annotations);
      known.insert(ns.name);
    }
    for (const auto& workload : one_.workloads) {
      if (workload.ns != "default" && known.insert(workload.ns).second) cluster_.add_namespace(workload.ns);
    }
    for (const auto& workload : one_.workloads) {
      auto shape = workload.shape;
      if (shape.labels.empty()) shape.labels = {{"app", workload.name}};
      if (!shape.shared_claim.empty() && cluster_.get(sim::Res::Claims, workload.ns, shape.shared_claim) == nullptr) {
        cluster_.create_claim(workload.ns, shape.shared_claim, shape.device_class, shape.count);
      }
      switch (workload.kind) {
        case Kind::Job:
          cluster_.create_job({.ns = workload.ns,
                               .name = workload.name,
                               .parallelism = workload.replicas,
                               .completions = workload.replicas,
                               .backoff_limit = workload.backoff_limit,
                               .ignore_condition = {},
                               .shape = shape});
          break;
        case Kind::Deployment:
          cluster_.create_deployment(workload.ns, workload.name, workload.replicas, shape);
          break;
        case Kind::StatefulSet:
          cluster_.create_stateful_set(workload.ns, workload.name, workload.replicas, shape);
          break;
        case Kind::DaemonSet:
          cluster_.create_daemon_set(workload.ns, workload.name, shape);
          break;
        case Kind::Pod:
          cluster_.create_pod(workload.ns, workload.name, shape);
          break;
      }
    }
    for (const auto& budget : one_.budgets) cluster_.add_budget(budget);
  }

  void pass_to(MonoTime mono) {
    const auto before = clock_();
    clock_.set({.mono = mono, .wall = before.wall + (mono - before.mono)});
  }

  void pass_alone(Millis time) {
    const auto end = clock_().mono + time;
    while (clock_().mono < end) {
      cluster_.step(clock_());
      const auto now = cluster_.now().mono;
      pass_to(std::clamp(cluster_.next_wake().value_or(end), now + Millis(1), end));
    }
  }

  /// The next at which anything may happen, or is looked at.
  [[nodiscard]] MonoTime next_moment(MonoTime end) const {
    const auto now = clock_().mono;
    auto next = std::min(lockstep_.next_moment().value_or(end), end);
    const auto note = [&](Millis at) {
      if (begun_ + at > now) next = std::min(next, begun_ + at);
    };
    if (steps_done_ < one_.steps.size()) note(one_.steps[steps_done_].at);
    for (const auto& expected : one_.expectations) note(expected.time);
    return std::max(next, now + Millis(1));
  }

  void settle(MonoTime moment) {
    pass_to(moment);
    cluster_.step(clock_());
    do_steps();
    cluster_.step(clock_());
    const auto brought = lockstep_.settle();
    sayings_.clear();
    for (const auto& verdict : lockstep_.verdicts()) {
      sayings_.push_back({.kind = verdict.subject.kind,
                          .name = name_of(verdict.subject),
                          .device = verdict.device,
                          .reason = verdict.reason,
                          .message = verdict.message});
    }
    // A pod that ends at once is gone before a verdict could say that it was evicted.
    for (const auto& outcome : brought.outcomes) {
      const auto* evicted = std::get_if<eviction::EvictPod>(&outcome.action);
      if (evicted == nullptr || !outcome.status) continue;
      for (const auto reason : {Reason::Evicting, Reason::Evicted}) {
        sayings_.push_back({.kind = "Pod",
                            .name = evicted->ns + "/" + evicted->name,
                            .device = evicted->device,
                            .reason = reason,
                            .message = "it was evicted"});
      }
    }
  }

  void do_steps() {
    while (steps_done_ < one_.steps.size() && clock_().mono >= begun_ && one_.steps[steps_done_].at <= passed()) {
      const auto& step = one_.steps[steps_done_++];
      if (const auto problem = act(step); !problem.empty()) fail_at(step.place, problem);
    }
  }

  /// In words what is wrong with it; empty: done.
  std::string act(const CaseStep& step) {
    using What = CaseStep::What;
    if (step.what == What::Cordon || step.what == What::Label) {
      if (!has_node(step.node)) return fmt::format("there is no node {}", step.node);
      if (step.what == What::Cordon) {
        cluster_.cordon(step.node, step.is_on);
      } else {
        (void)cluster_.kubectl_patch(sim::Res::Nodes, "", step.node, {{"metadata", {{"labels", step.labels}}}});
      }
      return {};
    }
    const auto* device = find(step.device);
    if (device == nullptr) return fmt::format("there is no device {}", words_of(step.device));
    switch (step.what) {
      case What::Health:
        // Who tells of a later kubelet's word has an API server that takes it.
        cluster_.store().serve_health_word(step.word);
        cluster_.set_device_health(device->node, device->name, step.word, step.message);
        break;
      case What::Taint: {
        const auto colon = step.message.rfind(':');
        cluster_.taint_device(
            device->node, device->name,
            {.key = step.word, .value = step.message.substr(0, colon), .effect = step.message.substr(colon + 1)});
        break;
      }
      case What::Untaint:
        cluster_.untaint_device(device->node, device->name);
        break;
      case What::Vanish:
        if (step.is_on) {
          cluster_.vanish_device(device->node, device->name);
        } else {
          cluster_.restore_device(device->node, scope_of(*device), device->name);
        }
        break;
      case What::Cordon:
      case What::Label:
        break;
    }
    return {};
  }

  [[nodiscard]] bool has_node(const std::string& name) const {
    return std::ranges::find(one_.nodes, name, &sim::NodeShape::name) != one_.nodes.end();
  }

  [[nodiscard]] static std::string words_of(const CaseDevice& device) {
    return device.holder.empty() ? device.node + "/" + device.name : fmt::format("that a pod {} holds", device.holder);
  }

  /// Every device of a node, with its driver or resource.
  template <class Look>
  void each_device(const Look& look) const {
    for (const auto& node : one_.nodes) {
      for (const auto& [driver, count] : node.drivers) {
        for (int i = 0; i < count; ++i) look(node.name, driver, fmt::format("gpu-{}", i), true);
      }
      for (const auto& [resource, count] : node.plugins) {
        auto stem = resource.substr(resource.rfind('/') + 1);
        std::ranges::transform(stem, stem.begin(),
                               [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
        for (int i = 0; i < count; ++i) look(node.name, resource, fmt::format("{}-{}", stem, i), false);
      }
    }
  }

  [[nodiscard]] std::string scope_of(const FoundDevice& device) const {
    std::string found;
    each_device([&](const std::string& node, const std::string& scope, const std::string& name, bool) {
      if (found.empty() && node == device.node && name == device.name) found = scope;
    });
    return found;
  }

  /// Null: there is none, or nobody holds one yet.
  const FoundDevice* find(const CaseDevice& wanted) {
    if (const auto known = devices_.find(wanted); known != devices_.end()) return &known->second;
    std::optional<FoundDevice> found;
    each_device([&](const std::string& node, const std::string& scope, const std::string& name, bool is_dra) {
      if (found) return;
      if (wanted.holder.empty()) {
        if (node != wanted.node || name != wanted.name) return;
      } else {
        const auto holders = cluster_.holders(node, name);
        const bool fits =
            std::ranges::any_of(holders, [&](const auto& holder) { return glob_matches(wanted.holder, holder); });
        if (!fits) return;
      }
      const auto key = is_dra ? DeviceKey::dra(scope, node, name) : DeviceKey::plugin(node, scope, name);
      found = FoundDevice{.node = node, .name = name, .in_verdicts = to_string(key)};
    });
    return found ? &devices_.emplace(wanted, *std::move(found)).first->second : nullptr;
  }

  [[nodiscard]] static std::string_view kind_of(const CaseExpectation& expected) {
    using About = CaseExpectation::About;
    switch (expected.about) {
      case About::Pod:
        return "Pod";
      case About::Job:
        return "Job";
      case About::Node:
        return "Node";
      case About::Device:
        return "device";
    }
    return "";
  }

  bool is_about(const Saying& saying, const CaseExpectation& expected) {
    if (expected.names_device) {
      const auto* device = find(expected.device);
      if (device == nullptr || saying.device != device->in_verdicts) return false;
      // What is said of a device itself has its node or rule as subject.
      if (expected.about == CaseExpectation::About::Device) return saying.kind != "Pod" && saying.kind != "Job";
    }
    return saying.kind == kind_of(expected) && glob_matches(expected.name, saying.name);
  }

  /// Whether there is now whom the expectation is about.
  bool is_there(const CaseExpectation& expected) {
    using About = CaseExpectation::About;
    if (expected.names_device && find(expected.device) == nullptr) return false;
    const auto has = [&](sim::Res kind) {
      return std::ranges::any_of(cluster_.store().all(kind), [&](const auto& entry) {
        const auto& name = entry.first;
        return glob_matches(expected.name, name.ns.empty() ? name.name : name.ns + "/" + name.name);
      });
    };
    switch (expected.about) {
      case About::Pod:
        return has(sim::Res::Pods);
      case About::Job:
        return has(sim::Res::Jobs);
      case About::Node:
        return has(sim::Res::Nodes);
      case About::Device:
        return true;
    }
    return true;
  }

  void look() {
    using When = CaseExpectation::When;
    met_.resize(one_.expectations.size());
    there_.resize(one_.expectations.size());
    for (std::size_t i = 0; i < one_.expectations.size(); ++i) {
      const auto& expected = one_.expectations[i];
      if (expected.when == When::Never && !there_[i]) there_[i] = is_there(expected);
      if (passed() > expected.time || (expected.when == When::At && passed() < expected.time) || met_[i]) continue;
      const auto said = std::ranges::find_if(
          sayings_, [&](const Saying& one) { return one.reason == expected.reason && is_about(one, expected); });
      met_[i] = said != sayings_.end();
      if (met_[i] && expected.when == When::Never) {
        fail_at(expected.place, fmt::format("{} must not be {}, and was after {}: {}", subject_of(expected),
                                            to_string(expected.reason), format_duration(passed()), said->message));
      }
      // What it was instead is said as it was then.
      if (!met_[i] && passed() == expected.time && expected.when != When::Never) instead_[i] = said_of(expected);
    }
  }

  void judge_unmet(std::size_t i) {
    const auto& expected = one_.expectations[i];
    if (expected.when == CaseExpectation::When::Never) {
      if (there_.at(i)) return;
      return fail_at(expected.place,
                     fmt::format("there was never a {}: nothing could be said of it", subject_of(expected)));
    }
    if (i < met_.size() && met_[i]) return;
    const auto what = instead_.find(i);
    fail_at(expected.place,
            fmt::format("{} should {} {} {} {}, and {}", subject_of(expected),
                        expected.when == CaseExpectation::When::At ? "be" : "have been", to_string(expected.reason),
                        expected.when == CaseExpectation::When::At ? "at" : "by", format_duration(expected.time),
                        what == instead_.end() || what->second.empty() ? std::string("nothing was said of it")
                                                                       : "it was " + what->second));
  }

  [[nodiscard]] static std::string subject_of(const CaseExpectation& expected) {
    const auto device = expected.names_device ? "device " + words_of(expected.device) : std::string();
    if (expected.about == CaseExpectation::About::Device) return device;
    return fmt::format("{} {}{}", kind_of(expected), expected.name, device.empty() ? "" : " on account of " + device);
  }

  std::string said_of(const CaseExpectation& expected) {
    std::string words;
    std::set<Reason> said;
    for (const auto& saying : sayings_) {
      if (said.size() == kMostWords || !is_about(saying, expected) || !said.insert(saying.reason).second) continue;
      words += fmt::format("{}{} ({})", words.empty() ? "" : ", ", to_string(saying.reason), saying.message);
    }
    return words;
  }

  void fail_at(TextPlace place, const std::string& what) {
    failed_.emplace_back(place, fmt::format("{}:{}:{}: {}", one_.file, place.line, place.column, what));
  }

  const PolicyCase& one_;
  DemoClock clock_;
  sim::Cluster cluster_;
  Lockstep lockstep_;
  MonoTime begun_ = MonoTime::max();
  std::size_t steps_done_ = 0;
  std::vector<Saying> sayings_;  // of this moment
  std::map<CaseDevice, FoundDevice> devices_;
  std::vector<bool> met_;
  std::vector<bool> there_;  // of what must never be said: that somebody was there
  std::map<std::size_t, std::string> instead_;
  std::vector<std::pair<TextPlace, std::string>> failed_;
  CaseResult result_;
};

}  // namespace

CaseResult play_case(const PolicyCase& one, Policy policy) {
  policy.mode_cap = one.mode;
  policy.own_namespace = "device-health-system";
  try {
    return Stagehand(one, std::move(policy)).run();
  } catch (const std::exception& error) {
    return {.failures = {fmt::format("{}:{}:{}: the case could not be played: {}", one.file, one.place.line,
                                     one.place.column, error.what())},
            .played = Millis(0)};
  }
}

}  // namespace dhc::cli
