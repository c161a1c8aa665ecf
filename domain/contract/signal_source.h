#pragma once
#include <cstdint>

namespace dhc {

/// Who says that a device is bad.
enum class SignalSource : std::uint8_t {
  Report,  ///< The kubelet, in a pod's status. **Source:** KEP-4680.
  Claim,   ///< The driver, by a condition of the claim. **Source:** KEP-4817.
  Taint,   ///< The driver, by a taint in its ResourceSlice. **Source:** KEP-5055.
};

/// Whether the signal has a time of its own: no report of the kubelet is waited for where it falls silent.
[[nodiscard]] constexpr bool is_drivers_own(SignalSource source) { return source != SignalSource::Report; }

}  // namespace dhc
