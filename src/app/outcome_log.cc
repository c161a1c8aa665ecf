#include "app/outcome_log.h"

#include <optional>
#include <variant>

#include "base/rfc3339.h"

namespace dhc {

namespace {
/// How an action stands in a log line.
struct Named {
  std::string_view action;
  std::string_view kind;
  std::string_view ns;
  std::string_view name;
  std::string_view uid;
  std::string_view what;  ///< The device, or the word of a condition or Event.
};

/// Those about devices and the memory; none: another action.
std::optional<Named> named_device_action(const Action& action) {
  if (const auto* apply = std::get_if<taint::ApplyRule>(&action)) {
    return Named{"ApplyRule", "DeviceTaintRule", {}, apply->name, apply->uid, apply->device};
  }
  if (const auto* removal = std::get_if<taint::DeleteRule>(&action)) {
    return Named{"DeleteRule", "DeviceTaintRule", {}, removal->name, removal->uid, removal->device};
  }
  if (const auto* patch = std::get_if<taint::PatchNodeTaint>(&action)) {
    return Named{"PatchNodeTaint", "Node", {}, patch->node, {}, patch->add ? "taint" : "untaint"};
  }
  if (const auto* state = std::get_if<memory::WriteState>(&action)) {
    return Named{"WriteState", "ConfigMap", state->ns, state->name, {}, {}};
  }
  return std::nullopt;
}

Named named(const Action& action) {
  if (const auto about = named_device_action(action)) return *about;
  if (const auto* evict = std::get_if<eviction::EvictPod>(&action)) {
    return {"EvictPod", "Pod", evict->ns, evict->name, evict->uid, evict->device};
  }
  if (const auto* condition = std::get_if<notice::ApplyCondition>(&action)) {
    return {"ApplyCondition",
            "Pod",
            condition->ns,
            condition->name,
            condition->uid,
            condition->wanted ? std::string_view(condition->wanted->reason) : std::string_view("removed")};
  }
  if (const auto* patch = std::get_if<job_retry::PatchJob>(&action)) {
    return {"PatchJob", "Job", patch->ns, patch->name, patch->uid, patch->device};
  }
  if (const auto* made = std::get_if<job_retry::RecreateJob>(&action)) {
    return {"RecreateJob", "Job", made->ns, made->name, made->uid, made->device};
  }
  const auto& event = std::get<notice::EmitEvent>(action);
  return {"EmitEvent",          event.regarding.kind, event.regarding.ns,
          event.regarding.name, event.regarding.uid,  event.reason};
}

LogLevel level_of(const Outcome& outcome) {
  if (!outcome.status) return outcome.status.error().kind == ErrorKind::Cancelled ? LogLevel::Debug : LogLevel::Warn;
  // What changes the cluster for others is said; the rest follows from verdicts.
  const bool notable = std::holds_alternative<eviction::EvictPod>(outcome.action) ||
                       std::holds_alternative<taint::ApplyRule>(outcome.action) ||
                       std::holds_alternative<taint::DeleteRule>(outcome.action) ||
                       std::holds_alternative<taint::PatchNodeTaint>(outcome.action) ||
                       std::holds_alternative<job_retry::PatchJob>(outcome.action) ||
                       std::holds_alternative<job_retry::RecreateJob>(outcome.action);
  return notable ? LogLevel::Info : LogLevel::Debug;
}
}  // namespace

void log_unreadable(Log& log, const k8s::Unreadable& bad) {
  log.warn("object could not be read", {{"kind", k8s::to_string(bad.kind)},
                                        {"namespace", bad.ns},
                                        {"name", bad.name},
                                        {"uid", bad.uid},
                                        {"why", bad.why}});
}

void log_verdict(Log& log, const Verdict& verdict) {
  const auto& subject = verdict.subject;
  log.info("verdict", {{"reason", to_string(verdict.reason)},
                       {"kind", subject.kind},
                       {"namespace", subject.ns},
                       {"name", subject.name},
                       {"uid", subject.uid},
                       {"device", verdict.device},
                       {"policy", verdict.policy},
                       {"since", format_rfc3339(verdict.since)},
                       {"nextStepAt", verdict.next_at ? format_rfc3339(*verdict.next_at) : std::string()},
                       {"message", verdict.message}});
}

void log_verdict_ended(Log& log, const Verdict& verdict) {
  log.debug("verdict ended", {{"reason", to_string(verdict.reason)},
                              {"kind", verdict.subject.kind},
                              {"namespace", verdict.subject.ns},
                              {"name", verdict.subject.name},
                              {"device", verdict.device}});
}

void log_outcome(Log& log, const Outcome& outcome) {
  const auto about = named(outcome.action);
  const bool ok = outcome.status.has_value();
  log.write(level_of(outcome), "action",
            {{"action", about.action},
             {"outcome", ok ? std::string_view("ok") : to_string(outcome.status.error().kind)},
             {"kind", about.kind},
             {"namespace", about.ns},
             {"name", about.name},
             {"uid", about.uid},
             {"what", about.what},
             {"error", ok ? std::string_view() : std::string_view(outcome.status.error().message)}});
}

}  // namespace dhc
