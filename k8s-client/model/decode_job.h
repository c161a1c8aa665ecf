#pragma once
#include <string_view>

#include "k8s-client/model/job.h"
#include "k8s-client/model/json_reading.h"
#include "k8s-client/model/kept_fields.h"

namespace dhc::k8s {

/// The action that the API's word names.
[[nodiscard]] JobFailureRule::Action failure_action_of(std::string_view word);

/// True for the conditions of which `Job::conditions` speaks.
[[nodiscard]] bool is_kept_job_condition(const Condition& condition);

/// Drops labels that nobody asked for, and of a finished Job what no longer matters.
void keep_what_matters(Job& job, const KeptFields& kept);

/// A whole Job; of a finished one only identity, owner, our annotations and conditions are kept.
bool read_job(JsonObject root, Fault& fault, const KeptFields& kept, Job& job);

}  // namespace dhc::k8s
