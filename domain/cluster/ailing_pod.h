#pragma once
#include <string>
#include <vector>

#include "base/now.h"
#include "domain/contract/device_key.h"
#include "domain/contract/signal_source.h"

namespace dhc {

/// A Job's pod on a bad device, as a process leaves word of it to the next one: found dead then, it has died of that
/// device.
struct AilingPod {
  struct Device {
    DeviceKey key;
    SignalSource source = SignalSource::Report;  ///< The kubelet's report, or its driver's taint.
    std::string word;                            ///< The kubelet's, if it is none of its three.
    std::string said;                            ///< The driver's words about it.
    friend bool operator==(const Device&, const Device&) = default;
  };
  std::string ns;
  std::string uid;
  std::string job_uid;
  std::vector<Device> devices;
  WallTime seen;       ///< When that was last known; of one that has ended, its end.
  bool ended = false;  ///< It had failed by then.
  friend bool operator==(const AilingPod&, const AilingPod&) = default;
};

/// How long such a word counts, and how long the end of a pod is remembered.
inline constexpr Millis kEndingMemory = std::chrono::hours(1);

}  // namespace dhc
