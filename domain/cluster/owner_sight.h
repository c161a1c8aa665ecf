#pragma once
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>

#include "base/now.h"
#include "k8s-client/model/meta.h"

namespace dhc {

/// What a read of an owner has found whose kind we do not watch: a RayCluster, a CronJob, a Deployment.
struct OwnerSight {
  enum class State : std::uint8_t {
    Found,
    Absent,     ///< The owner is gone, another object has its name, or the server does not serve its kind.
    Forbidden,  ///< We may not read its kind.
    Failed,     ///< The read failed: nothing is known.
  };
  State state = State::Failed;
  k8s::Meta meta = {};   ///< Of Found: its annotations of ours and its own controller; the rest is empty.
  std::string why = {};  ///< In words; of Forbidden the exact rule that is missing.
  MonoTime at = {};      ///< When it was asked.
  friend bool operator==(const OwnerSight&, const OwnerSight&) = default;
};

/// How old an owner's word may be when its pod is evicted.
inline constexpr Millis kOwnerWordAge = std::chrono::minutes(5);
/// How long it is kept when nobody asks for it any more.
inline constexpr Millis kOwnerSightKept = std::chrono::hours(1);
/// At most so many are kept: the oldest goes first.
inline constexpr std::size_t kMostOwnerSights = 10'000;

/// A reference to an owner, in the namespace of what it owns, as one key. The whole of it: a tenant may write another
/// tenant's UID beside a name of its own, and what is found by that name must say nothing about the other's owner.
[[nodiscard]] std::string owner_key(const std::string& ns, const k8s::OwnerRef& owner);

/// Whether an object can be called so; what cannot is nobody's owner, whatever a tenant wrote, and is not kept.
[[nodiscard]] bool is_plausible(const k8s::OwnerRef& owner);

/// What reads have found of owners.
class OwnerSights {
 public:
  /// `asked_at` is when the read was sent: its answer may be older than its arrival. One that was asked for before the
  /// last one changes nothing. The namespaces of those that were forgotten for it.
  [[nodiscard]] std::set<std::string> note(OwnerSight sight, const std::string& ns, const k8s::OwnerRef& owner,
                                           MonoTime asked_at, const Now& now);
  /// The last one; null if there has been none within the hour.
  [[nodiscard]] const OwnerSight* find(const std::string& ns, const k8s::OwnerRef& owner) const;
  [[nodiscard]] std::size_t size() const { return sights_.size(); }

 private:
  struct Kept {
    OwnerSight sight;
    std::string ns;
  };
  std::unordered_map<std::string, Kept> sights_;  // by owner_key
};

}  // namespace dhc
