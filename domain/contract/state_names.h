#pragma once
#include <string_view>

namespace dhc {

/// The ConfigMap in our own namespace that holds the devices' incidents and histories. It is not 0.1.0's `kStateName`:
/// 0.1.0 takes what it does not know for damage and writes an empty state over it, so that a rollback would wipe the
/// history, the brake and the caps.
inline constexpr std::string_view kIncidentsName = "device-health-incidents";
inline constexpr std::string_view kIncidentsEntry = "incidents.json";

}  // namespace dhc
