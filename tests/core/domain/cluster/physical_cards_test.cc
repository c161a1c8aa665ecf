#include "domain/cluster/physical_cards.h"

#include <doctest/doctest.h>

using namespace dhc;

namespace {

using Devices = std::vector<k8s::SliceDevice>;

std::map<std::string, std::string> cards_of(const Devices& devices, const Devices& of_other_slice = {}) {
  k8s::ResourceSlice slice;
  slice.devices = devices;
  k8s::ResourceSlice other;
  other.devices = of_other_slice;
  std::map<std::string, std::string> cards;
  for (const auto& [name, card] : physical_cards({&slice, &other})) cards.emplace(name, card);
  return cards;
}

using Cards = std::map<std::string, std::string>;

}  // namespace

TEST_CASE(
    "a card and its partitions are one by the bus, by the parent's UUID, by their counters, and by any chain of "
    "these") {
  // NVIDIA's: the whole GPU has its bus and UUID, a partition its parent's UUID, both draw on the GPU's counters.
  CHECK(cards_of({{"gpu-0", {}, {{"resource.kubernetes.io/pciBusID", "0000:03"}, {"uuid", "GPU-a"}}},
                  {"gpu-0-mig-1", {}, {{"parentUUID", "GPU-a"}, {"uuid", "MIG-1"}}},
                  {"gpu-1", {}, {{"resource.kubernetes.io/pciBusID", "0000:04"}, {"uuid", "GPU-b"}}}}) ==
        Cards{{"gpu-0", "0000:03"}, {"gpu-0-mig-1", "0000:03"}, {"gpu-1", "0000:04"}});
  CHECK(cards_of({{"a", {}, {}, "counters-0"}, {"b", {}, {}, "counters-0"}, {"c", {}, {}, "counters-1"}}) ==
        Cards{{"a", "counters-0/a"}, {"b", "counters-0/a"}, {"c", "counters-1/c"}});
  CHECK(cards_of({{"a", {}, {{"pciBusID", "x"}}, "counters-0"}, {"b", {}, {}, "counters-0"}}) ==
        Cards{{"a", "x"}, {"b", "x"}});
}

TEST_CASE("a UUID that several devices have and none calls its parent's joins nothing, and no name is no card") {
  CHECK(cards_of({{"tpu-0", {}, {{"uuid", "node"}}}, {"tpu-1", {}, {{"uuid", "node"}}}}) ==
        Cards{{"tpu-0", "tpu-0"}, {"tpu-1", "tpu-1"}});
  CHECK(cards_of({{"a", {}, {{"pciBusID", ""}}}, {"b", {}, {{"pciBusID", ""}}}}) == Cards{{"a", "a"}, {"b", "b"}});
  CHECK(cards_of({}).empty());
}

TEST_CASE("a bus and a set of counters of the same name are not the same") {
  CHECK(cards_of({{"a", {}, {{"pciBusID", "x"}}}, {"b", {}, {}, "x"}}).at("a") == "x");
  CHECK(cards_of({{"a", {}, {{"pciBusID", "x"}}}, {"b", {}, {}, "x"}, {"c", {}, {{"pciBusID", "y"}}, "x"}}) ==
        Cards{{"a", "x"}, {"b", "y"}, {"c", "y"}});
}

TEST_CASE("sets of counters of one name in two slices are two, and a bus is one in both") {
  // Up to 1.34 a set's name is unique in its slice alone.
  CHECK(cards_of({{"a", {}, {}, "counters"}}, {{"b", {}, {}, "counters"}}) ==
        Cards{{"a", "counters/a"}, {"b", "counters/b"}});
  CHECK(cards_of({{"a", {}, {{"pciBusID", "x"}}}}, {{"b", {}, {{"pciBusID", "x"}}}}) == Cards{{"a", "x"}, {"b", "x"}});
}
