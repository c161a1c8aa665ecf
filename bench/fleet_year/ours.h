#pragma once
#include <memory>

#include "bench/fleet_year/contender.h"
#include "domain/policy/policy.h"

namespace dhc::year {

/// What the program does by default, enforced: taint, credit, evict.
[[nodiscard]] Policy default_policy();

/// The unchanged controller: every watch through its bytes, every action through its requests, as if it led for ever.
/// Streams never fall silent here, so their word is dated ahead instead of coming every minute.
[[nodiscard]] std::unique_ptr<Contender> make_ours(Fleet& fleet, const Policy& policy);

}  // namespace dhc::year
