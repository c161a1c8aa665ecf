#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/now.h"
#include "domain/contract/device_key.h"
#include "domain/contract/subject.h"
#include "k8s-client/model/object.h"
#include "k8s-client/model/pod.h"
#include "k8s-client/protocol/delivery.h"

namespace dhc {

/// Who reports on a device, and since when it has run.
struct Reporter {
  std::string name;               ///< In words, such as `driver pod kube-system/gpu-driver-x7k2p`.
  WallTime began;                 ///< By our clock, as well as that is known.
  std::optional<WallTime> start;  ///< The same as its pod says it, however wrong: another start has another.
  WallTime
      newest;  ///< The latest `start` of all that may report on the device: a later one is of one that began since.
  Millis within = Seconds(1);  ///< It began so much later at most: a kubelet cuts its times to the second.
};

/// What is known of the words that were said about a device.
struct LastWord {
  WallTime called_bad_at;                      ///< When it was last called bad anew.
  std::optional<WallTime> by_start = {};       ///< The `newest` of who reported on it then.
  std::optional<WallTime> taken_back_at = {};  ///< Since when that has been taken back, and believed.
  friend bool operator==(const LastWord&, const LastWord&) = default;
};

/// Whether it may have begun after `then`.
[[nodiscard]] constexpr bool began_after(WallTime began, WallTime then, Millis within = Seconds(1)) {
  return began + within > then;
}

/// Whether it may have forgotten that the device is bad: it began after it was called so, and before that was taken
/// back.
[[nodiscard]] bool may_have_forgotten(const Reporter& reporter, const LastWord& word);

/// How long a device-plugin device must say Healthy before that is believed. A kubelet's restart says Healthy of dead
/// devices and takes the node's capacity away, in two watches that have no common order. **Source:** seen on 1.37.1:
/// the node's event came 0.9 s before the pod's, and later than it with a slow watch of nodes.
inline constexpr Millis kHealthySettle = Seconds(10);
/// The same for a DRA device whose driver's pod is known: a driver that began anew says Healthy at once, and its
/// kubelet shows the start of its container with a later sync of the pod. **Source:** seen on 1.37.1: up to 23 s later.
inline constexpr Millis kDriverSettle = Seconds(30);
[[nodiscard]] constexpr Millis settle_of(const DeviceKey& key) {
  return key.source == DeviceKey::Source::Dra ? kDriverSettle : kHealthySettle;
}

/// How long an Unhealthy must have stood after a reporter began to be its own word, or that of another. **Source:** the
/// kubelet drops a DRA driver's word with its stream, or after 30 s, which a pod shows with its next sync, at most 90 s
/// later; a plugin that is gone takes its devices out of allocatable within 10 s.
inline constexpr Millis kOwnWord = std::chrono::minutes(3);

/// For how long what breaks on a node where a driver or plugin begins anew is not counted.
inline constexpr Millis kRolloutHold = std::chrono::minutes(10);

/// That a driver or plugin is being replaced on a node, or has been a moment ago. Times are the API server's.
struct Rollout {
  std::string pod;      ///< In words, such as `driver pod kube-system/gpu-driver-x7k2p`.
  std::string ns;       ///< Of the pod, and of its owner.
  k8s::OwnerRef owner;  ///< A DaemonSet, or the node itself.
  std::string revision;
  bool is_first_release = false;  ///< Its DaemonSet has never been another.
  bool is_leaving = false;        ///< The pod is on its way out, or gone, and no other has come.
  WallTime made;                  ///< When the pod was made.
  WallTime began;  ///< When its predecessor was asked to go, if that was seen: pods that follow each other
                   ///< quickly are one roll-out.
  WallTime until;  ///< What breaks counts from then on.
};

/// A release, by `ground_of_release`, that serves devices on a node.
struct ServingRelease {
  std::string name;
  WallTime made;  ///< When the first of its pods there was made.
  friend bool operator==(const ServingRelease&, const ServingRelease&) = default;
};

/// Its owner, as the subject of a verdict.
[[nodiscard]] Subject subject_of(const Rollout& rollout);

/// The pods of DRA drivers and device plugins on each node. They are known by the kubelet's folders that they mount and
/// by who made them, as their owner reference says: a DaemonSet, or the node itself. Who may mount the kubelet's
/// folders at all, Pod Security decides.
class Reporters {
 public:
  /// Takes in a pod; one that is no reporter any more is forgotten. `server_ahead`: how far the API server's clock is
  /// ahead of ours. A start that is news, not part of a list, was not long ago, and one later than what was known of
  /// the pod is just now, whatever the node's clock says. The node whose reporters changed; empty: nothing did.
  std::string put(const k8s::Pod& pod, Millis server_ahead, bool is_news, const Now& now);
  /// As above for a pod that is gone.
  std::string drop(const std::string& uid, const Now& now);
  /// UIDs of those that a list does not have, neither readable nor unreadable.
  [[nodiscard]] std::vector<std::string> missing_in(const std::vector<k8s::Object>& pods,
                                                    const k8s::UnreadableNames& unreadable) const;

