#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/now.h"
#include "domain/contract/subject.h"
#include "k8s-client/model/object.h"
#include "k8s-client/protocol/delivery.h"

namespace dhc::record {

/// Device-hours.
using Hours = double;

/// One pod that holds devices.
struct Holding {
  Subject pod;
  std::size_t devices = 0;            ///< That it holds, good ones as well: it waits with all of them.
  std::optional<WallTime> made;       ///< When it was created.
  std::optional<WallTime> first_bad;  ///< When a device of it was first called Unhealthy.
  std::string bad_device;             ///< The one, as its kubelet names it.
  std::optional<WallTime> bad_since;  ///< Set while one is.
  Hours bad = 0;                      ///< All its devices, times how long one of them was Unhealthy; as far as counted.
};

/// What pods lose: devices that are held by a pod while one of them is called Unhealthy in the pod's status.
class Ledger {
 public:
  /// What becomes of pods by it, from `now` on.
  void follow(const k8s::Delivery& delivery, WallTime now);
  /// Counts what is held now up to `now`.
  void close(WallTime now);

  [[nodiscard]] const Holding* find(const std::string& uid) const;
  [[nodiscard]] const std::map<std::string, Holding>& all() const { return holdings_; }
  [[nodiscard]] Hours bad() const;
  /// All the work of a pod that ends now: its devices, times how long it was there. More cannot be lost.
  [[nodiscard]] static Hours work(const Holding& holding, WallTime now);

 private:
  void put(const k8s::Pod& pod, WallTime now);
  void replace(const std::vector<k8s::Object>& pods, WallTime now);
  void end(const std::string& uid, WallTime now);

  std::map<std::string, Holding> holdings_;  // by the pod's UID; kept of all that have ever had a bad device
};

}  // namespace dhc::record
