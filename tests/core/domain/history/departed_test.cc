// How long a card is remembered that has left its place, and how many of them are.
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "domain/incidents/incident_store.h"

namespace dhc::departed_test {

namespace {

using std::chrono::hours;

const WallTime kBegin = std::chrono::sys_days(std::chrono::year(2026) / 11 / 20);

DeviceRecord lemon(const std::string& pool, const std::string& identity) {
  DeviceRecord record;
  record.key = DeviceKey::dra("gpu.example.com", pool, "gpu-0");
  record.card.value = identity;
  record.past.count = 3;
  record.past.penalty = 3;
  record.past.penalty_at = kBegin;
  record.past.is_lemon = true;
  return record;
}

void look(IncidentStore& incidents, Millis since) {
  const World world;
  const Policy policy;
  const Brake brake;
  const RejectingNodes rejecting_nodes;
  const std::vector<AffectedPod> affected_pods;
  const OwnerLosses losses;
  const std::map<std::string, WallTime> removed_rules;
  const std::map<std::string, WallTime> removed_taints;
  incidents.observe({.world = world,
                     .policy = policy,
                     .brake = brake,
                     .rejecting_nodes = rejecting_nodes,
                     .affected_pods = affected_pods,
                     .losses = losses,
                     .removed_rules = removed_rules,
                     .removed_taints = removed_taints,
                     .now = {.mono = MonoTime(hours(1)) + since, .wall = kBegin + since}});
}

}  // namespace

TEST_CASE("A quarantined card that has left its place is forgotten once its penalty is as good as none") {
  IncidentStore incidents;
  incidents.load({}, {lemon("node-a", "GPU-1")});
  // Three become less than a tenth in 4.907 half-lives of 336 hours.
  look(incidents, hours(1648));
  CHECK(incidents.departed().size() == 1);
  CHECK(incidents.revision() == 0);
  look(incidents, hours(1650));
  CHECK(incidents.departed().empty());
  CHECK(incidents.revision() == 1);
}

TEST_CASE("Of cards that have left one place the 64 heaviest and newest are remembered") {
  IncidentStore incidents;
  std::vector<DeviceRecord> departed = {lemon("node-b", "GPU-b")};
  for (int i = 0; i < 200; ++i) {
    departed.push_back(lemon("node-a", fmt::format("GPU-{}", i)));
    departed.back().past.penalty_at += std::chrono::seconds(i);
    if (i == 7) departed.back().past.penalty = 5;
    if (i == 199) departed.back().past.penalty = 1;
  }
  incidents.load({}, departed);
  look(incidents, hours(1));
  const auto& left = incidents.departed();
  const auto is_left = [&](const std::string& identity) {
    return left.contains(identity_key(departed.front().key, identity));
  };
  CHECK(left.size() == 65);
  CHECK(is_left("GPU-b"));
  CHECK(is_left("GPU-7"));
  CHECK(is_left("GPU-198"));
  CHECK(is_left("GPU-136"));
  CHECK_FALSE(is_left("GPU-135"));
  CHECK_FALSE(is_left("GPU-199"));
  CHECK(incidents.revision() == 1);
}

TEST_CASE("Of all cards that have left their places no more than 4096 are remembered") {
  IncidentStore incidents;
  std::vector<DeviceRecord> departed;
  for (int i = 0; i < 5000; ++i) departed.push_back(lemon(fmt::format("node-{}", i), fmt::format("GPU-{}", i)));
  incidents.load({}, departed);
  look(incidents, hours(1));
  CHECK(incidents.departed().size() == 4096);
}

}  // namespace dhc::departed_test
