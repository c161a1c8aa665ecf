#pragma once
#include <cstdint>
#include <optional>

#include "base/error.h"
#include "domain/cluster/fresh_read.h"
#include "k8s-client/model/pod.h"
#include "k8s-client/model/resource_claim.h"
#include "k8s-client/protocol/request.h"
#include "reconcilers/eviction/signal.h"

namespace dhc::eviction {

/// One attempt to evict a pod, as the requests that it takes, one after the other: what the eviction rests on is read
/// afresh by quorum, then it is asked for once, and after an answer that leaves it in doubt the pod is read again. A
/// bookmark proves that a watch is alive, not that its data is true, so the reads are never skipped.
///
/// What it comes to: done (accepted, or the pod is seen terminating or gone after it), NotFound (gone before it),
/// Outdated or Unread (nothing was sent), Declined (refused: the pod stands), Doubtful, Unavailable or TimedOut (it may
/// have happened), or the kind of the server's own refusal.
class Exchange {
 public:
  explicit Exchange(EvictPod action);

  /// The next request; none when the attempt is over.
  [[nodiscard]] std::optional<k8s::Request> next();

  /// The answer to the last request.
  void take(const Result<k8s::Response>& answer);

  /// What it came to, once it is over.
  [[nodiscard]] const Status& outcome() const { return outcome_; }

  /// What its reads have shown so far.
  [[nodiscard]] const FreshReads& reads() const { return reads_; }

 private:
  enum class Step : std::uint8_t { ReadPod, ReadReporter, ReadClaim, ReadSlice, ReadJob, Evict, LookAgain, Over };

  [[nodiscard]] Result<k8s::Request> request() const;
  void end(Status outcome);
  void read_claim_or_go_on();
  void read_job_if_signal_stands();
  void take_pod(const Result<k8s::Response>& answer);
  void take_reporter(const Result<k8s::Response>& answer);
  void take_claim(const Result<k8s::Response>& answer);
  void take_slice(const Result<k8s::Response>& answer);
  void take_job(const Result<k8s::Response>& answer);
  void take_eviction(const Result<k8s::Response>& answer);
  void take_look(const Result<k8s::Response>& answer);
  void note_pod(const Result<k8s::Pod>& pod);

  const EvictPod action_;
  Step step_ = Step::ReadPod;
  JudgedObjects fresh_;
  Error doubt_;  ///< The answer to the eviction, when the pod is looked at again.
  FreshReads reads_;
  Status outcome_;
};

}  // namespace dhc::eviction
