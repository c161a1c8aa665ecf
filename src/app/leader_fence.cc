#include "app/leader_fence.h"

#include <algorithm>

namespace dhc {

void LeaderFence::set(std::optional<k8s::LeaseTerm> term) {
  const std::lock_guard lock(mutex_);
  term_ = term;
}

Status LeaderFence::admit(k8s::Request& request) const {
  const std::lock_guard lock(mutex_);
  // Read under the lock: a process that was stopped here for longer than its term must see the time after it.
  const auto now = clock_();
  if (!term_ || now >= term_->begin_until) return fail(ErrorKind::Cancelled, "not sent: we do not lead");
  const Millis left = term_->end_by - now;
  request.timeouts.total = request.timeouts.total ? std::min(*request.timeouts.total, left) : left;
  // A moment, not a duration: this process may be frozen before it is sent.
  request.timeouts.end_by = term_->end_by;
  return {};
}

}  // namespace dhc
