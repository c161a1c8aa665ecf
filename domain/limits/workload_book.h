#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/now.h"
#include "domain/contract/device_key.h"

namespace dhc {

/// Which physical devices went out of service on our account while a workload's pods held them, within the last day: a
/// program that breaks each device it is given walks through a cluster no further than `caps.ownerDevicesPerDay`. Part
/// of the CapBook and written down with it.
class WorkloadBook {
 public:
  /// How long a device counts.
  static constexpr Millis kDay = std::chrono::hours(24);
  /// How many devices are remembered in all: the caps allow no more in a day, but of fleets of tens of thousands.
  static constexpr std::size_t kMost = 1000;
  using Devices = std::map<DeviceKey, WallTime>;  ///< Cards, and when each last went.

  /// By `workload_of`.
  [[nodiscard]] const std::map<std::string, Devices>& lost() const { return lost_; }

  void note(const std::string& workload, const DeviceKey& card, WallTime at);

  /// Whether a card of the same place, a node or pool, has gone from the workload.
  [[nodiscard]] bool has_any_beside(const std::string& workload, const DeviceKey& card) const;

  /// Forgets what is a day old; a time ahead of the clock counts as now. True if something is to be written: what is
  /// too old by now need not be.
  [[nodiscard]] bool settle(const Now& now);

  /// An operator has released the cluster's caps: what went before then counts no more. True if there was any.
  [[nodiscard]] bool release(WallTime until);

  friend bool operator==(const WorkloadBook& a, const WorkloadBook& b) { return a.lost_ == b.lost_; }

 private:
  void count();
  void drop_oldest();

  std::map<std::string, Devices> lost_;
  std::size_t size_ = 0;                  // devices of all workloads
  WallTime first_at_ = WallTime::max();   // none of them went before,
  WallTime latest_at_ = WallTime::min();  // nor after
};

/// What counts against `caps.ownerDevicesPerDay` in one turn: the book's devices, and those that are to go.
class WorkloadTally {
 public:
  /// The book must outlive it.
  explicit WorkloadTally(const WorkloadBook& book) : book_(&book) {}

  void take(const std::string& workload, const DeviceKey& card, WallTime at);
  [[nodiscard]] bool has(const std::string& workload, const DeviceKey& card) const;
  /// How many of a driver or resource.
  [[nodiscard]] std::size_t count(const std::string& workload, const std::string& scope) const;
  /// When the first of them counts no more; none: there is none.
  [[nodiscard]] std::optional<WallTime> room_at(const std::string& workload, const std::string& scope) const;

 private:
  template <class Look>
  void for_each(const std::string& workload, const std::string& scope, const Look& look) const;

  const WorkloadBook* book_;
  std::map<std::string, WorkloadBook::Devices> more_;  // by workload; of what the book has too the later time
};

}  // namespace dhc
