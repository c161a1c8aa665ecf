#pragma once
#include <string>
#include <string_view>

#include "domain/incidents/handed_objects.h"

namespace dhc {

/// The name of the section of the state that remembers objects by which nodes were handed over; versions that do not
/// know it keep it as it is.
inline constexpr std::string_view kHandedSection = "handedOver";
/// The most that it takes: an older version keeps so much. What is in it is never left out: no object is noted where
/// there is no room.
inline constexpr std::size_t kHandedStateLimit = 60UL * 1024;
/// The most that one object takes.
inline constexpr std::size_t kHandedObjectLimit = 4UL * 1024;

/// What must survive a restart, as JSON; empty: there is nothing.
[[nodiscard]] std::string handed_state_text(const HandedObjects& objects);

/// Whether one more may not fit.
[[nodiscard]] bool is_full(const HandedObjects& objects);

/// Reads what `handed_state_text` made; what it did not make is left out.
[[nodiscard]] HandedObjects parse_handed_state(std::string_view text);

}  // namespace dhc
