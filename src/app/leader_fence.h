#pragma once
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "base/error.h"
#include "k8s-client/boot_clock.h"
#include "k8s-client/protocol/lease_machine.h"
#include "k8s-client/protocol/request.h"

namespace dhc {

/// Stands before every request that changes the cluster: lets none through that is not covered by our Lease at the
/// moment of sending, whatever the threads that decided on it believed, and sees that each is over in time
/// (invariant I5). Thread-safe.
class LeaderFence {
 public:
  /// `clock` is that of the terms; one that goes on while the machine sleeps.
  explicit LeaderFence(std::function<MonoTime()> clock = k8s::boot_now) : clock_(std::move(clock)) {}

  /// From now on this term holds; none: closed. It closes by itself when the term ends.
  void set(std::optional<k8s::LeaseTerm> term);

  /// Cancelled: nothing may be begun now. Else the request must be over when the term is, whenever it
  /// comes to be sent.
  [[nodiscard]] Status admit(k8s::Request& request) const;

 private:
  const std::function<MonoTime()> clock_;
  mutable std::mutex mutex_;
  std::optional<k8s::LeaseTerm> term_;
};

}  // namespace dhc
