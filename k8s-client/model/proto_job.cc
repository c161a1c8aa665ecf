#include <cstdint>
#include <string>
#include <vector>

#include <protozero/pbf_reader.hpp>

#include "k8s-client/model/decode_job.h"
#include "k8s-client/model/proto_meta.h"
#include "k8s-client/model/proto_objects.h"

namespace dhc::k8s::proto {

namespace {

bool read_word(const Value& value, Fault& fault, std::string_view word, bool& is_word) {
  std::string text;
  if (!read_name(value, fault, text)) return false;
  is_word = text == word;
  return true;
}

// Go writes each code by itself; a reader has to take several in one as well.
bool read_codes(const Value& value, Fault& fault, std::vector<std::int64_t>& codes) {
  if (value.type == protozero::pbf_wire_type::varint) return read_number(value, fault, codes.emplace_back());
  std::string_view packed;
  return read_view(value, fault, packed) && (read_packed(packed, codes) || fault.is("broken protobuf"));
}

// **Source:** batch/v1 generated.proto, PodFailurePolicyOnExitCodesRequirement.
bool read_exit_codes(const Value& value, Fault& fault, std::optional<JobFailureRule::ExitCodes>& codes) {
  if (!codes) codes.emplace(JobFailureRule::ExitCodes{.container = {}, .in = false, .values = {}});
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == 1) return read_name(field, fault, codes->container) || fault.in("containerName");
    if (tag == 2) return read_word(field, fault, "In", codes->in) || fault.in("operator");
    if (tag == 3) return read_codes(field, fault, codes->values) || fault.in("values");
    return true;
  });
}

// **Source:** batch/v1 generated.proto, PodFailurePolicyOnPodConditionsPattern.
bool read_pod_condition(const Value& value, Fault& fault, JobFailureRule::PodCondition& condition) {
  const bool read = each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == 1) return read_name(field, fault, condition.type) || fault.in("type");
    if (tag == 2) return read_name(field, fault, condition.status) || fault.in("status");
    return true;
  });
  if (condition.status.empty()) condition.status = "True";
  return read;
}

// **Source:** batch/v1 generated.proto, PodFailurePolicyRule.
bool read_rule(const Value& value, Fault& fault, JobFailureRule& rule) {
  std::string action;
  const bool read = each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == 1) return read_name(field, fault, action) || fault.in("action");
    if (tag == 2) return read_exit_codes(field, fault, rule.on_exit_codes) || fault.in("onExitCodes");
    if (tag == 3) {
      return read_item(field, fault, rule.on_pod_conditions, read_pod_condition) || fault.in("onPodConditions");
    }
    return true;
  });
  rule.action = failure_action_of(action);
  return read;
}

// **Source:** batch/v1 generated.proto, PodFailurePolicy.
bool read_failure_policy(const Value& value, Fault& fault, std::vector<JobFailureRule>& rules) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    return tag != 1 || read_item(field, fault, rules, read_rule) || fault.in("rules");
  });
}

// **Source:** core/v1 generated.proto, PodTemplateSpec and PodSpec.
bool read_template(const Value& value, Fault& fault, Job& job) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& spec) {
    if (tag != 2) return true;
    return each_field(spec, fault, [&](std::uint32_t part, const Value& field) {
      return part != 3 || read_word(field, fault, "OnFailure", job.restarts_on_failure) || fault.in("restartPolicy");
    });
  });
}

// **Source:** batch/v1 generated.proto, JobSpec.
bool read_job_spec(const Value& value, Fault& fault, Job& job) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    switch (tag) {
      case 1:
        return read_number(field, fault, job.parallelism) || fault.in("parallelism");
      case 2:
        return read_integer(field, fault, job.completions) || fault.in("completions");
      case 5:
        return read_bool(field, fault, job.manual_selector) || fault.in("manualSelector");
      case 6:
        return read_template(field, fault, job) || fault.in("template");
      case 7:
        return read_number(field, fault, job.backoff_limit) || fault.in("backoffLimit");
      case 9:
        return read_word(field, fault, "Indexed", job.indexed) || fault.in("completionMode");
      case 10:
        return read_bool(field, fault, job.suspended) || fault.in("suspend");
      case 11:
        return read_failure_policy(field, fault, job.failure_rules) || fault.in("podFailurePolicy");
      case 12:
        return read_integer(field, fault, job.backoff_limit_per_index) || fault.in("backoffLimitPerIndex");
      case 13:
        return read_integer(field, fault, job.max_failed_indexes) || fault.in("maxFailedIndexes");
      case 14:
        return read_word(field, fault, "Failed", job.replaces_when_failed) || fault.in("podReplacementPolicy");
      case 15:
        return read_name(field, fault, job.managed_by) || fault.in("managedBy");
      default:
        return true;
    }
  });
}

// **Source:** batch/v1 generated.proto, UncountedTerminatedPods.
bool read_uncounted(const Value& value, Fault& fault, std::int64_t& uncounted) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    std::string uid;
    if (tag != 1 && tag != 2) return true;
    if (!read_name(field, fault, uid)) return fault.in(tag == 1 ? "succeeded" : "failed");
    ++uncounted;
    return true;
  });
}

bool read_job_condition(const Value& value, Fault& fault, std::vector<Condition>& conditions) {
  Condition condition;
  if (!read_condition(value, fault, condition)) return false;
  if (is_kept_job_condition(condition)) conditions.push_back(std::move(condition));
  return true;
}

// **Source:** batch/v1 generated.proto, JobStatus.
bool read_job_status(const Value& value, Fault& fault, Job& job) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    switch (tag) {
      case 1:
        return read_job_condition(field, fault, job.conditions) || fault.in("conditions");
      case 4:
        return read_number(field, fault, job.active) || fault.in("active");
      case 5:
        return read_number(field, fault, job.succeeded) || fault.in("succeeded");
      case 6:
        return read_number(field, fault, job.failed) || fault.in("failed");
      case 8:
        return read_uncounted(field, fault, job.uncounted) || fault.in("uncountedTerminatedPods");
      case 10:
        return read_text(field, fault, job.failed_indexes) || fault.in("failedIndexes");
      case 11:
        return read_number(field, fault, job.terminating) || fault.in("terminating");
      default:
        return true;
    }
  });
}

}  // namespace

bool read_job(std::string_view message, Fault& fault, const KeptFields& kept, Job& job) {
  const bool read = read_root(message, fault, kept, Kind::Job, job.meta, [&](std::uint32_t tag, const Value& value) {
    if (tag == 2) return read_job_spec(value, fault, job) || fault.in("spec");
    if (tag == 3) return read_job_status(value, fault, job) || fault.in("status");
    return true;
  });
  if (read) keep_what_matters(job, kept);
  return read;
}

}  // namespace dhc::k8s::proto
