#pragma once
#include <cstdint>
#include <vector>

#include "cli/demo_acts.h"
#include "cli/demo_ledger.h"
#include "cli/demo_lines.h"
#include "cli/demo_lockstep.h"

namespace dhc::cli {

/// When each act begins, by its cluster's clock.
[[nodiscard]] Now demo_beginning();

/// One act from its beginning to its end, moment by moment; may be left after each. Same act, same seed, same lines.
class DemoPlay {
 public:
  /// Makes the cluster's nodes and workloads, and lets them start. `place`'s clock stands at `demo_beginning()`.
  DemoPlay(const DemoAct& act, std::uint64_t seed, DemoPlace place, Policy policy);

  /// Plays the next moment and gives what there is to tell of it, often nothing.
  [[nodiscard]] std::vector<DemoLine> next();

  [[nodiscard]] bool is_over() const { return place_.clock().mono >= end_; }

  /// Right after each moment.
  [[nodiscard]] DemoSum sum() const { return ledger_.sum(lockstep_.verdicts()); }

  [[nodiscard]] const std::vector<Verdict>& verdicts() const { return lockstep_.verdicts(); }

  /// What the live page shows, and when, by the cluster's clock.
  [[nodiscard]] Overview overview() const { return lockstep_.overview(); }
  [[nodiscard]] Now now() const { return place_.clock(); }

 private:
  void warm_up();
  void pass_to(MonoTime mono);
  [[nodiscard]] MonoTime next_moment() const;
  [[nodiscard]] std::vector<DemoLine> settle();

  const DemoAct& act_;
  DemoPlace place_;
  Lockstep lockstep_;
  DemoScene scene_;
  DemoLedger ledger_;
  MonoTime begun_;
  MonoTime end_;
  std::size_t steps_done_ = 0;
};

}  // namespace dhc::cli
