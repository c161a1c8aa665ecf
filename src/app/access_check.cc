#include "app/access_check.h"

#include "app/clock.h"

namespace dhc {

namespace {
constexpr Seconds kPatience{5};
constexpr Seconds kOneAnswer{2};
}  // namespace

bool check_access(const std::vector<NeededVerb>& verbs, const k8s::Client& client, Log& log,
                  const std::stop_token& stop) {
  const MonoTime deadline = mono_now() + kPatience;
  std::size_t unanswered = 0;
  for (const auto& needed : verbs) {
    if (mono_now() >= deadline || stop.stop_requested()) return false;
    auto request = build_access_review(needed);
    request.timeouts = {.connect = kOneAnswer, .idle = kOneAnswer, .total = kOneAnswer};
    const auto answer = client.call(request, stop);
    if (!answer) {
      // One that is too busy for this question may have time for the next.
      ++unanswered;
      log.debug("right not asked for",
                {{"verb", needed.verb}, {"resource", needed.resource}, {"error", answer.error().message}});
      continue;
    }
    const auto allowed = parse_access_review(answer->body);
    if (allowed && !*allowed) log.warn(forbidden_line(needed));
  }
  log.debug("rights asked for", {{"verbs", verbs.size()}});
  return unanswered == 0;
}

}  // namespace dhc
