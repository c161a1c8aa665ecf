#pragma once
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/now.h"
#include "domain/contract/device_key.h"
#include "k8s-client/model/object.h"
#include "k8s-client/model/pod.h"
#include "k8s-client/protocol/delivery.h"
#include "k8s-client/protocol/watch_requests.h"

namespace dhc {

/// How old the last word of a watch may be for a destructive step. Two silent streams in a row end in a list, so that a
/// quiet cluster never comes so far, whatever bookmarks its API server sends.
inline constexpr Millis kOldestView = std::chrono::minutes(5);
static_assert(kOldestView >= 2 * k8s::kWatchIdle + k8s::kListTotal);

/// Some of the kinds that are watched.
class KindSet {
 public:
  constexpr KindSet() = default;
  constexpr KindSet(std::initializer_list<k8s::Kind> kinds) {
    for (const auto kind : kinds) bits_ |= bit(kind);
  }
  [[nodiscard]] constexpr bool contains(k8s::Kind kind) const { return (bits_ & bit(kind)) != 0; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  /// Whether both have one of the kinds.
  [[nodiscard]] constexpr bool meets(KindSet other) const { return (bits_ & other.bits_) != 0; }
  friend constexpr KindSet operator|(KindSet a, KindSet b) {
    a.bits_ |= b.bits_;
    return a;
  }
  constexpr KindSet& operator|=(KindSet other) { return *this = *this | other; }

 private:
  static constexpr std::uint32_t bit(k8s::Kind kind) { return 1U << static_cast<unsigned>(kind); }
  std::uint32_t bits_ = 0;
};

/// A watch that cannot be relied on now.
struct OldView {
  k8s::Kind kind = k8s::Kind::Pod;
  MonoTime heard_at;     ///< Its last word.
  bool doubted = false;  ///< Whatever its age: what it delivered is known to be wrong, and is listed afresh.
  friend bool operator==(const OldView&, const OldView&) = default;
};

/// The watches that were asked for while devices were decided about: whose age, and whether they are doubted, their
/// decisions rest on. Without a name: of no device in particular.
using ViewsAsked = std::map<DeviceKey, KindSet>;

/// The kinds whose watches can be relied on in one of both, and not in the other or not as long.
[[nodiscard]] KindSet changed_views(const std::vector<OldView>& before, const std::vector<OldView>& after);

/// What each watch has last said of itself. A kind that the server does not serve has nothing to say; a watch that has
/// never spoken is not listed, and nothing is planned before all are.
class Views {
 public:
  /// True if the watch can be relied on again, or no more.
  bool told(const k8s::Told& word);
  void listed(k8s::Kind kind, bool served);

  /// The worst of these kinds' watches that must not be relied on at `now`; none: all may.
  [[nodiscard]] std::optional<OldView> too_old(KindSet kinds, const Now& now) const;

  /// When the quietest of these kinds' watches was last heard; none: one is known to be wrong. A watch without any word
  /// yet is left out.
  [[nodiscard]] std::optional<MonoTime> heard_at(KindSet kinds) const;

  /// Whether one of these kinds' watches has had no word for `kOldestView`. A stream that has just ended, as every one
  /// does within minutes, is renewed within a second: that is no reason to leave the Lease to others.
  [[nodiscard]] bool is_silent(KindSet kinds, const Now& now) const;

  /// When the next watch will have been silent for too long, if it goes on so; none: all have been already.
  [[nodiscard]] std::optional<MonoTime> next_change_at(const Now& now) const;

 private:
  struct View {
    MonoTime heard_at;
    bool doubted = false;
  };
  std::map<std::pair<k8s::Kind, std::string>, View> views_;  // by kind and name: two ConfigMaps are watched
  std::set<k8s::Kind> not_served_;
};

/// Every kind that any step rests on.
inline constexpr KindSet kEveryView = {
    k8s::Kind::Pod,         k8s::Kind::ResourceClaim,       k8s::Kind::ResourceSlice, k8s::Kind::Node,
    k8s::Kind::Namespace,   k8s::Kind::DeviceTaintRule,     k8s::Kind::Job,           k8s::Kind::ReplicaSet,
    k8s::Kind::StatefulSet, k8s::Kind::PodDisruptionBudget, k8s::Kind::PodGroup,      k8s::Kind::ConfigMap};

/// What an eviction of the pod for this device rests on: the pod and what may exclude it (node, Namespace, owner), the
/// configuration and the state, and what allocates, publishes and taints a DRA device.
[[nodiscard]] KindSet views_of_eviction(const k8s::Pod& pod, const DeviceKey& key);

/// What a new taint of this device, or of its node, rests on.
[[nodiscard]] KindSet views_of_taint(const DeviceKey& key);

/// What a patch of a Job, or its replacement, rests on.
inline constexpr KindSet kViewsOfJobPatch = {k8s::Kind::Pod, k8s::Kind::ResourceClaim, k8s::Kind::Node, k8s::Kind::Job,
                                             k8s::Kind::ConfigMap};

}  // namespace dhc
