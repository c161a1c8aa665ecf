#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/now.h"
#include "domain/cluster/touched.h"
#include "domain/contract/device_key.h"
#include "reconcilers/shared/action_facts.h"

namespace dhc::taint {

/// Server-side apply of the one DeviceTaintRule of one device. Without `uid` the rule is new (its name was free in the
/// World); with it, `uid` and `resource_version` are preconditions, so that what an operator has deleted or changed
/// meanwhile is neither made again nor overwritten (invariant I14).
struct ApplyRule {
  std::string name;
  std::string api_version;
  std::string uid;
  std::string resource_version;
  std::string driver;
  std::string pool;
  std::string device_name;
  std::string node = {};  ///< Of the device; empty: it has none of its own.
  std::string said = {};  ///< The driver's words, may be empty.
  std::string effect;     ///< `None` or `NoSchedule`.
  std::string policy;
  std::string identity;
  std::string identity_attribute;
  WallTime since;
  std::int64_t incidents = 0;
  std::string device;             ///< As `to_string(DeviceKey)`, for logs.
  std::string same_card_as = {};  ///< The bad device of its pool on whose card it is; empty: it is bad itself.
  [[nodiscard]] ActionFacts facts() const;
  [[nodiscard]] std::string words() const;
  [[nodiscard]] std::optional<WriteKey> write_key() const;
  /// Notes whose decisions rest on it, when it is sent and when it is answered.
  void touch(Touched& touched) const;
  friend bool operator==(const ApplyRule&, const ApplyRule&) = default;
};

/// Deletes our rule, as it was seen: UID and version are preconditions.
struct DeleteRule {
  std::string name;
  std::string api_version;
  std::string uid;
  std::string resource_version;
  DeviceKey key;
  std::string device;  ///< As `to_string(key)`.
  std::string policy;
  bool of_card = false;  ///< It was made because another device of the card was bad.
  [[nodiscard]] ActionFacts facts() const;
  [[nodiscard]] std::string words() const;
  [[nodiscard]] std::optional<WriteKey> write_key() const;
  /// Notes whose decisions rest on it, when it is sent and when it is answered.
  void touch(Touched& touched) const;
  friend bool operator==(const DeleteRule&, const DeleteRule&) = default;
};

/// Adds our taint to a node or removes it, as the node was seen; touches no other taint.
struct PatchNodeTaint {
  std::string node;
  std::string uid;
  std::string resource_version;  ///< A stale one answers 409. **Source:** seen on 1.37.1.
  bool add = true;
  bool has_taints = false;  ///< `spec.taints` exists.
  std::size_t index = 0;    ///< Of our taint, when it is removed.
  std::string device;       ///< The resource or driver, for logs.
  std::string policy;
  [[nodiscard]] ActionFacts facts() const;
  [[nodiscard]] std::string words() const;
  [[nodiscard]] std::optional<WriteKey> write_key() const;
  /// What is asked of the node, as in Asks; one that is made anew under the same name is another node.
  [[nodiscard]] static std::string asks_for(bool taint, const std::string& uid);
  /// Notes whose decisions rest on it, when it is sent and when it is answered.
  void touch(Touched& touched) const;
  friend bool operator==(const PatchNodeTaint&, const PatchNodeTaint&) = default;
};

}  // namespace dhc::taint
