#pragma once
#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "app/health_report.h"
#include "base/now.h"
#include "domain/cluster/world.h"
#include "domain/contract/verdict.h"
#include "domain/incidents/incident_store.h"
#include "domain/limits/brake.h"
#include "domain/limits/caps.h"
#include "domain/policy/policy.h"

namespace dhc {

/// What the live page shows, in entries: a key such as `node/NAME` or `verdict/...`, and a JSON object. No entry tells
/// a time that passes, such as an age: one that says the same is the same text.
using Overview = std::map<std::string, std::string>;

/// All that the overview of a turn is made from.
struct OverviewInput {
  const World& world;
  const Policy& policy;
  const Brake& brake;
  const IncidentStore& incidents;
  const Caps& caps;
  std::span<const Verdict> verdicts;
  std::size_t in_flight = 0;
  Now now;
  const std::set<std::string>* nodes = nullptr;  ///< Of the nodes only these; null: all.
};

/// The keys of nodes begin so.
inline constexpr std::string_view kNodeEntry = "node/";

/// Nodes with their devices, incidents, verdicts with what their reasons mean, brakes, caps, limits and the gates of an
/// eviction. Names and messages are others' words, as they came: whoever shows them shows text.
[[nodiscard]] Overview overview_of(const OverviewInput& input);

/// Nodes on which something is wrong: a device that is not healthy, or an incident that is open.
[[nodiscard]] std::set<std::string> busy_nodes(const World& world, const IncidentStore& incidents);

/// Who leads, whether anything is judged here, the mode, what is wrong with the configuration, and each watch with its
/// last word, to ten seconds.
[[nodiscard]] Overview overview_of_facts(const Facts& facts, const Now& now);

// Parts of the first.
void add_nodes(Overview& overview, const OverviewInput& input);
void add_incidents(Overview& overview, const OverviewInput& input);

}  // namespace dhc
