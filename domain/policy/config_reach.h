#pragma once
#include "domain/policy/policy.h"

namespace dhc {

/// True if everything that `narrow` matches is certainly matched by `wide` too: then a policy with `narrow` that comes
/// after one with `wide` can never apply. False if that is not certain.
[[nodiscard]] bool covers(const Match& wide, const Match& narrow);

}  // namespace dhc
