#include "domain/incidents/handed_state.h"

#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "domain/history/incident_id.h"

namespace dhc {

namespace {

HandedObject handed(const std::string& node, HandedObject::Phase phase) {
  return {.node = node,
          .device = "gpu.example.com/" + node + "/gpu-0",
          .policy = "p",
          .api_version = "a.b/v1",
          .kind = "K",
          .ns = "repair",
          .name = node,
          .incident = "0123456789ab",
          .incidents = {"0123456789ab", "ba9876543210"},
          .keeps = true,
          .phase = phase,
          .at = WallTime(Seconds(1'800'000'000)),
          .revision = 0,
          .is_doubted = true,
          .comes_by = {}};
}

std::string changed(const std::string& member, const nlohmann::json& value) {
  HandedObjects objects;
  objects.load({{"slot-1", handed("node-a", HandedObject::Phase::Made)}});
  auto json = nlohmann::json::parse(handed_state_text(objects));
  json[0][member] = value;
  return json.dump();
}

}  // namespace

TEST_CASE(
    "What is remembered of objects is read as it was written, and another process has to find out whether one is "
    "there") {
  HandedObjects objects;
  objects.load({{"slot-1", handed("node-a", HandedObject::Phase::Noted)},
                {"slot-2", handed("node-b", HandedObject::Phase::Made)},
                {"slot-3", handed("node-c", HandedObject::Phase::Over)}});
  auto noted = *objects.find("slot-1");
  noted.is_doubted = false;
  noted.revision = 7;
  objects.take({{"slot-1", noted}}, 9);
  CHECK(objects.find("slot-1")->revision == 9);
  const auto read = parse_handed_state(handed_state_text(objects));
  CHECK(read.all().size() == 3);
  CHECK(read.find("slot-1")->is_doubted);
  CHECK(read.find("slot-1")->revision == 0);
  CHECK(*read.find("slot-2") == *objects.find("slot-2"));
  CHECK(*read.find("slot-3") == *objects.find("slot-3"));
  CHECK(handed_state_text(HandedObjects()).empty());
}

TEST_CASE("What was not written by us is left out, and the rest stands") {
  CHECK(parse_handed_state(changed("name", "x")).all().size() == 1);
  CHECK(parse_handed_state(changed("name", "")).all().empty());
  CHECK(parse_handed_state(changed("name", 3)).all().empty());
  CHECK(parse_handed_state(changed("phase", "Burnt")).all().empty());
  CHECK(parse_handed_state(changed("at", "yesterday")).all().empty());
  CHECK(parse_handed_state(changed("incidents", "all")).all().empty());
  CHECK(parse_handed_state(changed("slot", std::string(2000, 'x'))).all().empty());
  for (const auto* text : {"", "{}", "[1, null, []]", "\xff"}) CHECK(parse_handed_state(text).all().empty());
}

TEST_CASE("There is room for so many objects, and none is left out") {
  HandedObjects::All all;
  for (std::size_t i = 0; i < HandedObjects::kMost; ++i)
    all.emplace("slot-" + std::to_string(i), handed("node-a", HandedObject::Phase::Made));
  HandedObjects objects;
  objects.load(all);
  CHECK(is_full(objects));
  CHECK(parse_handed_state(handed_state_text(objects)).all().size() == HandedObjects::kMost);
  all.erase("slot-0");
  objects.load(all);
  CHECK(!is_full(objects));
  auto long_one = handed(std::string(253, 'n'), HandedObject::Phase::Made);
  long_one.device = std::string(1000, 'd');
  long_one.incidents.clear();
  for (std::size_t i = 0; i < HandedObjects::kMostIncidents; ++i)
    long_one.incidents.insert("incident-" + std::to_string(100 + i));
  objects.load({{"slot-0", long_one}});
  CHECK(handed_state_text(objects).size() < kHandedObjectLimit);
}

TEST_CASE("An incident's name is that of its device and its beginning, to the second") {
  const auto key = DeviceKey::dra("d", "p", "gpu-0");
  const WallTime at(Seconds(100));
  const auto id = incident_id(key, at + Millis(700));
  CHECK(id.size() == 16);
  CHECK(incident_id(key, at) == id);
  CHECK(incident_id(key, at + Seconds(1)) != id);
  CHECK(incident_id(DeviceKey::dra("d", "p", "gpu-1"), at) != id);
}

}  // namespace dhc
