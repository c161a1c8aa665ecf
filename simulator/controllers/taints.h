#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "simulator/api/store.h"
#include "simulator/controllers/machine.h"

namespace dhc::sim {

/// The taints on devices, from slices and from rules, found quickly.
class DeviceTaints {
 public:
  /// Looks at what has changed. Without `honour_rules` only the slices count, as on a server without DeviceTaintRules.
  void refresh(const Store& store, bool honour_rules);

  [[nodiscard]] std::vector<DeviceTaint> of(const std::string& driver, const std::string& pool,
                                            const std::string& device) const;

  /// The devices (`driver/pool/device`) with a taint NoExecute that names them.
  [[nodiscard]] const std::set<std::string>& executing() const { return executing_; }
  /// True if a rule with NoExecute names no single device: any may have it.
  [[nodiscard]] bool executes_widely() const { return executes_widely_; }

 private:
  void note_one(const std::string& key, DeviceTaint taint);

  std::map<std::string, std::vector<DeviceTaint>> of_one_;  ///< By driver/pool/device.
  std::vector<ObjectPtr> wide_;                             ///< Rules that name no single device.
  std::set<std::string> executing_;
  bool executes_widely_ = false;
  std::uint64_t slices_at_ = 0;
  std::uint64_t rules_at_ = 0;
  bool honour_rules_ = true;
};

/// True if the rule selects the device: an absent part selects all, an absent selector nothing.
[[nodiscard]] bool rule_selects(const Json& rule, const std::string& driver, const std::string& pool,
                                const std::string& device);

/// The node's first taint that keeps the pod off (NoSchedule or NoExecute), or nullptr. Pods of a DaemonSet tolerate
/// the standard keys. **Source:** DaemonSet controller.
[[nodiscard]] const Json* untolerated_taint(const Json& node, const Json& pod_spec, bool of_daemon_set);

/// Sets or removes one taint of a node and leaves all others as they are.
void set_node_taint(Json& node, const std::string& key, bool there, const std::string& time);

}  // namespace dhc::sim
