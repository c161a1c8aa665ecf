#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "app/access_review.h"
#include "app/log.h"
#include "k8s-client/client.h"

namespace dhc {

/// Asks the server beside everything else whether we may do what is needed: at once what these settings need, and then
/// what each configuration asks for beyond that. Only people need to know: one line in the log for each right that is
/// missing, and nobody waits for it.
class AccessDesk {
 public:
  /// Both references must outlive it.
  AccessDesk(const k8s::Client& client, Mode mode, std::vector<NeededVerb> needed, Log& log);

  /// A configuration has come into force. Does not wait; what was not yet looked at is forgotten for it. Any thread.
  void look_at(std::shared_ptr<const Policy> policy);

 private:
  void run(const std::stop_token& stop, Mode mode, const std::vector<NeededVerb>& needed);
  [[nodiscard]] std::vector<NeededVerb> verbs_of(const Policy& policy, const std::stop_token& stop);

  const k8s::Client& client_;
  Log& log_;
  std::mutex mutex_;
  std::condition_variable_any news_;
  std::shared_ptr<const Policy> next_;  // under mutex_
  std::jthread asking_;                 // last: it uses the others
};

}  // namespace dhc
