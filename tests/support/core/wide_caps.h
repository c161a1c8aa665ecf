#pragma once
#include "domain/policy/policy.h"

namespace dhc::test {

/// Caps that nothing reaches, for tests of other things: those of the configuration are small on purpose.
inline void widen_caps(Limits& limits) {
  constexpr std::int64_t kMany = 100'000;
  limits.cap_cluster = {.percent = 100, .at_least = kMany};
  limits.cap_node = {.percent = 100, .at_least = kMany};
  limits.cap_per_day = {.percent = 100, .at_least = kMany};
  limits.cap_nodes_handed_over = {.percent = 100, .at_least = kMany};
  limits.cap_owner_per_day = {.percent = 100, .at_least = kMany};
}

}  // namespace dhc::test
