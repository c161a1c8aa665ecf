#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "domain/cluster/focus.h"
#include "domain/cluster/world.h"

namespace dhc {

/// What became of a pod that would have been evicted.
enum class PredictionEnd : std::uint8_t {
  Recovered,  ///< The incident of its device is over, and the pod still there.
  Failed,     ///< The pod has failed.
  Succeeded,  ///< The pod has ended well.
  Deleted,    ///< Somebody has deleted or evicted it.
  Evicted,    ///< We have: the policy enforces now.
};
inline constexpr std::array<PredictionEnd, 5> kPredictionEnds = {PredictionEnd::Recovered, PredictionEnd::Failed,
                                                                 PredictionEnd::Succeeded, PredictionEnd::Deleted,
                                                                 PredictionEnd::Evicted};

/// The label of metrics: `recovered`, ...
[[nodiscard]] std::string_view to_string(PredictionEnd end);

/// How many pods, by policy.
using CountByPolicy = std::map<std::string, std::int64_t>;
/// By policy and what became of them.
using PredictionEnds = std::map<std::pair<std::string, PredictionEnd>, std::int64_t>;

/// Pods that would have been evicted, and what became of them.
class Predictions {
 public:
  /// So many pods are followed, and so many policies counted by name; the rest is counted without one.
  static constexpr std::size_t kMostPods = 10'000;
  static constexpr std::size_t kMostPolicies = 500;

  /// The pod would be evicted for this device. `is_new`: not one that whoever led before has counted.
  void foretell(const std::string& uid, const std::string& policy, const DeviceKey& key, bool is_new);
  /// Looks what has become of those in focus; `is_bad` says whether a device is bad still.
  void look(const World& world, const Focus& focus, const std::function<bool(const DeviceKey&)>& is_bad);
  /// We have evicted the pod.
  void evicted(const std::string& uid);
  /// Follows none any more.
  void clear() {
    open_.clear();
    pods_of_.clear();
  }

  [[nodiscard]] const CountByPolicy& foretold() const { return foretold_; }
  [[nodiscard]] const PredictionEnds& ends() const { return ends_; }

 private:
  struct Open {
    std::string policy;
    DeviceKey key;
  };
  [[nodiscard]] std::string label_of(const std::string& policy) const;
  void end(std::map<std::string, Open, std::less<>>::iterator open, PredictionEnd how);

  std::map<std::string, Open, std::less<>> open_;  // by pod UID
  /// Their UIDs. A member of a gang goes for a device that another holds.
  std::map<DeviceKey, std::set<std::string>> pods_of_;
  CountByPolicy foretold_;
  PredictionEnds ends_;
};

}  // namespace dhc
