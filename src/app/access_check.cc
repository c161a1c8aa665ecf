#include "app/access_check.h"

#include "app/clock.h"
#include "app/server_version.h"

namespace dhc {

namespace {
constexpr Seconds kOneAnswer{2};

k8s::Request quick(k8s::Request request) {
  request.timeouts = {.connect = kOneAnswer, .idle = kOneAnswer, .total = kOneAnswer};
  return request;
}
}  // namespace

bool check_access(const std::vector<NeededVerb>& verbs, const k8s::Client& client, Log& log,
                  const std::stop_token& stop, Millis patience) {
  const MonoTime deadline = mono_now() + patience;
  std::size_t unanswered = 0;
  std::size_t asked = 0;
  for (const auto& needed : verbs) {
    if (stop.stop_requested()) return false;
    if (mono_now() >= deadline) {
      log.warn(
          "permissions are not all checked: the API server is too slow",
          {{"checked", asked}, {"of", verbs.size()}, {"nextVerb", needed.verb}, {"nextResource", needed.resource}});
      return false;
    }
    ++asked;
    const auto answer = client.call(quick(build_access_review(needed)), stop);
    if (!answer) {
      // One that is too busy for this question may have time for the next.
      ++unanswered;
      log.debug("permission check failed",
                {{"verb", needed.verb}, {"resource", needed.resource}, {"error", answer.error().message}});
      continue;
    }
    const auto allowed = parse_access_review(answer->body);
    if (allowed && !*allowed) log.warn(forbidden_line(needed));
  }
  log.debug("permissions checked", {{"verbs", verbs.size()}});
  return unanswered == 0;
}

void check_version(const k8s::Client& client, Mode mode, Log& log, const std::stop_token& stop) {
  const auto answer = client.call(quick(k8s::read_request("/version")), stop);
  if (!answer) return;
  if (const auto warning = warning_of_reports(answer->body)) log.warn(*warning);
  if (mode != Mode::Enforce) return;
  if (const auto warning = warning_of_rules(answer->body)) log.warn(*warning);
}

}  // namespace dhc
