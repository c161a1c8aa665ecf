#pragma once
#include <nlohmann/json_fwd.hpp>

#include "domain/contract/verdict.h"

namespace dhc {

/// One verdict as `/verdicts` and the live page show it: subject, device, policy, mode, gate, reason, message, since,
/// nextStepAt; null where there is none.
[[nodiscard]] nlohmann::ordered_json verdict_json(const Verdict& verdict);

}  // namespace dhc
