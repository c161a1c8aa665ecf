#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "domain/contract/job_record.h"
#include "domain/contract/names.h"
#include "tests/support/core/stage.h"

namespace dhc::test {

/// A Job `train` with backoffLimit 0 whose pods each hold one device of node-a, under a policy that credits and evicts.
struct JobStage : Stage {
  JobStage() {
    policy().job_retry = JobRetryRules{};
    limits().max_in_flight = 50;
    limits().per_node = 50;
    limits().brake_at_least = 100;
    send_policy();
    node("node-a", 8, 4);
  }

  k8s::Job& job() { return job_named("train"); }

  /// A pod of the Job on the device with the same number.
  void add_pod(int number, k8s::Health health = k8s::Health::Unhealthy) {
    const auto suffix = std::to_string(number);
    const bool is_first = !has_job_;
    has_job_ = true;
    pod({.name = "train-" + suffix, .owner = "Job/train", .device = "gpu-" + suffix, .health = health});
    if (is_first) {
      job().backoff_limit = 0;
      upsert_job("train");
    }
  }

  RetryCredits credits() {
    const auto text = k8s::find(job().meta.annotations, kRetryCreditsAnnotation);
    return text ? parse_retry_credits(*text).value() : RetryCredits{};
  }

  /// The states of the Job's credits, joined by a blank.
  std::string states() {
    std::string joined;
    for (const auto& credit : credits().credits) {
      if (!joined.empty()) joined += ' ';
      joined += credit.state == RetryCredit::State::Given   ? "given"
                : credit.state == RetryCredit::State::Spent ? "spent"
                                                            : "unspent";
    }
    return joined;
  }

  /// As `run_for`, beside a Job controller that counts each pod whose deletion it sees.
  std::vector<std::string> run_counted(Millis time) {
    std::vector<std::string> gone;
    for (Millis passed{0}; passed < time; passed += Seconds(1)) {
      const auto now_gone = run_for(Seconds(1));
      if (now_gone.empty()) continue;
      gone.insert(gone.end(), now_gone.begin(), now_gone.end());
      job().failed += static_cast<std::int64_t>(now_gone.size());
      upsert_job("train");
    }
    return gone;
  }

  /// The Job controller has given it up, in this second.
  void fail_job() {
    job().conditions = {{.type = "Failed",
                         .status = "True",
                         .reason = "BackoffLimitExceeded",
                         .message = {},
                         .last_transition = now().wall}};
    upsert_job("train");
  }

  /// The pod ends; `reason` is its status.reason.
  void end_pod(const std::string& name, k8s::PodPhase phase, const std::string& reason = {}) {
    auto& pod = pod_named(name);
    pod.phase = phase;
    pod.status_reason = reason;
    if (phase == k8s::PodPhase::Failed) pod.exits = {{"main", 1}};
    upsert_pod(name);
  }

 private:
  bool has_job_ = false;
};

}  // namespace dhc::test
