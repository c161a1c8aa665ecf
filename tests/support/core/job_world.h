#pragma once
#include <set>
#include <string>
#include <vector>

#include "domain/contract/job_record.h"
#include "domain/contract/names.h"
#include "tests/support/core/scenario.h"

namespace dhc::test {

inline constexpr auto kJobGpu = "example.com/gpu";

/// The simulated cluster with a Job `train` on plugin devices, under a policy that gives retries back and evicts.
struct JobWorld : Scenario {
  explicit JobWorld(sim::JobShape shape, std::uint64_t seed = 1) : Scenario(seed), first_limit(shape.backoff_limit) {
    cluster.add_node({"node-a", {{kJobGpu, 8}}, {}, {}});
    cluster.add_node({"node-b", {{kJobGpu, 8}}, {}, {}});
    shape.name = "train";
    shape.shape.resource = kJobGpu;
    pods_wanted = shape.parallelism;
    cluster.create_job(std::move(shape));
    policy().job_retry = JobRetryRules{};
    policy().after = Seconds(5);
    whole_policy().limits.per_node = 20;
    whole_policy().limits.max_in_flight = 20;
    whole_policy().limits.brake_at_least = 100;
    send_policy();
    run_for(Seconds(5));
  }

  [[nodiscard]] sim::Json job() const { return object(sim::Res::Jobs, "train"); }
  [[nodiscard]] std::int64_t limit() const { return sim::number(job(), {"spec", "backoffLimit"}); }
  [[nodiscard]] std::int64_t failed() const { return sim::number(job(), {"status", "failed"}); }
  [[nodiscard]] bool has_failed() const { return sim::condition_status(job(), "Failed") == "True"; }
  [[nodiscard]] bool is_complete() const { return sim::condition_status(job(), "Complete") == "True"; }

  [[nodiscard]] RetryCredits credits() const {
    const auto text = sim::text(job(), {"metadata", "annotations", kRetryCreditsAnnotation});
    return text.empty() ? RetryCredits{} : parse_retry_credits(text).value();
  }

  /// Breaks the device of the Job's first pod that is on a healthy one, and names the pod; empty if there is none.
  std::string break_device() {
    for (const auto& name : live("train-")) {
      const auto device = plugin_device(name);
      if (device.empty() || health(name) != "Healthy") continue;
      cluster.set_device_health(sim::text(pod(name), {"spec", "nodeName"}), device, "Unhealthy");
      return name;
    }
    return {};
  }

  /// The patches of the Job that the server accepted.
  [[nodiscard]] std::size_t job_writes() const {
    std::size_t count = 0;
    for (const auto& write : cluster.writes()) count += write.target.find("/jobs/train") != std::string::npos ? 1U : 0U;
    return count;
  }

  [[nodiscard]] bool says(const std::string& name, const std::string& reason) const {
    for (const auto& word : reasons(name)) {
      if (word == reason) return true;
    }
    return false;
  }

  std::int64_t first_limit;
  int pods_wanted = 0;
};

inline sim::JobShape job_shape(int backoff_limit, int parallelism = 1) {
  sim::JobShape shape;
  shape.backoff_limit = backoff_limit;
  shape.parallelism = parallelism;
  shape.completions = parallelism;
  return shape;
}

}  // namespace dhc::test
