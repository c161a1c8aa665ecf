#pragma once
#include <string>

#include "k8s-client/model/job.h"

namespace dhc::test {

using RuleAction = k8s::JobFailureRule::Action;

inline k8s::JobFailureRule on_condition(RuleAction action, const std::string& type) {
  return {.action = action, .on_pod_conditions = {{.type = type, .status = "True"}}, .on_exit_codes = {}};
}

}  // namespace dhc::test
