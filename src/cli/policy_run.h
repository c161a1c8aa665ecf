#pragma once
#include <string>
#include <vector>

#include "cli/policy_case.h"
#include "domain/policy/policy.h"

namespace dhc::cli {

/// What became of one case.
struct CaseResult {
  std::vector<std::string> failures;  ///< `FILE:LINE:COLUMN: what was expected, and what was said`; none: it passed.
  Millis played{0};                   ///< Of the cluster's time.
};

/// Plays the case in virtual time: the controller's own code against a simulated cluster. The cluster has stood for a
/// minute before, and the controller has run for another, so that time 0 finds both at rest.
[[nodiscard]] CaseResult play_case(const PolicyCase& one, Policy policy);

}  // namespace dhc::cli
