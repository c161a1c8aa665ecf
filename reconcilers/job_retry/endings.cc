#include "reconcilers/job_retry/endings.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "domain/cluster/disruption.h"
#include "domain/cluster/node_subject.h"
#include "domain/contract/condition_text.h"
#include "domain/contract/names.h"
#include "domain/findings/enforcement.h"
#include "domain/findings/match_device.h"
#include "domain/findings/rejecting_node.h"
#include "reconcilers/shared/job_credit.h"

namespace dhc::job_retry {

namespace {

class Judge {
 public:
  Judge(const PlanInput& input, const PodEnding& ending) : input_(input), ending_(ending), pod_(ending.pod) {}

  std::optional<Finding> finding() {
    found_.ending = &ending_;
    found_.record = job_of(pod_, input_.world);
    if (found_.record == nullptr || found_.record->job.meta.deletion) return std::nullopt;
    if (pod_.phase == k8s::PodPhase::Succeeded) return succeeded();
    if (was_rejected(pod_)) return rejected();
    // Deleted before it failed: by a drain, a scale-down or the Job controller, which ends the pods of a failing Job.
    if (was_taken_otherwise(pod_)) return std::nullopt;
    return died();
  }

 private:
  std::optional<Finding> done(Reason what, const DeviceKey& key, std::string device, std::string why) {
    found_.what = what;
    found_.key = key;
    found_.device = std::move(device);
    found_.why = std::move(why);
    return std::move(found_);
  }

  /// **Source:** seen on 1.37.1: a container that exits 0 on SIGTERM makes its evicted pod Succeeded, and the Job
  /// counts the work as done.
  std::optional<Finding> succeeded() {
    const auto* attempt = input_.requests.eviction(pod_.meta.uid);
    const auto* condition = our_condition(pod_);
    const bool ours = attempt != nullptr || (condition != nullptr && condition->status == "True");
    if (!ours) return std::nullopt;
    std::string device = attempt == nullptr ? std::string() : to_string(attempt->key);
    DeviceKey key;
    const auto words = condition == nullptr ? ConditionWords() : read_condition(condition->message);
    for (const auto& held : ending_.devices) {
      const auto name = to_string(held.key);
      const bool named = words.find(name) != nullptr;
      if (attempt == nullptr ? !named : name != device) continue;
      device = name;
      key = held.key;
      // Said where a policy selects it, written on the Job where that gives retries back.
      if (!covered_by(held.was_unhealthy ? policy_for_unhealthy(input_.world, input_.policy, pod_, key, held.message)
                                         : policy_for(input_.world, input_.policy, pod_, key),
                      key)) {
        found_.mode = Mode::Observe;
      }
    }
    // What no policy selects is not ours to speak of: it may have been another controller's, with another
    // configuration.
    if (found_.policy == nullptr) return std::nullopt;
    return done(Reason::EvictedPodSucceeded, key, std::move(device),
                fmt::format("pod {} was evicted and its containers exited 0: the Job may count its work as done, which "
                            "it may not be; exit non-zero on SIGTERM",
                            pod_.meta.name));
  }

  /// Whether retries are given back for a device whose driver said this.
  bool covered(const DeviceKey& key, std::string_view said) {
    return covered_by(policy_for_unhealthy(input_.world, input_.policy, pod_, key, said), key);
  }

  bool covered_by(const DevicePolicy* policy, const DeviceKey& key) {
    found_.policy = policy;
    if (found_.policy == nullptr || !found_.policy->job_retry || !found_.policy->job_retry->credit) return false;
    found_.mode = mode_for(*policy, input_.policy, input_.world, pod_, key);
    return found_.mode != Mode::Off;
  }

  /// The kubelet had no healthy device left: in the seconds before a loss is seen in the node's allocatable.
  /// **Source:** seen on 1.37.1.
  std::optional<Finding> rejected() {
    for (const auto& request : pod_.requests) {
      // The same word stands for processors and memory that could not be had: the kubelet's sentence names what it was.
      if (pod_.status_message.find(request.resource) == std::string::npos) continue;
      const auto key = DeviceKey::plugin(pod_.node_name, request.resource, {});
      if (!covered(key, {})) continue;
      const auto* book = input_.world.resource_book(pod_.node_name, request.resource);
      const bool loss = book != nullptr && (book->allocatable < book->capacity || book->held.unhealthy > 0 ||
                                            book->capacity < book->largest_capacity);
      const auto place = fmt::format("{}/{}", pod_.node_name, request.resource);
      // A node that says nothing of its loss has lost one all the same if a pod of this Job died of it there.
      const bool known = std::ranges::any_of(found_.record->credits.credits, [&](const RetryCredit& credit) {
        return credit.device.starts_with(place + "/") || credit.device == place;
      });
      if (!loss && !known) continue;
      return done(Reason::RejectedByKubelet, key, place,
                  fmt::format("node {} rejected pod {}: it had no {} to give", pod_.node_name, pod_.meta.name,
                              request.resource));
    }
    return std::nullopt;
  }

  /// The first policy for the device that names a taint of its driver, when the pod ended or soon after it.
  const DevicePolicy* policy_naming_taint(const PodEnding::Device& device) const {
    auto taints = device.taints;
    if (input_.now.mono - ending_.at.mono < kLateEvidence) {
      std::ranges::move(input_.world.driver_taints().standing(device.key), std::back_inserter(taints));
    }
    return first_policy(device.key, [&](const Match& match) {
      return std::ranges::any_of(taints, [&](const k8s::Taint& taint) { return fits_any(match.device_taints, taint); });
    });
  }

