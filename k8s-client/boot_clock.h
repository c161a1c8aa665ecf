#pragma once
#include <chrono>
#include <ctime>

#include "base/now.h"

namespace dhc::k8s {

/// A steady clock that goes on while the machine is suspended (CLOCK_BOOTTIME): by it a Lease's term is over after a
/// suspend, as it is for everybody else, while std::chrono::steady_clock has stood still. Its moments are not those of
/// the steady clock. What no clock of this machine notices is a hypervisor that halts it without telling. Any thread.
[[nodiscard]] inline MonoTime boot_now() {
  timespec now{};
  (void)::clock_gettime(CLOCK_BOOTTIME, &now);
  return MonoTime(std::chrono::duration_cast<Millis>(Seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec)));
}

}  // namespace dhc::k8s