  /// Of those that speak for the device on its node the one whose roll-out lasts longest; none: nobody is known there.
  [[nodiscard]] std::optional<Rollout> rollout(const DeviceKey& key, const std::string& node) const;
  /// When the first pod of this revision was made that is still there.
  [[nodiscard]] std::optional<WallTime> revision_began(const std::string& owner_uid, const std::string& revision) const;
  /// The releases that may serve the device on its node, each once, sorted by name: of a plugin's resource nobody says
  /// whose it is. Only DaemonSets have any.
  [[nodiscard]] std::vector<ServingRelease> releases(const DeviceKey& key, const std::string& node) const;
  /// The DaemonSet of this name that has a pod here; none: it has none.
  [[nodiscard]] std::optional<k8s::OwnerRef> daemon_set(std::string_view ns, std::string_view name) const;
  /// The node is gone, and with it those that were about to be replaced there.
  void forget_gone(const std::string& node);

  /// Of those that speak for the device on its node the one that began last.
  [[nodiscard]] std::optional<Reporter> latest(const DeviceKey& key, const std::string& node) const;

  /// Whether a pod is on the node that the device's plugin asks for its health, and without which it reads Healthy.
  [[nodiscard]] bool has_informer(const DeviceKey& key, const std::string& node) const;

 private:
  struct Entry {
    std::string ns;
    std::string name;
    std::string uid;
    bool serves_plugins = false;
    bool serves_drivers = false;
    bool informs_amd = false;          ///< AMD's plugin asks it for the health of its devices.
    std::vector<std::string> drivers;  ///< Those that it serves; empty: any.
    WallTime start;                    ///< When it began by the kubelet's word, and by nothing else.
    bool has_run = false;              ///< False: that is when its pod was made.
    WallTime began;                    ///< What we make of it.
    k8s::OwnerRef owner;
    std::string revision;
    bool is_first_release = false;
    WallTime made;
    std::optional<WallTime> asked;  ///< To go, when.
    bool is_gone = false;           ///< It is no more, and is kept until its successor comes.
    WallTime rolls_since;           ///< Since when pods follow each other here, as of when it was made.
  };
  [[nodiscard]] static WallTime rollout_began(const Entry& entry);
  [[nodiscard]] static WallTime rollout_ends(const Entry& entry) {
    return entry.asked.value_or(entry.made) + kRolloutHold;
  }
  [[nodiscard]] static bool serves(const Entry& entry, const DeviceKey& key);
  [[nodiscard]] static bool informs(const Entry& entry, const DeviceKey& key);

  std::unordered_map<std::string, std::vector<Entry>> on_node_;
  std::unordered_map<std::string, std::string> node_of_;  // by UID
};

}  // namespace dhc
