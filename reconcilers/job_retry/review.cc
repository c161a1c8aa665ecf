#include "reconcilers/job_retry/review.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/printable.h"
#include "domain/cluster/disruption.h"
#include "domain/contract/names.h"
#include "domain/findings/pauses.h"
#include "reconcilers/shared/job_end.h"

namespace dhc::job_retry {

namespace {

using State = RetryCredit::State;

/// Until then a failed pod may not be counted yet: a write of ours would cost the Job controller a conflict.
constexpr Millis kCounted = Seconds(60);

/// How many losses of Jobs are told, and of how many Jobs; beside these the number of the rest.
constexpr std::size_t kMostTold = 500;
/// The longest name of an object, in bytes, and some room for a device's.
constexpr std::size_t kLongestTold = 512;

/// Since when this device has been healthy without interruption, as far as this process has seen; none if it is not.
std::optional<MonoTime> healthy_since(const DeviceKey& key, MonoTime seen_at, const World& world) {
  const auto* state = world.tracker().find(key);
  if (state == nullptr || !state->has_source || state->health != k8s::Health::Healthy) return std::nullopt;
  return state->recovered_at ? state->recovered_at->mono : seen_at;
}

bool is_quiet(const k8s::Job& job) { return job.terminating == 0 && job.uncounted == 0; }

/// Whether the Job may have counted this pod as failed before it succeeded. **Source:** seen on 1.37.1: a pod that is
/// being deleted counts at once, unless the Job replaces pods when they have failed; a podFailurePolicy implies that.
bool may_be_counted(const k8s::Pod& pod, const k8s::Job& job) {
  if (job.replaces_when_failed || !job.failure_rules.empty()) return false;
  return pod.meta.deletion || was_disrupted(pod);
}

/// What all enforcing policies that may have given the Job's credits agree on: nobody has written down which one did.
struct Agreed {
  Millis healthy_for{0};
  bool take_back = true;
  bool evicts_all_the_same = true;
};

class Review {
 public:
  explicit Review(Planning& planning) : planning_(planning), input_(planning.input) {}

  void tell_losses() {
    const auto& noted = input_.world.noted_jobs();
    const auto jobs = noted.with_losses(kMostTold);
    std::size_t told = 0;
    std::size_t said = 0;
    for (; told < jobs.size() && said < kMostTold; ++told) {
      const auto& record = *input_.world.job(jobs[told]);
      for (const auto& loss : record.losses) {
        if (loss.what == to_string(Reason::EvictedPodSucceeded)) say_loss(record, loss, Reason::EvictedPodSucceeded);
        if (loss.what == to_string(Reason::JobDiedOfDevice)) say_loss(record, loss, Reason::JobDiedOfDevice);
      }
      said += record.losses.size();
    }
    if (told < noted.losses()) say_rest(noted.losses() - told, told, input_.world.job(jobs.front())->losses);
  }

  void look_at(const JobRecord& record) {
    const auto& job = record.job;
    if (k8s::is_ending(job) || job.meta.deletion || !record.credits_readable) return;
    // Nobody holds a device by a Job without pods, and its credits say nothing to anyone.
    if (input_.world.pods_of_job(job).empty()) return;
    const auto agreed = agreed_for(job);
    if (job.backoff_limit < record.credits.limit) return say_reverted(record, agreed);
    if (!agreed) return;
    for (const auto& credit : record.credits.credits) {
      if (credit.state != State::Spent) settle(record, credit, *agreed);
    }
    if (!agreed->take_back) return;
    if (const auto pause = pause_in(input_.policy, input_.now.wall, job.meta.ns))
      return planning_.wake.note(end_of(*pause, input_.now));
    take_back(record);
  }

 private:
  /// Since some time that stays the same.
  void say_rest(std::size_t rest, std::size_t told, const std::vector<JobLoss>& first) {
    planning_.say({.subject = {.kind = "Configuration", .ns = {}, .name = "configuration", .uid = {}},
                   .device = {},
                   .policy = {},
                   .reason = Reason::JobDiedOfDevice,
                   .message = fmt::format("{} more Jobs carry losses in their annotation {}; {} are shown", rest,
                                          kLossesAnnotation, told),
                   .since = first.front().at,
                   .next_at = std::nullopt});
  }

  /// By the annotation's own words: whoever may edit the Job can write them.
  void say_loss(const JobRecord& record, const JobLoss& written, Reason reason) {
    JobLoss loss = written;
    loss.device = printable_cut(loss.device, kLongestTold);
    loss.pod = printable_cut(loss.pod, kLongestTold);
    planning_.say(
        {.subject = subject_of(record.job),
         .device = loss.device,
         .policy = {},
         .reason = reason,
         .message =
             reason == Reason::JobDiedOfDevice
                 ? fmt::format("this Job died of {} (pod {})", loss.device, loss.pod)
                 : fmt::format("pod {} was evicted and its containers exited 0: its work may not be done", loss.pod),
         .since = loss.at,
         .next_at = std::nullopt});
  }

  void say_reverted(const JobRecord& record, const std::optional<Agreed>& agreed) {
    const auto& job = record.job;
    const bool evicts = agreed && agreed->evicts_all_the_same;
    planning_.say(
        {.subject = subject_of(job),
         .device = {},
         .policy = {},
         .reason = Reason::CreditReverted,
         .message = fmt::format(
             "backoffLimit is {}, and {} was our last credit's: another client, such as a GitOps tool, took it "
             "back; {}",
             job.backoff_limit, record.credits.limit,
             evicts ? fmt::format("nothing of this Job is credited until it is {} again, and its pods are "
                                  "evicted all the same (jobRetry.whenNotCreditable: Evict)",
                                  record.credits.limit)
                    : fmt::format("nothing of this Job is credited or evicted until it is {} again",
                                  record.credits.limit)),
         .since = record.reverted ? record.reverted->since : input_.now.wall,
         .next_at = std::nullopt});
  }

