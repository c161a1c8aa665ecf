#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "app/health_report.h"
#include "app/leader_fence.h"
#include "app/log.h"
#include "k8s-client/client.h"
#include "k8s-client/protocol/lease_machine.h"

namespace dhc {

/// Which Lease, and as whom.
struct ElectionSettings {
  k8s::LeaseSubject subject;
  std::string identity;  ///< Another one in each process.
};

/// Takes part in an election on a thread of its own: does what LeaseMachine says, sends, waits. It decides nothing.
class Elector {
 public:
  /// Told on the elector's thread whenever something has changed.
  using Show = std::function<void(const ElectionFact&)>;
  /// Told on the elector's thread of each answer, and when its request began. May be empty.
  using Answered = std::function<void(const k8s::Response&, const Now& sent)>;

  /// Starts at once. `client`, `fence` and `log` outlive this. The fence is open before `show` says that we lead, and
  /// closed before it says that we do not.
  Elector(ElectionSettings settings, const k8s::Client& client, LeaderFence& fence, Show show, Log& log,
          Answered answered = {});

  /// Stops taking part, without a release: others wait until our time is over.
  ~Elector() = default;
  Elector(const Elector&) = delete;
  Elector& operator=(const Elector&) = delete;

  /// Something that a watch of the Lease delivered. Any thread.
  void observed(k8s::Delivery delivery);

  /// Whether what we would act on can no longer be believed. Any thread.
  void blind(bool is_blind);

  /// Closes the fence and gives the Lease back, if it is ours; tries for so long. Call it once, when no request of ours
  /// is under way any more.
  void release(Millis patience);

 private:
  void run(const std::stop_token& stop);
  void take_hints();
  void publish();
  void pause(MonoTime until, const std::stop_token& stop);
  void tell(const ElectionFact& fact);

  const k8s::Client& client_;
  LeaderFence& fence_;
  const Show show_;
  const Answered answered_;
  Log& log_;
  k8s::LeaseMachine machine_;
  ElectionFact shown_;
  bool has_shown_ = false;
  std::mt19937 random_;

  std::mutex mutex_;
  std::condition_variable_any bell_;
  std::vector<k8s::Delivery> hints_;  // under mutex_
  bool is_blind_ = false;             // under mutex_
  bool blind_is_news_ = false;        // under mutex_

  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace dhc
