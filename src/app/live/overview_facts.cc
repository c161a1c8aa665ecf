#include <nlohmann/json.hpp>

#include "app/live/overview.h"
#include "base/json_text.h"
#include "base/rfc3339.h"
#include "base/version.h"

namespace dhc {

namespace {
using Json = nlohmann::ordered_json;
/// A watch of a busy cluster speaks all the time; to the second, each word would be news for every reader.
using TenSeconds = std::chrono::duration<std::int64_t, std::ratio<10>>;

Json json_of(const WatchFact& watch, const Now& now) {
  Json json = {{"kind", k8s::to_string(watch.kind)},    {"listed", watch.listed},   {"forbidden", watch.forbidden},
               {"tooOld", is_too_old(watch, now.mono)}, {"problem", watch.problem}, {"heardAt", nullptr}};
  if (watch.heard_at) json["heardAt"] = format_rfc3339(std::chrono::floor<TenSeconds>(wall_of(*watch.heard_at, now)));
  return json;
}
}  // namespace

Overview overview_of_facts(const Facts& facts, const Now& now) {
  const auto& election = facts.election;
  Json json = {{"version", version()},
               {"role", role_of(facts)},
               {"leader", leader_of(facts)},
               {"mode", to_string(facts.mode)},
               {"silent", why_silent(facts)},
               {"policyProblem", facts.policy_problem},
               {"electionProblem", election ? election->problem : std::string()},
               {"since", nullptr}};
  if (election && election->since) json["since"] = format_rfc3339(*election->since);
  Json watches = Json::array();
  for (const auto& watch : facts.watches) watches.push_back(json_of(watch, now));
  return {{"controller", json_text(json)}, {"watches", json_text(watches)}};
}

}  // namespace dhc