  std::optional<Agreed> agreed_for(const k8s::Job& job) const {
    std::optional<Agreed> agreed;
    for (const auto& uid : input_.world.pods_of_job(job)) {
      const auto& record = *input_.world.pod(uid);
      for (const auto& held_device : record.held_devices) {
        for (const auto* policy : policies_for(input_.world, input_.policy, record.pod, held_device.key)) {
          if (!policy->job_retry || !policy->job_retry->credit) continue;
          if (effective_mode(policy, input_.policy) != Mode::Enforce) continue;
          if (!agreed) agreed.emplace();
          agreed->healthy_for = std::max(agreed->healthy_for, policy->recover.healthy_for);
          agreed->take_back = agreed->take_back && policy->job_retry->take_back;
          agreed->evicts_all_the_same =
              agreed->evicts_all_the_same && policy->job_retry->not_creditable == JobRetryRules::NotCreditable::Evict;
        }
      }
    }
    return agreed;
  }

  /// A credit that is given, or unspent: what its pod has come to.
  void settle(const JobRecord& record, const RetryCredit& credit, const Agreed& agreed) {
    const auto* known = input_.world.pod(credit.pod_uid);
    if (known == nullptr) return settle_gone(record, credit);
    const auto& pod = known->pod;
    if (pod.phase == k8s::PodPhase::Succeeded) {
      if (credit.state == State::Given) {
        mark(record, credit, may_be_counted(pod, record.job) ? State::Spent : State::Unspent);
      }
    } else if (!is_live(pod)) {
      if (is_counted(credit.pod_uid) && is_quiet(record.job)) mark(record, credit, State::Spent);
    } else if (pod.meta.deletion) {
      // Its loss is on its way, whatever had been hoped.
      if (credit.state == State::Unspent) mark(record, credit, State::Given);
    } else if (credit.state == State::Given && !is_at_risk(credit.pod_uid)) {
      settle_running(record, credit, *known, agreed);
    }
  }

  void settle_gone(const JobRecord& record, const RetryCredit& credit) {
    if (credit.state != State::Given || !is_quiet(record.job)) return;
    const auto counted_at = shown_as_counted_at(record, credit, input_.world);
    if (!counted_at) return;
    if (input_.now.mono < *counted_at) return planning_.wake.note(counted_at);
    // **Source:** seen on 1.37.1: pods that a suspension removes are not counted.
    const auto found = record.credit_seen.find(credit.pod_uid);
    const bool uncounted = found != record.credit_seen.end() && found->second.suspended &&
                           found->second.went_unevicted && record.job.failed == found->second.counted;
    mark(record, credit, uncounted ? State::Unspent : State::Spent);
  }

  void settle_running(const JobRecord& record, const RetryCredit& credit, const PodRecord& pod, const Agreed& agreed) {
    for (const auto& held_device : pod.held_devices) {
      if (to_string(held_device.key) != credit.device) continue;
      const auto seen = record.credit_seen.find(credit.pod_uid);
      if (seen == record.credit_seen.end()) return;
      const auto since = healthy_since(held_device.key, seen->second.at, input_.world);
      if (!since) return;
      const MonoTime at = *since + agreed.healthy_for;
      if (input_.now.mono < at) return planning_.wake.note(at);
      return mark(record, credit, State::Unspent);
    }
  }

  /// Whether a pod that has failed has been counted by now.
  bool is_counted(const std::string& uid) {
    const auto ending = input_.world.endings().find(uid);
    if (ending == input_.world.endings().end()) return false;
    const MonoTime at = ending->second.at.mono + kCounted;
    if (input_.now.mono < at) planning_.wake.note(at);
    return input_.now.mono >= at;
  }

  /// Whether the pod is on another bad device, or its eviction is on its way.
  bool is_at_risk(const std::string& uid) const {
    if (may_stand(input_.requests.eviction(uid), input_.now)) return true;
    return std::ranges::any_of(input_.affected_pods,
                               [&](const AffectedPod& affected) { return affected.pod().meta.uid == uid; });
  }

  void mark(const JobRecord& record, const RetryCredit& credit, State state) {
    auto* entry = planning_.draft_of(record).credits().find(credit.pod_uid);
    if (entry != nullptr && entry->state == credit.state) entry->state = state;
  }

  /// **Source:** seen on 1.37.1: lowering the limit after a failure was counted ends the Job and kills its pods.
  void take_back(const JobRecord& record) {
    const auto& job = record.job;
    if (!is_quiet(job) || job.failed != 0 || !is_unharmed(job)) return;
    auto& draft = planning_.draft_of(record);
    if (record.credits.has_unspent() && draft.credits() == record.credits) draft.take_back();
  }

  /// Whether no pod of the Job has failed, is going, or is on a bad device.
  bool is_unharmed(const k8s::Job& job) const {
    for (const auto& uid : input_.world.pods_of_job(job)) {
      const auto& pod = input_.world.pod(uid)->pod;
      if (pod.phase == k8s::PodPhase::Failed || pod.meta.deletion) return false;
    }
    return std::ranges::none_of(input_.affected_pods, [&](const AffectedPod& affected) {
      return affected.pod().meta.is_controlled_by(job.meta);
    });
  }

  Planning& planning_;
  const PlanInput& input_;
};

}  // namespace

void review_jobs(Planning& planning) {
  Review review(planning);
  review.tell_losses();
  const auto& world = planning.input.world;
  for (const auto& uid : world.noted_jobs().with_credits()) review.look_at(*world.job(uid));
}

}  // namespace dhc::job_retry
