#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "domain/cluster/focus.h"
#include "domain/contract/verdict.h"

namespace dhc {

/// What an enforcing policy would do besides evicting; pods that it would evict are `Predictions`.
enum class Deed : std::uint8_t {
  Taint,     ///< A device would be tainted, by a rule or on its node.
  Credit,    ///< A Job would get a retry back for a pod.
  HandOver,  ///< A device's node would be handed over.
};
inline constexpr std::array<Deed, 3> kDeeds = {Deed::Taint, Deed::Credit, Deed::HandOver};

/// What a verdict about a device foretells, if it does; of hand-over its plan says more.
[[nodiscard]] std::optional<Deed> deed_of(Reason reason);

/// How often, by deed and policy.
using DeedCounts = std::map<std::pair<Deed, std::string>, std::int64_t>;

/// Counts what would have been done: for each device (and pod, where one is concerned) and policy once while the device
/// is bad.
class Forecasts {
 public:
  /// So many devices are remembered, and so many counts kept by policy; the rest is counted without one, and may count
  /// twice.
  static constexpr std::size_t kMostDevices = 10'000;
  static constexpr std::size_t kMostCounts = 1'500;

  /// It would be done for this device; `uid` is the subject's. `is_new`: not what whoever led before has counted.
  void foretell(Deed deed, const DeviceKey& key, const std::string& policy, const std::string& uid, bool is_new);
  /// Forgets those in focus that are bad no more.
  void look(const Focus& focus, const std::function<bool(const DeviceKey&)>& is_bad);
  /// Forgets all, and keeps what was counted.
  void clear() { known_.clear(); }

  [[nodiscard]] const DeedCounts& counts() const { return counts_; }

 private:
  using Forecast = std::tuple<Deed, std::string, std::string>;  // policy, and the subject's UID
  void count(Deed deed, const std::string& policy, bool is_new);

  std::map<DeviceKey, std::set<Forecast>> known_;
  DeedCounts counts_;
};

}  // namespace dhc
