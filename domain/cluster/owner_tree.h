#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/shared_text.h"
#include "k8s-client/model/meta.h"

namespace dhc {

/// What stands under each controller, by the name and by the identity (`NAMESPACE/UID`) that is given for it, so that
/// the pods of one workload are found without a look at everybody else's.
class OwnerTree {
 public:
  /// The pods of one controller are known by its identity.
  void add_pod(const k8s::Meta& pod, const SharedText& controller);
  void remove_pod(const k8s::Meta& pod, const SharedText& controller);
  /// A Job, ReplicaSet or StatefulSet, which may have a controller itself.
  void add_owner(const k8s::Meta& owner);
  void remove_owner(const k8s::Meta& owner);

  /// The identities of what is under a controller called `NAMESPACE/KIND/NAME`, or under the one of this identity;
  /// seldom also of others, whose names have the same hash: look at what they are.
  [[nodiscard]] std::vector<std::string> under(std::string_view controller) const;

 private:
  void add(std::uint64_t hash, const SharedText& identity);
  void remove(std::uint64_t hash, const SharedText& identity);

  /// An ordered map: hostile names may share a hash, and then cost no more.
  std::map<std::pair<std::uint64_t, SharedText>, std::uint32_t> children_;
};

}  // namespace dhc
