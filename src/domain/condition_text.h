#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/now.h"

namespace dhc {

/// One device in the message of our pod condition.
struct ConditionLine {
  std::string device;  ///< `to_string(DeviceKey)`.
  WallTime since;      ///< When the incident began; second precision survives.
  std::string policy;
  std::string said;  ///< The driver's words, may be empty.
  std::string next;  ///< What comes next.
  bool by_claim =
      false;  ///< A claim's condition says so, which has a time of its own: nothing to remember for a restart.
};

/// The condition's message: one part for each device. It is also our memory: the kubelet's field has no time, so that a
/// restart reads `since` here.
[[nodiscard]] std::string condition_message(const std::vector<ConditionLine>& lines);

/// Since when `device` has been unhealthy by a message that `condition_message` made; nothing if it does not speak of
/// the device.
[[nodiscard]] std::optional<WallTime> since_in_condition(std::string_view message, std::string_view device);

/// Whether such a message speaks of `device` at all, and whether by its claim's words.
[[nodiscard]] bool condition_names(std::string_view message, std::string_view device);
[[nodiscard]] bool condition_is_by_claim(std::string_view message, std::string_view device);

}  // namespace dhc
