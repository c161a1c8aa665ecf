#pragma once
#include <functional>
#include <mutex>
#include <optional>

#include "app/log.h"
#include "app/metrics.h"
#include "app/status_store.h"
#include "base/now.h"
#include "k8s-client/protocol/request.h"
#include "k8s-client/protocol/server_clock.h"

namespace dhc {

/// Takes the Date of the API server's answers to everybody who must know how far its clock is from ours. Thread-safe.
class ClockDesk {
 public:
  /// Called with what is to be taken into account, when that has changed; must not wait. False: not now, tell it again
  /// with the next answer.
  using Tell = std::function<bool(Millis)>;

  ClockDesk(Tell tell, StatusStore& status_store, Metrics& metrics, Log& log);

  /// An answer, and when its request began.
  void answered(const k8s::Response& answer, const Now& sent);

 private:
  const Tell tell_;
  StatusStore& status_store_;
  Metrics& metrics_;
  Log& log_;
  std::mutex mutex_;
  k8s::ServerClock clock_;        // under mutex_
  bool is_much_ = false;          // under mutex_: the last that was said
  std::optional<Millis> offset_;  // under mutex_: of our wall clock to the steady one when we last told
};

}  // namespace dhc