  const DevicePolicy* policy_naming_word(const PodEnding::Device& device) const {
    return first_policy(device.key, [&](const Match& match) {
      return !device.other_word.empty() && message_fits(match, device.other_message) &&
             std::ranges::find(match.health_words, device.other_word) != match.health_words.end();
    });
  }

  template <class Names>
  const DevicePolicy* first_policy(const DeviceKey& key, Names names) const {
    const auto policies = policies_for(input_.world, input_.policy, pod_, key);
    const auto found = std::ranges::find_if(policies, [&](const auto* policy) { return names(policy->match); });
    return found == policies.end() ? nullptr : *found;
  }

  struct Clue {
    std::string why;
    std::string said;  ///< The driver's words about it.
  };

  std::optional<Clue> evidence(const PodEnding::Device& device) const {
    const auto name = to_string(device.key);
    if (device.was_unhealthy) {
      return Clue{.why = fmt::format("{} was last seen Unhealthy while the pod ran", name), .said = device.message};
    }
    if (input_.now.mono - ending_.at.mono >= kLateEvidence) return std::nullopt;
    const auto* state = input_.world.tracker().find(device.key);
    // An incident that began before and is only remembered was not reported afterwards.
    if (state != nullptr && state->unhealthy_since &&
        (state->health == k8s::Health::Unhealthy || state->unhealthy_since->mono >= ending_.at.mono)) {
      return Clue{.why = fmt::format("{} was reported Unhealthy afterwards", name), .said = state->message};
    }
    // One that ends its pods may stand for something else than a fault: that its policy has to say.
    if (!is_taken_ && input_.world.inventory().tainted_by_driver(device.key).value_or(false)) {
      return Clue{.why = fmt::format("the driver of {} has tainted it", name), .said = {}};
    }
    return std::nullopt;
  }

  /// No other device ends its pods by a taint.
  bool may_have_ended_it(const PodEnding::Device& device) const {
    return !is_taken_ || device.key.source == DeviceKey::Source::Dra;
  }

  std::optional<Finding> died() {
    const std::string_view ended = is_taken_ ? "was deleted for a NoExecute taint of its device," : "failed";
    for (const auto& device : ending_.devices) {
      if (!may_have_ended_it(device)) continue;
      const auto clue = evidence(device);
      if (!clue || !covered(device.key, clue->said)) continue;
      return done(Reason::DiedOfDevice, device.key, to_string(device.key),
                  fmt::format("pod {} {} and {}", pod_.meta.name, ended, clue->why));
    }
    for (const auto& device : ending_.devices) {
      if (!may_have_ended_it(device)) continue;
      if (covered_by(policy_naming_taint(device), device.key)) {
        return done(
            Reason::DiedOfDevice, device.key, to_string(device.key),
            fmt::format("pod {} {} and the driver of {} has tainted it", pod_.meta.name, ended, to_string(device.key)));
      }
      if (covered_by(policy_naming_word(device), device.key)) {
        return done(Reason::DiedOfDevice, device.key, to_string(device.key),
                    fmt::format("pod {} {} and {} was last reported {} while it ran", pod_.meta.name, ended,
                                to_string(device.key), device.other_word));
      }
    }
    if (is_taken_) return std::nullopt;
    for (const auto& device : ending_.devices) {
      if (device.key.source != DeviceKey::Source::Plugin || !covered(device.key, {})) continue;
      const auto* book = input_.world.resource_book(pod_.node_name, device.key.scope);
      const bool lost = book != nullptr && book->held.unhealthy == 0 &&
                        (book->allocatable < book->capacity || book->capacity < book->largest_capacity);
      if (!lost || input_.now.mono - ending_.at.mono >= kLateEvidence) continue;
      return done(
          Reason::ProbablyDiedOfDevice, device.key, to_string(device.key),
          fmt::format("pod {} failed and node {} has fewer {} allocatable: probably of its device, which nobody "
                      "has reported; not credited",
                      pod_.meta.name, pod_.node_name, device.key.scope));
    }
    return std::nullopt;
  }

  const PlanInput& input_;
  const PodEnding& ending_;
  const k8s::Pod& pod_;
  const bool is_taken_ = was_taken_for_taint(pod_);
  Finding found_;
};

}  // namespace

std::vector<Finding> find_endings(const PlanInput& input) {
  std::vector<Finding> found;
  for (const auto& [uid, ending] : input.world.endings()) {
    if (auto finding = Judge(input, ending).finding()) found.push_back(*std::move(finding));
  }
  return found;
}

Planned<Verdict> tell_rejecting_nodes(const PlanInput& input) {
  Planned<Verdict> told;
  Wake wake;
  for (const auto& [place, rejecting] : input.rejecting_nodes) {
    const auto& [name, resource] = place;
    wake.note(rejecting.changes_at());
    const auto until = rolls_until(input.world, DeviceKey::rejecting_node(name, resource), rejecting);
    if (until && input.now.wall < *until)
      wake.note(input.now.mono + std::chrono::ceil<Millis>(*until - input.now.wall));
    if (!rejecting.since()) continue;
    const auto within = std::chrono::ceil<Seconds>(rejecting.policy->job_retry->rejections_within).count();
    told.verdicts.push_back(
        {.subject = subject_of_node(input.world, name),
         .device = resource,
         .policy = rejecting.policy->name,
         .reason = Reason::BlackHoleNode,
         .message = fmt::format("its kubelet rejected {} pods that asked for {} within {} s: new pods go there to die",
                                rejecting.rejections.size(), resource, within),
         .since = rejecting.rejections.front().wall,
         .next_at = wall_of(rejecting.changes_at(), input.now)});
  }
  told.wake_at = wake.at();
  return told;
}

}  // namespace dhc::job_retry
