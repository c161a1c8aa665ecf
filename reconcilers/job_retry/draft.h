#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/job_retry/action.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc::job_retry {

/// One Job's record while a plan works on it.
class Draft {
 public:
  explicit Draft(const JobRecord& record)
      : record_(record), credits_(record.credits), losses_(record.losses), limit_(record.job.backoff_limit) {}

  [[nodiscard]] const JobRecord& record() const { return record_; }
  [[nodiscard]] RetryCredits& credits() { return credits_; }
  /// Whether one more credit fits: an unspent one, or room up to `most`.
  [[nodiscard]] bool has_room(std::int64_t most) const;

  /// Gives this pod's retry back: an unspent credit moves to it, or the limit rises by one.
  void credit(const k8s::Pod& pod, const std::string& device, RetryCredit::State state, WallTime at);

  /// Lowers the limit by the unspent credits.
  void take_back();

  /// Takes out what would change the limit; what else is noted stays.
  void leave_limit();

  /// Notes what happened to a pod, once; that the Job died of it, in the place of that the pod did. Of too many losses
  /// the newest are kept.
  void lose(std::string_view what, const k8s::Pod& pod, const std::string& device, WallTime at);

  /// The patch that makes the Job say all this; none if it does already. `by_test` is not heeded where only the version
  /// shows that the Job has counted no failure since: where the limit falls, or a credit becomes unspent.
  [[nodiscard]] std::optional<PatchJob> patch(bool by_test) const;

 private:
  [[nodiscard]] bool rests_on_version() const;

  const JobRecord& record_;
  RetryCredits credits_;
  std::vector<JobLoss> losses_;
  std::int64_t limit_;
  std::string device_;
};

}  // namespace dhc::job_retry
