#include "app/health_report.h"

#include <chrono>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/verdict_json.h"
#include "base/believed_clock.h"
#include "base/json_text.h"
#include "base/rfc3339.h"
#include "domain/cluster/views.h"
#include "domain/findings/pauses.h"
#include "k8s-client/protocol/server_clock.h"

namespace dhc {

namespace {
using Json = nlohmann::ordered_json;

constexpr Seconds kLongestTurn{30};

void add_line(Report& report, bool ok, std::string_view text) {
  report.ok = report.ok && ok;
  report.text += fmt::format("[{}]{}\n", ok ? '+' : '-', text);
}

std::string because(std::string_view problem) { return problem.empty() ? std::string() : fmt::format(": {}", problem); }

std::string place(const ElectionFact& election) {
  if (election.leads) return "leader election: leading";
  const auto& holder = election.holder;
  if (election.leaderless) {
    return holder.empty()
               ? "leader election: nobody has led for a minute"
               : fmt::format("leader election: nobody has led for a minute; {} holds the Lease and does not renew it",
                             holder);
  }
  if (election.gave_back) return "leader election: the Lease was given back: a watch is silent";
  return holder.empty() ? "leader election: standing by" : fmt::format("leader election: {} leads", holder);
}

std::string standing(const ElectionFact& election) {
  if (!election.since) return place(election);
  return fmt::format("{}{} since {}", place(election), election.leads ? "" : ", not leading",
                     format_rfc3339(*election.since));
}

std::optional<std::int64_t> seconds_since_heard(const WatchFact& watch, MonoTime now) {
  if (!watch.heard_at) return std::nullopt;
  return std::chrono::duration_cast<Seconds>(now - *watch.heard_at).count();
}

std::string age_of(const WatchFact& watch, MonoTime now) {
  const auto seconds = seconds_since_heard(watch, now);
  return seconds ? fmt::format(", last message {} s ago", *seconds) : std::string();
}

/// Said, and no reason not to be ready: it is taken into account.
std::string clock_line(Millis ahead) {
  const auto apart = std::chrono::duration_cast<Millis>(std::chrono::abs(ahead)).count();
  if (k8s::relevant_ahead(ahead) == Millis::zero()) return "clock: within a second of the API server's";
  return fmt::format("clock: the API server's is {:.1f} s {} ours", static_cast<double>(apart) / 1000,
                     ahead > Millis::zero() ? "ahead of" : "behind");
}

bool is_running(k8s::WatchState state) {
  switch (state) {
    case k8s::WatchState::Watching:
    case k8s::WatchState::NotServed:
    case k8s::WatchState::Stopped:
      return true;
    case k8s::WatchState::Syncing:
    case k8s::WatchState::Resyncing:
    case k8s::WatchState::BackingOff:
    case k8s::WatchState::Forbidden:
      return false;
  }
  return false;
}
}  // namespace

WatchFact watch_fact(const k8s::WatchStatus& status) {
  WatchFact fact{.kind = status.kind,
                 .listed = status.synced,
                 .forbidden = status.state == k8s::WatchState::Forbidden,
                 .problem = {}};
  // A compacted version is no trouble: the list that follows is the remedy.
  if (status.state != k8s::WatchState::NotServed) fact.heard_at = status.last_event_at;
  fact.behind = status.behind;
  fact.went_back = status.went_back_how;
  const bool troubled = status.last_error && status.last_error->kind != ErrorKind::Gone;
  if (troubled && !is_running(status.state)) fact.problem = status.last_error->message;
  return fact;
}

Report healthz(const Facts& facts, MonoTime now) {
  Report report{.ok = true, .text = {}};
  const auto age = now - facts.last_turn;
  if (age < kLongestTurn) {
    add_line(report, true, "run loop");
  } else {
    add_line(report, false,
             fmt::format("run loop: no turn for {} s", std::chrono::duration_cast<Seconds>(age).count()));
  }
  return report;
}

bool is_too_old(const WatchFact& watch, MonoTime now) {
  return watch.behind || (watch.heard_at && now - *watch.heard_at >= kOldestView);
}

Report readyz(const Facts& facts, MonoTime now) {
  Report report{.ok = true, .text = {}};
  for (const auto& watch : facts.watches) {
    const auto kind = k8s::to_string(watch.kind);
    if (watch.forbidden) {
      add_line(report, false, fmt::format("{}: forbidden{}", kind, because(watch.problem)));
    } else if (!watch.listed) {
      add_line(report, false, fmt::format("{}: not listed yet{}", kind, because(watch.problem)));
    } else if (watch.behind) {
      add_line(report, false, fmt::format("{}: the data went back: {}; listing again", kind, watch.went_back));
    } else {
      // What was listed stays valid while its watch comes back: still ready, and said.
      const bool too_old = is_too_old(watch, now);
      add_line(
          report, !too_old,
          fmt::format("{}: listed{}{}{}", kind, age_of(watch, now),
                      too_old ? ": nothing is evicted, tainted or patched on it" : "", because(watch.problem)) +
              (watch.went_back.empty() ? "" : fmt::format("; the data went back: {}; listed again", watch.went_back)));
    }
  }
  if (facts.server_ahead) add_line(report, true, clock_line(*facts.server_ahead));
  if (facts.policy_loaded) {
    add_line(report, true, fmt::format("policy: loaded{}", because(facts.policy_problem)));
  } else {
    add_line(report, false, fmt::format("policy: not loaded{}", because(facts.policy_problem)));
  }
  if (const auto& election = facts.election) {
    add_line(report, !election->forbidden && !election->leaderless, standing(*election) + because(election->problem));
  }
  return report;
}

std::string_view role_of(const Facts& facts) {
  if (!facts.election) return "alone";
  return facts.election->leads ? "leader" : "standby";
}

std::string leader_of(const Facts& facts) {
  return facts.election && !facts.election->leaderless ? facts.election->holder : std::string();
}

std::string why_silent(const Facts& facts) {
  if (role_of(facts) == "standby") {
    const auto leader = leader_of(facts);
    return leader.empty() ? "this replica is a standby and serves no verdicts, and nobody is known to lead: see /readyz"
                          : fmt::format("this replica is a standby and serves no verdicts: ask the leader, {}", leader);
  }
  for (const auto& watch : facts.watches) {
    const bool is_needed = watch.kind != k8s::Kind::Lease && watch.kind != k8s::Kind::ConfigMap;
    if (is_needed && !watch.listed) {
      return fmt::format("nothing is judged yet: {} is not listed: see /readyz", k8s::to_string(watch.kind));
    }
  }
  if (!facts.policy_loaded && facts.policy_problem.empty()) return "nothing is judged yet: no policy is loaded";
  return {};
}

namespace {

/// As decisions go by it: a clock that is far from the API server's is not believed.
WallTime time_of(const Facts& facts, const Now& now) {
  const auto ahead = facts.server_ahead.value_or(Millis(0));
  return std::chrono::abs(ahead) > BelievedClock::kApart ? now.wall + ahead : now.wall;
}

Json pauses_of(const Policy& policy, WallTime now) {
  auto pauses = standing_pauses(policy, now);
  if (auto whole = pause_of(policy, now)) pauses.insert(pauses.begin(), *std::move(whole));
  auto json = Json::array();
  for (const auto& pause : pauses)
    json.push_back({{"why", pause.why}, {"until", pause.until ? Json(format_rfc3339(*pause.until)) : Json()}});
  return json;
}

}  // namespace

Report verdicts_report(const Facts& facts, const Now& now) {
  Json json = {
      {"leader", nullptr}, {"role", role_of(facts)}, {"mode", to_string(facts.mode)}, {"viewAges", Json::object()}};
  if (const auto leader = leader_of(facts); !leader.empty()) json["leader"] = leader;
  for (const auto& watch : facts.watches) {
    const auto seconds = seconds_since_heard(watch, now.mono);
    json["viewAges"][k8s::to_string(watch.kind)] = seconds ? Json(*seconds) : Json();
  }
  json["pauses"] = facts.policy ? pauses_of(*facts.policy, time_of(facts, now)) : Json::array();
  const auto silent = why_silent(facts);
  if (!silent.empty()) {
    json["verdicts"] = nullptr;
    json["message"] = silent;
    return {.ok = false, .text = json_text(json) + "\n"};
  }
  auto text = json_text(json);
  text.back() = ',';
  return {.ok = true, .text = text + R"("verdicts":)"};
}

std::string verdicts_list(std::span<const Verdict> verdicts) {
  std::string text = "[";
  for (const auto& verdict : verdicts) {
    if (text.size() > 1) text += ',';
    text += json_text(verdict_json(verdict));
  }
  return text + "]}\n";
}

}  // namespace dhc
