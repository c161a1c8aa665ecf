#pragma once
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cli/demo_acts.h"
#include "domain/contract/verdict.h"

namespace dhc::cli {

/// What became of everything that failed: the sum of an act or of several.
struct DemoSum {
  std::size_t broke = 0;     ///< Faults of devices in use; what was just broken is not reported yet.
  std::size_t reported = 0;  ///< Pods that were reported on a bad device: as many as the next four together.
  std::size_t replaced = 0;  ///< Evicted, and their replacement runs on another device.
  std::size_t leaving = 0;   ///< Evicted, and their replacement does not run yet.
  std::size_t well = 0;      ///< Not evicted: their device is healthy again, or they ended by themselves.
  std::size_t kept = 0;      ///< Not evicted, for a reason that the controller gives.
  std::size_t taints = 0;    ///< Rules that were created,
  std::size_t untaints = 0;  ///< and those of them that are gone.
  std::size_t credits = 0;
  std::vector<std::string> reasons;  ///< Of `kept`, a line each.
  std::vector<std::string> wrong;    ///< What must not be, a line each.

  void add(const DemoSum& other);
  /// For people, with line ends.
  [[nodiscard]] std::string text() const;
};

/// A replacement that runs.
struct DemoReplaced {
  std::string pod;
  DemoDevice on;
};

/// Keeps account of an act by what the simulated API server shows, not by what the controller says of itself: a pod
/// counts from the moment at which its own status reports a bad device. Right at every moment.
class DemoLedger {
 public:
  void befell(const DemoEvent& event);

  /// After each moment; gives the replacements that run since.
  [[nodiscard]] std::vector<DemoReplaced> look(const sim::Cluster& cluster);

  /// `verdicts` are those held now.
  [[nodiscard]] DemoSum sum(std::span<const Verdict> verdicts) const;

 private:
  struct Pod {
    std::string name;
    std::string owner;  ///< Its controller's UID.
    bool runs = false;
    bool is_leaving = false;
    std::set<DemoDevice> devices;
    std::set<DemoDevice> bad;  ///< Of those, as its status reports them now.
  };
  struct Evicted {
    std::string uid;
    Pod pod;
    std::set<std::string> before;  ///< The pods, by UID, that there were already.
    std::string replacement;       ///< By UID; empty: none runs.
    bool is_on_broken_device = false;
  };
  [[nodiscard]] static Pod pod_of(const sim::Cluster& cluster, const sim::Json& pod);
  void count_evictions(const sim::Cluster& cluster);
  void count_writes(const sim::Cluster& cluster);
  [[nodiscard]] std::vector<DemoReplaced> match_replacements();

  std::map<std::string, Pod> pods_;      ///< By UID, as they were last seen.
  std::map<std::string, Pod> reported_;  ///< Those that were ever reported on a bad device.
  std::vector<Evicted> evicted_;
  std::set<std::string> replacements_;
  std::set<DemoDevice> broken_;
  std::size_t broke_ = 0;
  std::set<std::string> rules_;
  std::size_t taints_ = 0;
  std::size_t untaints_ = 0;
  std::map<std::string, std::int64_t> limits_;  ///< Of Jobs, by UID.
  std::size_t credits_ = 0;
};

}  // namespace dhc::cli
