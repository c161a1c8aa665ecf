#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "domain/limits/brake.h"

namespace dhc {

/// The name of the brake's section of the state; versions that do not know it ignore it.
inline constexpr std::string_view kBrakeSection = "brakes";
/// The most that it takes: some 1,500 nodes; at 30 % of the devices the cluster's brake is engaged, which comes first.
inline constexpr std::size_t kBrakeStateLimit = 160UL * 1024;

/// What of the brake must survive a restart, as a JSON list of at most `limit` bytes: the cluster's brakes first, then
/// their bad devices that nobody holds, by name while there is room and else as a number. Empty: there is nothing.
[[nodiscard]] std::string brake_state_text(const Brake& brake, std::size_t limit = kBrakeStateLimit);

/// Reads what `brake_state_text` made; what it did not make is left out. Times ahead of the clock count as now.
[[nodiscard]] BrakeMemory parse_brake_state(std::string_view text, const Now& now);

}  // namespace dhc
