#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/now.h"
#include "domain/contract/device_key.h"

namespace dhc {

/// What counts of one driver or resource against the caps: physical devices, nodes and evictions. Each may be counted
/// for several reasons, and counts as long as one of them stands.
class CapCount {
 public:
  /// Against which caps something counts.
  struct Against {
    bool node = false;
    bool cluster = false;
  };

  void count(const std::string& node, const DeviceKey& card, Against against);
  void uncount(const std::string& node, const DeviceKey& card, Against against);
  void count_node(const std::string& node) { ++whole_nodes_[node]; }
  void uncount_node(const std::string& node);
  void count_evictions(std::int64_t pods) { evictions_ += pods; }
  void count_evictions(std::int64_t pods, WallTime at);

  /// Against which caps the device counts.
  [[nodiscard]] Against against(const std::string& node, const DeviceKey& card) const;
  /// How many devices on the node count against `caps.node`,
  [[nodiscard]] std::int64_t on_node(const std::string& node) const;
  /// against `caps.cluster`,
  [[nodiscard]] std::int64_t in_cluster(const std::string& node) const;
  /// and on all nodes.
  [[nodiscard]] std::int64_t in_cluster() const { return in_cluster_; }
  /// Nodes all of whose devices count, whatever is known of each.
  [[nodiscard]] const std::map<std::string, int>& whole_nodes() const { return whole_nodes_; }
  [[nodiscard]] std::int64_t evictions() const { return evictions_; }
  [[nodiscard]] const std::optional<WallTime>& first_eviction() const { return first_eviction_; }

 private:
  /// For how many reasons.
  struct Reasons {
    int node = 0;
    int cluster = 0;
  };
  struct OnNode {
    std::map<DeviceKey, Reasons> cards;
    std::int64_t on_node = 0;     // of them, against caps.node
    std::int64_t in_cluster = 0;  // and against caps.cluster
  };

  std::map<std::string, OnNode> nodes_;
  std::int64_t in_cluster_ = 0;  // of all nodes
  std::map<std::string, int> whole_nodes_;
  std::int64_t evictions_ = 0;
  std::optional<WallTime> first_eviction_;  // when the oldest of them was
};

/// By driver or resource.
using CapCounts = std::map<std::string, CapCount>;

}  // namespace dhc
