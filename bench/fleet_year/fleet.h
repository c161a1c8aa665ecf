#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bench/fleet_year/demand.h"
#include "bench/fleet_year/dice.h"
#include "bench/fleet_year/faults.h"
#include "bench/fleet_year/ledger.h"
#include "simulator/script/cluster.h"

namespace dhc::year {

inline constexpr std::string_view kDriver = "gpu.example.com";

/// What is counted besides time; by cause where there are two.
struct Counts {
  std::array<int, kCauses> faults = {};
  std::array<int, kCauses> killed = {};     ///< Running pods that were made to go.
  std::array<int, kCauses> innocents = {};  ///< Those among them on good devices alone.
  int wrong = 0;                            ///< Those among them on a node without any bad device.
  int retries = 0;                          ///< Of Jobs, that were taken and not given back.
  int jobs_lost = 0;
  int jobs_done = 0;
  int repeats = 0;  ///< Pods that were given a device that was bad, and known to be.
};

/// How a fleet is built and what is assumed of it.
struct FleetShape {
  int nodes = 400;
  int devices = 8;                                ///< Of a server.
  Millis start = std::chrono::minutes(5);         ///< From a pod's admission to its work: image, model, checkpoint.
  Millis checkpoint = std::chrono::hours(1);      ///< How often a Job saves its work.
  std::array<int, 3> backoff_limits = {0, 3, 6};  ///< Of one Job in three each.
  bool driver_taints = false;                     ///< The driver taints a bad device in its slice as well.
  bool server_boots = false;                      ///< A server that failed as a whole boots anew at its repair.
};

/// A simulated cluster full of work, whose devices break and are repaired, with an account of each device's time. It
/// sees what is stored, as everybody does, and the truth about the hardware, which no contender does.
class Fleet {
 public:
  Fleet(const FleetShape& shape, const Demand& demand, std::uint64_t seed);

  /// The hardware breaks, or is repaired; returns the devices whose health is another now.
  std::vector<std::size_t> begin(const Fault& fault);
  std::vector<std::size_t> end(const Fault& fault);

  /// Books what has been stored since the last call, starts the next Job where one has ended, cleans up. True: it
  /// wrote.
  bool observe();
  [[nodiscard]] std::optional<MonoTime> next_due() const;

  /// Ends the account.
  void close() { ledger_.close(now.mono); }

  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] const Counts& counts() const { return counts_; }
  [[nodiscard]] const FleetShape& shape() const { return shape_; }
  [[nodiscard]] std::string node_of(std::size_t device) const;
  [[nodiscard]] std::string name_of(std::size_t device) const;
  [[nodiscard]] bool is_bad(std::size_t device) const { return devices_[device].faults > 0; }
  /// The pod that holds the device, as `namespace/name`; empty: none.
  [[nodiscard]] std::string holder_of(std::size_t device) const;

  Now now;
  sim::Cluster cluster;

 private:
  struct Device {
    int faults = 0;                 // that make it bad now
    std::set<std::string> holders;  // pods by UID
    bool known = false;             // somebody held it while it was bad
    bool slice_taint = false;
    std::set<std::string> rules;
  };
  struct Node {
    bool closed = false;
    int server_faults = 0;
    Cause cause = Cause::Device;
  };
  struct Pod {
    sim::Name name;
    int slot = -1;
    std::set<std::size_t> devices;
    bool running = false;
    bool leaving = false;
    bool paused = false;
    std::optional<MonoTime> works_since;
    Millis worked{0};
  };
  struct Claim {
    std::set<std::size_t> devices;
    std::set<std::string> pods;
  };
  struct Slot {
    JobSlot what;
    std::string job;
    int number = 0;
    Millis length{0};
    Millis done{0};  // and saved
    Cause last_loss = Cause::Device;
    std::int64_t failed = 0;
    std::int64_t limit = 0;
  };

  void next_job(std::size_t slot, double left);
  void job_changed(const sim::Change& change);
  void end_job(std::size_t slot, bool lost);
  void pod_changed(const sim::Change& change);
  void kill(Pod& pod);
  void claim_changed(const sim::Change& change);
  void rule_changed(const sim::Change& change);
  void slice_changed(const sim::Change& change);
  void node_changed(const sim::Change& change);
  void give(std::size_t device, const std::string& uid);
  void take(std::size_t device, const std::string& uid);
  void update(Pod& pod);
  void update(std::size_t device);
  void update_around(std::size_t device);
  void pace(Pod& pod);
  [[nodiscard]] bool is_stuck(const Pod& pod) const;
  [[nodiscard]] std::optional<std::size_t> device_at(const std::string& node, const std::string& name) const;
  [[nodiscard]] Cause cause_at(std::size_t device) const;
  void set_health(std::size_t device, bool bad, const std::string& what);

  FleetShape shape_;
  Dice dice_;
  Ledger ledger_;
  Counts counts_;
  std::vector<Device> devices_;
  std::vector<Node> nodes_;
  std::map<std::string, int> node_numbers_;
  std::map<std::string, Pod> pods_;  // by UID
  std::map<sim::Name, Claim> claims_;
  std::map<std::string, std::size_t> rules_;  // device by rule
  std::vector<Slot> slots_;
  std::map<std::string, std::size_t> slot_of_;     // by the Job's name
  std::multimap<MonoTime, std::string> old_jobs_;  // to be deleted
  std::map<sim::Res, std::uint64_t> seen_;
};

}  // namespace dhc::year
