#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/now.h"
#include "domain/contract/signal_source.h"

namespace dhc {

/// One device in the message of our pod condition.
struct ConditionLine {
  std::string device;  ///< `to_string(DeviceKey)`.
  WallTime since;      ///< When the incident began; second precision survives.
  std::string policy;
  std::string said;  ///< The driver's words, may be empty.
  std::string next;  ///< What comes next; cut to 200 bytes.
  SignalSource source = SignalSource::Report;
};

/// The longest message, in bytes. **Source:** meta/v1 Condition: 32 KiB.
inline constexpr std::size_t kLongestCondition = 32UL * 1024;

/// The condition's message, as it is stored: one part for each device in the order given, printable, and where they are
/// too many the number of those left out, never of the one that says since when the pod has been told. It is also our
/// memory: the kubelet's field has no time, so that a restart reads `since` here.
[[nodiscard]] std::string condition_message(const std::vector<ConditionLine>& lines);

/// What comes next, where that is an eviction: when it is due, and since when the pod has been told, in whole seconds.
/// It is also our memory of that: the notice itself stands where a tenant may change it.
[[nodiscard]] std::string next_eviction(WallTime due, std::optional<WallTime> noticed);

/// What such a message says, by device; of a pod with thousands of devices each is looked up, not searched for.
struct ConditionWords {
  struct Word {
    std::optional<WallTime> since;
    SignalSource source = SignalSource::Report;
    std::optional<WallTime> noticed = {};  ///< Since when the pod has been told that it is evicted for this.
    friend bool operator==(const Word&, const Word&) = default;
  };
  std::map<std::string, Word, std::less<>> devices;
  bool cut = false;  ///< It does not name all.

  /// Null if the message does not name the device.
  [[nodiscard]] const Word* find(std::string_view device) const;
  /// Since when the pod has been told that it is evicted, for whichever device; none: it has not been.
  [[nodiscard]] std::optional<WallTime> noticed() const;
};
[[nodiscard]] ConditionWords read_condition(std::string_view message);

/// One device in the message of our pod condition once all have recovered.
struct RecoveryLine {
  std::string device;  ///< `to_string(DeviceKey)`.
  WallTime since;
  std::optional<WallTime> probation_until = {};  ///< None: there is evidence that it is well.
};
/// That message, bounded as the other; and what such a message says.
[[nodiscard]] std::string recovery_message(const std::vector<RecoveryLine>& lines);
[[nodiscard]] ConditionWords read_recovery(std::string_view message);

}  // namespace dhc
