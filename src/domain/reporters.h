#pragma once
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/now.h"
#include "domain/device_key.h"
#include "k8s-client/model/object.h"
#include "k8s-client/model/pod.h"
#include "k8s-client/protocol/delivery.h"

namespace dhc {

/// Who reports on a device, and since when it has run.
struct Reporter {
  std::string name;  ///< In words, such as `driver pod kube-system/gpu-driver-x7k2p`.
  WallTime began;    ///< By the kubelet's clock, whole seconds.
};

/// Whether it may have begun after `then`: a kubelet cuts its times to the second.
[[nodiscard]] constexpr bool began_after(WallTime began, WallTime then) { return began + Seconds(1) > then; }

/// The pods of DRA drivers and device plugins on each node. They are known by the kubelet's folders that they mount and
/// by who made them, a DaemonSet or the node itself: a tenant's pod that mounts the same folders is none.
class Reporters {
 public:
  /// Takes in a pod made at `created`, by our clock; one that is no reporter any more is forgotten. A start that is
  /// news, not part of a list, was not long ago, whatever the node's clock says. The node whose reporters changed;
  /// empty: nothing did.
  std::string put(const k8s::Pod& pod, std::optional<WallTime> created, bool is_news, const Now& now);
  /// As above for a pod that is gone.
  std::string drop(const std::string& uid);
  /// UIDs of those that a list does not have, neither readable nor unreadable.
  [[nodiscard]] std::vector<std::string> missing_in(const std::vector<k8s::Object>& pods,
                                                    const k8s::UnreadableNames& unreadable) const;

  /// Of those that speak for the device on its node the one that began last.
  [[nodiscard]] std::optional<Reporter> latest(const DeviceKey& key, const std::string& node) const;

 private:
  struct Entry {
    std::string ns;
    std::string name;
    std::string uid;
    bool serves_plugins = false;
    bool serves_drivers = false;
    std::vector<std::string> drivers;  ///< Those that it serves; empty: any.
    WallTime said;                     ///< When it began by the kubelet's word.
    WallTime began;                    ///< What we make of it.
  };
  [[nodiscard]] static bool serves(const Entry& entry, const DeviceKey& key);

  std::unordered_map<std::string, std::vector<Entry>> on_node_;
  std::unordered_map<std::string, std::string> node_of_;  // by UID
};

}  // namespace dhc
