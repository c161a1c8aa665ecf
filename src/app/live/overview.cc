#include "app/live/overview.h"

#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/verdict_json.h"
#include "base/json_text.h"
#include "base/rfc3339.h"
#include "domain/findings/pauses.h"
#include "reconcilers/eviction/gates.h"

namespace dhc {

namespace {
using Json = nlohmann::ordered_json;

std::int64_t seconds_of(Millis time) { return std::chrono::duration_cast<Seconds>(time).count(); }

void add_verdicts(Overview& overview, std::span<const Verdict> verdicts) {
  std::set<Reason> reasons;
  for (const auto& verdict : verdicts) {
    const auto& subject = verdict.subject;
    overview.insert_or_assign(fmt::format("verdict/{}/{}/{}/{}/{}/{}", subject.kind, subject.ns, subject.name,
                                          subject.uid, verdict.device, to_string(verdict.reason)),
                              json_text(verdict_json(verdict)));
    reasons.insert(verdict.reason);
  }
  for (const auto reason : reasons) {
    const auto& info = info_of(reason);
    overview.emplace(fmt::format("reason/{}", info.word), json_text(Json{{"meaning", info.meaning},
                                                                         {"remedy", info.remedy},
                                                                         {"warns", info.event == EventType::Warning},
                                                                         {"forGood", info.for_good}}));
  }
}

void add_brakes(Overview& overview, const OverviewInput& input) {
  for (const auto& [scope, brake] : input.brake.engaged()) {
    Json json = {{"scope", scope.scope},
                 {"node", scope.node},
                 {"countsNodes", scope.nodes},
                 {"what", to_string(scope, brake)},
                 {"waitsFor", waits_for(brake, input.policy.limits, input.now)},
                 {"since", format_rfc3339(brake.since.wall)},
                 {"trials", brake.trials},
                 {"halfOpen", brake.trial.has_value()}};
    auto name = fmt::format("brake/{}/{}/{}", scope.scope, scope.node, scope.nodes ? "nodes" : "devices");
    if (!scope.words.empty()) name += "/words/" + scope.words;
    if (!scope.workload.empty()) name += "/workload/" + scope.workload;
    overview.emplace(std::move(name), json_text(json));
  }
}

void add_caps(Overview& overview, const OverviewInput& input) {
  for (const auto& use : input.caps.in_use()) {
    overview.emplace("cap/" + use.scope, json_text(Json{{"scope", use.scope},
                                                        {"out", use.out},
                                                        {"allowed", use.allowed},
                                                        {"known", use.known},
                                                        {"evictedToday", use.evictions},
                                                        {"allowedToday", use.allowed_evictions}}));
  }
}

void add_limits(Overview& overview, const OverviewInput& input) {
  const auto& limits = input.policy.limits;
  const auto all = pause_of(input.policy, input.now.wall);
  Json parts = Json::array();
  for (const auto& pause : standing_pauses(input.policy, input.now.wall)) parts.push_back(pause.why);
  overview.emplace("limits", json_text(Json{{"paused", all.has_value()},
                                            {"pausedBecause", all ? all->why : std::string()},
                                            {"pausedParts", std::move(parts)},
                                            {"inFlight", input.in_flight},
                                            {"maxInFlight", limits.max_in_flight},
                                            {"evictionsPerMinute", limits.evictions_per_minute},
                                            {"perNode", limits.per_node},
                                            {"perOwner", limits.per_owner},
                                            {"taintsPerMinute", limits.taints_per_minute},
                                            {"brakePercent", limits.brake_percent},
                                            {"brakeAtLeast", limits.brake_at_least},
                                            {"brakeWithinSeconds", seconds_of(limits.brake_within)}}));
}

void add_policies(Overview& overview, const Policy& policy) {
  Json list = Json::array();
  for (const auto& one : policy.policies) {
    Json json = {{"name", one.name},
                 {"mode", to_string(one.mode)},
                 {"effectiveMode", to_string(effective_mode(&one, policy))},
                 {"afterSeconds", seconds_of(one.after)},
                 {"taints", one.taint.has_value()},
                 {"credits", one.job_retry && one.job_retry->credit},
                 {"evicts", one.evict.has_value()},
                 {"evictAfterSeconds", nullptr}};
    if (one.evict) json["evictAfterSeconds"] = seconds_of(one.evict->after);
    list.push_back(std::move(json));
  }
  overview.emplace("policies", json_text(list));
}

void add_gates(Overview& overview) {
  Json list = Json::array();
  for (const auto& gate : eviction::Gates::texts()) list.push_back({{"name", gate.name}, {"passes", gate.passes}});
  overview.emplace("gates", json_text(list));
}
}  // namespace

Overview overview_of(const OverviewInput& input) {
  Overview overview;
  add_gates(overview);
  add_policies(overview, input.policy);
  add_limits(overview, input);
  add_caps(overview, input);
  add_brakes(overview, input);
  add_verdicts(overview, input.verdicts);
  add_incidents(overview, input);
  add_nodes(overview, input);
  return overview;
}

}  // namespace dhc
