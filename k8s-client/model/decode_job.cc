#include "k8s-client/model/decode_job.h"

#include <algorithm>
#include <array>
#include <utility>

#include "k8s-client/model/decode_meta.h"

namespace dhc::k8s {

namespace {

// A number with the API's default where there is none.
bool read_number(JsonValue value, Fault& fault, std::int64_t& out, std::int64_t without) {
  std::optional<std::int64_t> number;
  if (!read_integer(value, fault, number)) return false;
  out = number.value_or(without);
  return true;
}

bool read_word(JsonValue value, Fault& fault, std::string_view word, bool& is_word) {
  std::string text;
  if (!read_name(value, fault, text)) return false;
  is_word = text == word;
  return true;
}

bool read_exit_code(JsonValue value, Fault& fault, std::vector<std::int64_t>& values) {
  std::optional<std::int64_t> code;
  if (!read_integer(value, fault, code)) return false;
  if (code) values.push_back(*code);
  return true;
}

bool read_exit_codes(JsonValue value, Fault& fault, std::optional<JobFailureRule::ExitCodes>& codes) {
  codes.reset();
  bool null = false;
  if (!read_null(value, fault, null)) return false;
  if (null) return true;
  codes.emplace(JobFailureRule::ExitCodes{.container = {}, .in = false, .values = {}});
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "containerName") return read_name(field, fault, codes->container) || fault.in(key);
    if (key == "operator") return read_word(field, fault, "In", codes->in) || fault.in(key);
    if (key != "values") return true;
    codes->values.clear();
    return each_item(field, fault, [&](JsonValue item) { return read_exit_code(item, fault, codes->values); }) ||
           fault.in(key);
  });
}

bool read_pod_condition(JsonValue value, Fault& fault, JobFailureRule::PodCondition& condition) {
  const bool read = each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "type") return read_name(field, fault, condition.type) || fault.in(key);
    if (key == "status") return read_name(field, fault, condition.status) || fault.in(key);
    return true;
  });
  if (condition.status.empty()) condition.status = "True";
  return read;
}

bool read_action(JsonValue value, Fault& fault, JobFailureRule::Action& action) {
  std::string word;
  if (!read_name(value, fault, word)) return false;
  action = failure_action_of(word);
  return true;
}

bool read_rule(JsonValue value, Fault& fault, JobFailureRule& rule) {
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "action") return read_action(field, fault, rule.action) || fault.in(key);
    if (key == "onExitCodes") return read_exit_codes(field, fault, rule.on_exit_codes) || fault.in(key);
    if (key != "onPodConditions") return true;
    return read_list(field, fault, rule.on_pod_conditions, read_pod_condition) || fault.in(key);
  });
}

bool read_failure_policy(JsonValue value, Fault& fault, std::vector<JobFailureRule>& rules) {
  rules.clear();
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    return key != "rules" || read_list(field, fault, rules, read_rule) || fault.in(key);
  });
}

bool read_template(JsonValue value, Fault& fault, Job& job) {
  job.restarts_on_failure = false;
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key != "spec") return true;
    job.restarts_on_failure = false;
    const bool read = each_field(field, fault, [&](std::string_view part, JsonValue text) {
      if (part != "restartPolicy") return true;
      return read_word(text, fault, "OnFailure", job.restarts_on_failure) || fault.in(part);
    });
    return read || fault.in(key);
  });
}

// What the status says; the spec may come after it.
void reset_spec(Job& job) {
  Job fresh;
  fresh.meta = std::move(job.meta);
  fresh.failed = job.failed;
  fresh.succeeded = job.succeeded;
  fresh.active = job.active;
  fresh.terminating = job.terminating;
  fresh.uncounted = job.uncounted;
  fresh.failed_indexes = std::move(job.failed_indexes);
  fresh.conditions = std::move(job.conditions);
  job = std::move(fresh);
}

