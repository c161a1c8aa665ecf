#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "k8s-client/model/meta.h"
#include "k8s-client/model/pod.h"

namespace dhc::k8s {

/// One rule of a podFailurePolicy; the first that matches a failed pod decides. **Source:** KEP-3329.
struct JobFailureRule {
  enum class Action : std::uint8_t { Count, Ignore, FailJob, FailIndex };
  struct PodCondition {
    std::string type;
    std::string status = "True";  ///< The API's default.
    friend bool operator==(const PodCondition&, const PodCondition&) = default;
  };
  struct ExitCodes {
    std::string container;  ///< Empty: any.
    bool in = true;         ///< Operator In, else NotIn.
    std::vector<std::int64_t> values;
    friend bool operator==(const ExitCodes&, const ExitCodes&) = default;
  };
  Action action = Action::Count;  ///< A word that we do not know counts as Count.
  std::vector<PodCondition> on_pod_conditions;
  std::optional<ExitCodes> on_exit_codes;
  friend bool operator==(const JobFailureRule&, const JobFailureRule&) = default;
};

/// The part of Job that we read. Of a finished Job only `meta`, `conditions` and `managed_by` are kept: a cluster has
/// thousands of them.
struct Job {
  Meta meta;  ///< Of the labels only Kueue's and our own.
  // spec
  std::int64_t backoff_limit = 6;  ///< **Source:** batch/v1 default; 2147483647 with backoffLimitPerIndex.
  std::optional<std::int64_t> backoff_limit_per_index;
  std::optional<std::int64_t> max_failed_indexes;
  std::optional<std::int64_t> completions;
  std::int64_t parallelism = 1;
  bool indexed = false;
  bool suspended = false;
  bool manual_selector = false;
  bool replaces_when_failed = false;  ///< podReplacementPolicy Failed.
  bool restarts_on_failure = false;   ///< restartPolicy OnFailure: containers restart without a pod that fails.
  std::string managed_by;             ///< Empty: the Job controller.
  std::vector<JobFailureRule> failure_rules;
  // status
  std::int64_t failed = 0;
  std::int64_t succeeded = 0;
  std::int64_t active = 0;
  std::int64_t terminating = 0;
  std::int64_t uncounted = 0;  ///< Pods in `status.uncountedTerminatedPods`.
  std::string failed_indexes;
  std::vector<Condition> conditions;  ///< Of type Complete, Failed, FailureTarget, SuccessCriteriaMet, Suspended.
  friend bool operator==(const Job&, const Job&) = default;
};

/// The controller that works on a Job which names none. **Source:** batch/v1 JobControllerName.
inline constexpr std::string_view kJobController = "kubernetes.io/job-controller";

/// True once the Job is Complete or Failed: nothing about it changes any more.
[[nodiscard]] bool is_finished(const Job& job);

/// True from the moment at which the Job controller has decided how it ends. **Source:** KEP-3998, KEP-4368.
[[nodiscard]] bool is_ending(const Job& job);

/// The True condition of type Failed or FailureTarget, or null.
[[nodiscard]] const Condition* failure_of(const Job& job);

/// How a pod ended, or might end, as a podFailurePolicy sees it.
struct PodEnd {
  SharedList<Condition> conditions;
  std::vector<ContainerExit> exits;  ///< Codes that are not 0; an entry without a name stands for any container.
};

/// The action of the first rule that matches; none if no rule does, which counts the pod. **Source:** KEP-3329.
[[nodiscard]] std::optional<JobFailureRule::Action> action_for(const Job& job, const PodEnd& end);

}  // namespace dhc::k8s
