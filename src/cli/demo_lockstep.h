#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "app/controller.h"
#include "base/now.h"
#include "k8s-client/client.h"
#include "simulator/script/cluster.h"

namespace dhc::cli {

/// The simulated cluster's clock, which only the demo turns. Thread-safe.
class DemoClock {
 public:
  explicit DemoClock(const Now& now) : now_(now) {}
  [[nodiscard]] Now operator()() const {
    const std::lock_guard lock(mutex_);
    return now_;
  }
  void set(const Now& now) {
    const std::lock_guard lock(mutex_);
    now_ = now;
  }

 private:
  mutable std::mutex mutex_;
  Now now_;
};

/// Where the demo plays: a cluster, how to look at it alone, and a client that sends it requests. `clock` is the
/// cluster's and outlives this.
struct DemoPlace {
  using Work = std::function<void(sim::Cluster&)>;
  std::function<void(const Work&)> with_cluster;
  k8s::Client client;
  DemoClock& clock;
};

/// What a moment brought.
struct DemoMoment {
  std::vector<Outcome> outcomes;  ///< In the order in which they were carried out.
  std::vector<Verdict> begun;
  std::vector<Verdict> ended;
};

/// The controller and a simulated cluster in step: in each moment both act until neither has anything to do. It is the
/// code that runs in a cluster (decoders, controller, the requests of each action), told the cluster's time. One
/// thread.
class Lockstep {
 public:
  Lockstep(DemoPlace place, Policy policy);
  ~Lockstep();
  Lockstep(const Lockstep&) = delete;
  Lockstep& operator=(const Lockstep&) = delete;

  /// Everything that is due happens. Throws std::runtime_error if that comes to no rest.
  [[nodiscard]] DemoMoment settle();

  /// When something happens next by time alone.
  [[nodiscard]] std::optional<MonoTime> next_moment() const;

  [[nodiscard]] const std::vector<Verdict>& verdicts() const { return controller_.verdicts(); }

  /// What the live page shows of the last moment.
  [[nodiscard]] Overview overview() const { return controller_.overview(place_.clock()); }

 private:
  struct Watch;
  [[nodiscard]] bool pump(Watch& watch, const Now& now);
  [[nodiscard]] bool listen(Watch& watch, const Now& now);
  [[nodiscard]] bool request(Watch& watch, const Now& now);
  void deliver(std::vector<k8s::Delivery> deliveries);
  void doubt(const Now& now);

  DemoPlace place_;
  Controller controller_;
  std::vector<std::unique_ptr<Watch>> watches_;
  std::vector<Message> inbox_;
  std::optional<MonoTime> wake_at_;
};

}  // namespace dhc::cli