bool read_spec(JsonValue value, Fault& fault, Job& job) {
  reset_spec(job);
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    const auto read = [&] {
      if (key == "backoffLimit") return read_number(field, fault, job.backoff_limit, 6);
      if (key == "backoffLimitPerIndex") return read_integer(field, fault, job.backoff_limit_per_index);
      if (key == "maxFailedIndexes") return read_integer(field, fault, job.max_failed_indexes);
      if (key == "completions") return read_integer(field, fault, job.completions);
      if (key == "parallelism") return read_number(field, fault, job.parallelism, 1);
      if (key == "completionMode") return read_word(field, fault, "Indexed", job.indexed);
      if (key == "suspend") return read_bool(field, fault, job.suspended);
      if (key == "manualSelector") return read_bool(field, fault, job.manual_selector);
      if (key == "podReplacementPolicy") return read_word(field, fault, "Failed", job.replaces_when_failed);
      if (key == "managedBy") return read_name(field, fault, job.managed_by);
      if (key == "podFailurePolicy") return read_failure_policy(field, fault, job.failure_rules);
      if (key == "template") return read_template(field, fault, job);
      return true;
    };
    return read() || fault.in(key);
  });
}

bool read_uncounted(JsonValue value, Fault& fault, std::int64_t& uncounted) {
  uncounted = 0;
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key != "failed" && key != "succeeded") return true;
    const bool read = each_item(field, fault, [&](JsonValue item) {
      std::string uid;
      if (!read_name(item, fault, uid)) return false;
      ++uncounted;
      return true;
    });
    return read || fault.in(key);
  });
}

bool read_job_conditions(JsonValue value, Fault& fault, std::vector<Condition>& conditions) {
  conditions.clear();
  return each_item(value, fault, [&](JsonValue item) {
    Condition condition;
    if (!read_condition(item, fault, condition)) return false;
    if (is_kept_job_condition(condition)) conditions.push_back(std::move(condition));
    return true;
  });
}

bool read_status(JsonValue value, Fault& fault, Job& job) {
  job.failed = job.succeeded = job.active = job.terminating = job.uncounted = 0;
  job.failed_indexes.clear();
  job.conditions.clear();
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    const auto read = [&] {
      if (key == "failed") return read_number(field, fault, job.failed, 0);
      if (key == "succeeded") return read_number(field, fault, job.succeeded, 0);
      if (key == "active") return read_number(field, fault, job.active, 0);
      if (key == "terminating") return read_number(field, fault, job.terminating, 0);
      if (key == "uncountedTerminatedPods") return read_uncounted(field, fault, job.uncounted);
      if (key == "failedIndexes") return read_text(field, fault, job.failed_indexes);
      if (key == "conditions") return read_job_conditions(field, fault, job.conditions);
      return true;
    };
    return read() || fault.in(key);
  });
}

}  // namespace

JobFailureRule::Action failure_action_of(std::string_view word) {
  using enum JobFailureRule::Action;
  return word == "Ignore" ? Ignore : word == "FailJob" ? FailJob : word == "FailIndex" ? FailIndex : Count;
}

bool is_kept_job_condition(const Condition& condition) {
  constexpr std::array<std::string_view, 5> kKept = {"Complete", "Failed", "FailureTarget", "SuccessCriteriaMet",
                                                     "Suspended"};
  return std::ranges::find(kKept, condition.type) != kKept.end();
}

void keep_what_matters(Job& job, const KeptFields& kept) {
  job.meta.labels.erase_if(
      [&](const auto& label) { return !label.first.starts_with("kueue.x-k8s.io/") && !kept.contains(label.first); });
  job.meta.labels.shrink_to_fit();
  job.conditions.shrink_to_fit();
  if (!is_finished(job)) return;
  Job small;
  small.meta = std::move(job.meta);
  small.conditions = std::move(job.conditions);
  for (auto& condition : small.conditions) condition.message = {};
  small.managed_by = std::move(job.managed_by);
  job = std::move(small);
}

bool read_job(JsonObject root, Fault& fault, const KeptFields& kept, Job& job) {
  const bool read = read_root(root, fault, kept, Kind::Job, job.meta, [&](std::string_view key, JsonValue value) {
    if (key == "spec") return read_spec(value, fault, job);
    if (key == "status") return read_status(value, fault, job);
    return true;
  });
  if (!read) return false;
  keep_what_matters(job, kept);
  return true;
}

}  // namespace dhc::k8s
