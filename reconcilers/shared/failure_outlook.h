#pragma once
#include <cstdint>
#include <vector>

#include "k8s-client/model/job.h"
#include "k8s-client/model/pod.h"

namespace dhc {

/// Whether the loss of a pod counts against its Job.
enum class Counts : std::uint8_t { Never, Maybe, EndsTheJob };

/// What a podFailurePolicy makes of a pod that may end in one way or another.
struct Outlook {
  Counts counts = Counts::Never;
  std::vector<std::int64_t> ending_codes;  ///< Exit codes of a program's own that would end the Job, or the index.
};

/// What its podFailurePolicy makes of a pod that ends in one of these ways.
[[nodiscard]] Counts counts(const k8s::Job& job, const std::vector<k8s::PodEnd>& ends);

/// What the eviction of the pod costs its Job, with our condition on it or without. An exit code that the program
/// chooses for itself cannot make the loss one that ends the Job, which would hold a pod for what it will hardly do;
/// but it can make it one that may count. **Source:** KEP-3329: the first rule that matches decides.
[[nodiscard]] Outlook outlook_of_eviction(const k8s::Job& job, const k8s::Pod& pod, bool with_our_condition);

/// What it makes of a pod of the Job that was lost. Of one that was not seen to end, with the conditions that it had
/// then, any exit code is possible, and none.
[[nodiscard]] Counts outlook_of_loss(const k8s::Job& job, const k8s::PodEnd& end, bool was_seen);

/// What it makes of a program that ends by itself with any code but 0, uninvited, with our condition on the pod or
/// without.
[[nodiscard]] Counts outlook_of_exit(const k8s::Job& job, const k8s::Pod& pod, bool with_our_condition);

}  // namespace dhc
