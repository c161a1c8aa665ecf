#include "app/policy_desk.h"

#include <utility>

#include <fmt/format.h>

namespace dhc {

PolicyDesk::PolicyDesk(PolicyFrame frame, std::function<void(Message)> send, StatusStore& status_store,
                       Metrics& metrics, Log& log)
    : frame_(std::move(frame)), send_(std::move(send)), status_store_(status_store), metrics_(metrics), log_(log) {}

void set_annotations(Policy& policy, const PolicyRead& read) {
  policy.brake_release = read.brake_release;
  policy.cap_release = read.cap_release;
  policy.pause_until = read.pause_until;
  policy.pause_reason = read.pause_reason;
  if (read.pauses) policy.pauses = *read.pauses;
}

void PolicyDesk::take(PolicyRead read) {
  const bool is_expected = expected_.exchange(false);
  if (!read.policy || !read.pauses) {
    const auto error = read.policy ? read.pauses.error() : read.policy.error();
    // A policy that is taken in hides what was rejected before.
    if (keep(read)) problem_.clear();
    return reject(error, std::move(read.source), is_expected);
  }
  auto policy = std::move(*read.policy);
  policy.mode_cap = frame_.mode_cap;
  policy.events = frame_.events;
  policy.status = frame_.status;
  policy.own_namespace = frame_.own_namespace;
  policy.own_pod_uid = frame_.own_pod_uid;
  set_annotations(policy, read);
  policy.source = std::move(read.source);
  accept(std::move(policy), is_expected);
}

void PolicyDesk::accept(Policy policy, bool is_expected) {
  const bool same = current_ && *current_ == policy;
  if (same && problem_.empty()) {
    if (is_expected) log_.info("configuration read again: unchanged");
    return;
  }
  problem_.clear();
  current_ = std::make_shared<const Policy>(std::move(policy));
  metrics_.policy_reloaded(true);
  status_store_.policy_loaded();
  status_store_.policy_in_force(current_);
  log_.info("configuration accepted", {{"policies", current_->policies.size()},
                                       {"modeCap", to_string(current_->mode_cap)},
                                       {"paused", current_->limits.paused ? "true" : "false"},
                                       {"pauseUntil", current_->pause_until},
                                       {"pausesOfParts", current_->limits.pauses.size() + current_->pauses.size()}});
  send_(PolicyChanged{.policy = current_});
}

/// Takes the annotations over into the last good configuration. True if it is another by that.
bool PolicyDesk::keep(PolicyRead& read) {
  if (!current_ || !read.is_read) return false;
  auto policy = *current_;
  set_annotations(policy, read);
  if (policy == *current_) return false;
  current_ = std::make_shared<const Policy>(std::move(policy));
  status_store_.policy_in_force(current_);
  send_(PolicyChanged{.policy = current_});
  return true;
}

void PolicyDesk::reject(const Error& error, std::optional<Subject> source, bool is_expected) {
  if (problem_ == error.message) {
    if (is_expected) log_.error("configuration read again: rejected as before", {{"error", problem_}});
    return;
  }
  problem_ = error.message;
  metrics_.policy_reloaded(false);
  status_store_.policy_problem(problem_);
  log_.error("configuration rejected", {{"reason", to_string(Reason::ConfigRejected)},
                                        {"kept", current_ ? "the last good one stays in force" : "nothing is decided"},
                                        {"error", problem_}});
  send_(PolicyRejected{.why = problem_, .source = std::move(source)});
}

Result<Policy> policy_of(ConfigResult config) {
  if (!config) {
    const auto& mistakes = config.error();
    if (mistakes.empty()) return fail(ErrorKind::Invalid, "the configuration could not be read");
    const auto& first = mistakes.front();
    const auto more = mistakes.size() - 1;
    return fail(ErrorKind::Invalid,
                fmt::format("{}:{}:{}: {}; {}{}", first.file, first.line, first.column, first.message, first.remedy,
                            more == 0 ? "" : fmt::format(" (and {} more)", more)));
  }
  Policy policy;
  policy.policies = std::move(config->policies);
  policy.limits = config->limits;
  return policy;
}

Policy built_in_policy() {
  DevicePolicy all;
  all.name = "built-in";
  all.mode = Mode::Observe;
  all.evict = EvictRules{};
  Policy policy;
  policy.policies.push_back(std::move(all));
  return policy;
}

}  // namespace dhc
