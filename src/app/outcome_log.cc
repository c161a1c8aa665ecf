#include "app/outcome_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/describe.h"
#include "base/rfc3339.h"

namespace dhc {

namespace {
LogLevel level_of(const Outcome& outcome, bool is_notable) {
  if (!outcome.status) return outcome.status.error().kind == ErrorKind::Cancelled ? LogLevel::Debug : LogLevel::Warn;
  // What changes the cluster for others is said; the rest follows from verdicts.
  return is_notable ? LogLevel::Info : LogLevel::Debug;
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
                       {"containers", fmt::format("{}", fmt::join(verdict.containers, ","))},
                       {"policy", verdict.policy},
                       {"mode", verdict.mode},
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
  const auto about = facts_of(outcome.action);
  const bool ok = outcome.status.has_value();
  log.write(level_of(outcome, about.is_notable), "action",
            {{"action", about.name},
             {"outcome", ok ? std::string_view("ok") : to_string(outcome.status.error().kind)},
             {"kind", about.kind},
             {"namespace", about.ns},
             {"name", about.object},
             {"uid", about.uid},
             {"what", about.what},
             {"error", ok ? std::string_view() : std::string_view(outcome.status.error().message)}});
}

}  // namespace dhc
