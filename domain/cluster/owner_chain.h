#pragma once
#include <optional>
#include <string>

#include "domain/cluster/world.h"

namespace dhc {

/// How far up a pod's owners are looked at. **Source:** the longest chains that tools make are four (a pod, ReplicaSet,
/// Deployment, Revision and Configuration of Knative); a tenant may write a circle.
inline constexpr int kMostOwners = 8;

/// What is known of the controllers above a pod: its owner, that one's owner, and so on. Points into the World: valid
/// for one turn.
struct OwnerChain {
  const k8s::OwnerRef* opted_out = nullptr;  ///< The first that says so.
  const OwnerSight* opted_out_by = nullptr;  ///< The read that says so; null: its kind is watched.
  const k8s::OwnerRef* unknown = nullptr;    ///< The first of which nothing is known; those above it are not looked at.
  std::string why;                           ///< Why it is unknown, in words.
  bool readable = false;                     ///< Of `unknown`: its kind is not watched, a read would tell.
  const k8s::OwnerRef* oldest = nullptr;     ///< Whose read is the oldest of those that were looked at.
  std::optional<MonoTime> oldest_at;         ///< When that was; none: nothing was read.
};

/// Whether the World knows every owner of this kind. Other API groups have kinds of the same names (Volcano's Job,
/// OpenKruise's StatefulSet): those are not watched.
[[nodiscard]] bool is_watched(const k8s::OwnerRef& owner);

/// Whether the object itself carries the annotation.
[[nodiscard]] bool says_opt_out(const k8s::Meta& meta);

/// Walks up the controllers of the object with this metadata.
[[nodiscard]] OwnerChain chain_above(const k8s::Meta& meta, const World& world);

/// `RayCluster default-ray`, as people read it; what a tenant wrote is cut and made one line.
[[nodiscard]] std::string words_of(const k8s::OwnerRef& owner);

}  // namespace dhc
