#include "app/incident_counts.h"

#include <string>

#include <doctest/doctest.h>

namespace {
using dhc::count_incidents;
using dhc::DeviceKey;
using dhc::DeviceRecord;
using dhc::DeviceRecords;
using dhc::World;

void add(DeviceRecords& records, const DeviceKey& key, const char* policy, bool is_open, bool is_quarantined = false) {
  DeviceRecord record;
  record.key = key;
  record.past.policy = policy;
  if (is_open) record.incident = dhc::Incident::going_on({}, is_quarantined, dhc::Acknowledged::No);
  if (key.source == DeviceKey::Source::Dra) record.card.host = key.place;
  records[key] = record;
}
}  // namespace

TEST_CASE("open incidents are counted by policy, driver or resource, and node, closed ones are not") {
  DeviceRecords records;
  add(records, DeviceKey::dra("gpu.example.com", "node-a", "gpu-0"), "gpus", true, true);
  add(records, DeviceKey::dra("gpu.example.com", "node-a", "gpu-1"), "gpus", true);
  add(records, DeviceKey::dra("gpu.example.com", "node-a", "gpu-2"), "gpus", false);
  add(records, DeviceKey::plugin("node-b", "example.com/nic", "nic-0"), "nics", true);
  const auto counts = count_incidents(records, World());
  REQUIRE(counts.size() == 2);
  CHECK(counts[0].policy == "gpus");
  CHECK(counts[0].driver == "gpu.example.com");
  CHECK(counts[0].resource.empty());
  CHECK(counts[0].node == "node-a");
  CHECK(counts[0].open == 2);
  CHECK(counts[0].quarantined == 1);
  CHECK(counts[1].policy == "nics");
  CHECK(counts[1].driver.empty());
  CHECK(counts[1].resource == "example.com/nic");
  CHECK(counts[1].node == "node-b");
  CHECK(counts[1].open == 1);
  CHECK(counts[1].quarantined == 0);
}

TEST_CASE("only the nodes with the most bad devices are named, the others are counted together, and none is lost") {
  DeviceRecords records;
  const auto most = static_cast<int>(dhc::kMostIncidentNodes);
  for (int node = 0; node < most + 1; ++node) {
    const auto name = "node-" + std::to_string(1000 + node);
    // The first node has the fewest.
    for (int device = 0; device < (node == 0 ? 1 : 2); ++device) {
      add(records, DeviceKey::plugin(name, "example.com/gpu", "gpu-" + std::to_string(device)), "gpus", true);
    }
  }
  const auto counts = count_incidents(records, World());
  REQUIRE(counts.size() == dhc::kMostIncidentNodes + 1);
  CHECK(counts[0].node.empty());
  CHECK(counts[0].open == 1);
  CHECK(counts[1].node == "node-1001");
  CHECK(counts[1].open == 2);
}
