#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/now.h"
#include "base/shared_text.h"
#include "k8s-client/model/shared_list.h"

namespace dhc::k8s {

/// Labels or annotations, sorted by key, keys unique; what many have in common is kept once.
using StringMap = SharedList<std::pair<SharedText, SharedText>>;

/// The value of `key`, or nothing.
[[nodiscard]] std::optional<std::string_view> find(const StringMap& map, std::string_view key);

/// The owner reference whose `controller` is true.
struct OwnerRef {
  SharedText api_version;
  SharedText kind;
  SharedText name;
  SharedText uid;
  friend bool operator==(const OwnerRef&, const OwnerRef&) = default;
};

/// The part of ObjectMeta that we read.
struct Meta {
  SharedText ns;  ///< Empty for cluster-scoped kinds.
  SharedText name;
  SharedText uid;
  SharedText resource_version;
  std::optional<WallTime> creation;
  SharedOptional<WallTime> deletion;  ///< deletionTimestamp: already includes the grace period. **Source:** ObjectMeta.
  SharedOptional<std::int64_t> deletion_grace_seconds;
  StringMap labels;
  /// Only those that its reader was told to keep, `kubernetes.io/config.mirror`, and a Job pod's completion index and
  /// failure count of that index.
  StringMap annotations;
  bool has_annotations = false;  ///< Any at all: a JSON patch cannot add an entry to a map that is not there.
  SharedOptional<OwnerRef> controller;
  bool has_other_owner = false;  ///< An owner reference that is not the controller's.

  /// Namespace and UID.
  [[nodiscard]] std::string identity() const { return ns + "/" + uid; }
  /// The identity of the owner that manages the object; empty if there is none. A reference means an owner in the same
  /// namespace: who may create objects in one must not speak of another's owners by writing their UID. **Source:**
  /// "Owners and Dependents": cross-namespace owner references are disallowed by design.
  [[nodiscard]] std::string controller_identity() const {
    return controller ? ns + "/" + controller->uid : std::string();
  }
  /// Whether that owner manages the object.
  [[nodiscard]] bool is_controlled_by(const Meta& owner) const {
    return controller && controller->uid == owner.uid && ns == owner.ns;
  }
  friend bool operator==(const Meta&, const Meta&) = default;
};

/// An amount of one extended resource (name with a domain, such as `nvidia.com/gpu`).
struct ResourceAmount {
  SharedText resource;
  std::int64_t amount = 0;
  friend bool operator==(const ResourceAmount&, const ResourceAmount&) = default;
};

/// A condition of a pod, node or claim device.
struct Condition {
  std::string type;
  std::string status;  ///< "True", "False", "Unknown"; other words are kept as they are.
  std::string reason = {};
  std::string message = {};
  std::optional<WallTime> last_transition = {};
  friend bool operator==(const Condition&, const Condition&) = default;
};

/// A taint of a node or device.
struct Taint {
  std::string key;
  std::string value;
  std::string
      effect;  ///< NoSchedule, NoExecute, PreferNoSchedule, None; unknown effects count as None. **Source:** KEP-5055.
  /// Says nothing about what the taint does, and is not compared: the API server sets it anew with each update in which
  /// a driver leaves it out. **Source:** k/k SetDefaults_DeviceTaint.
  std::optional<WallTime> time_added = {};
  friend bool operator==(const Taint& a, const Taint& b) {
    return a.key == b.key && a.value == b.value && a.effect == b.effect;
  }
};

/// `key=value:effect`, as `kubectl taint` writes it.
[[nodiscard]] std::string to_string(const Taint& taint);

}  // namespace dhc::k8s
