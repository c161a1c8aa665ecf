#include "domain/cluster/card_names.h"

#include <set>
#include <string>

#include <doctest/doctest.h>

using namespace dhc;

namespace {

using PublishedByName = std::map<std::string, PublishedDevice>;

PublishedDevice on_card(const std::string& card, k8s::StringMap attributes) {
  return {.taints = {}, .attributes = std::move(attributes), .card = card};
}

std::string identity_of_one(const PublishedByName& devices, const std::string& name, std::string_view attribute = {}) {
  const auto shared = shared_identities(devices);
  const auto found = identity_in({.devices = devices, .shared = shared}, name, devices.at(name), attribute);
  return found ? found->attribute + "=" + found->value : "none";
}

std::size_t count_marks(const PublishedByName& devices, std::string_view without = {}) {
  const auto shared = shared_identities(devices);
  return marks_of({.devices = devices, .shared = shared}, {}, without).size();
}

}  // namespace

TEST_CASE("a partition is named by its card and its own name, and by its own UUID only where that is asked for") {
  const PublishedByName devices = {
      {"gpu-0", on_card("a", {{"gpu.nvidia.com/uuid", "GPU-a"}})},
      {"gpu-0-mig-1", on_card("a", {{"gpu.nvidia.com/parentUUID", "GPU-a"}, {"gpu.nvidia.com/uuid", "MIG-1"}})},
      {"bare", on_card("b", {{"gpu.nvidia.com/parentUUID", ""}})}};
  CHECK(identity_of_one(devices, "gpu-0") == "gpu.nvidia.com/uuid=GPU-a");
  CHECK(identity_of_one(devices, "gpu-0-mig-1") == "gpu.nvidia.com/parentUUID=GPU-a/gpu-0-mig-1");
  CHECK(identity_of_one(devices, "gpu-0-mig-1", "gpu.nvidia.com/parentUUID") ==
        "gpu.nvidia.com/parentUUID=GPU-a/gpu-0-mig-1");
  CHECK(identity_of_one(devices, "gpu-0-mig-1", "gpu.nvidia.com/uuid") == "gpu.nvidia.com/uuid=MIG-1");
  CHECK(identity_of_one(devices, "gpu-0", "gpu.nvidia.com/parentUUID") == "none");
  CHECK(identity_of_one(devices, "bare") == "none");
  CHECK(card_name_of({.attribute = "gpu.nvidia.com/parentUUID", .value = "GPU-a/gpu-0-mig-1"}, "gpu-0-mig-1") ==
        "GPU-a");
  CHECK(card_name_of({.attribute = "uuid", .value = "a/gpu-0"}, "gpu-0") == "a/gpu-0");
  CHECK(card_name_of({.attribute = "parentUUID", .value = "agpu-0"}, "gpu-0") == "agpu-0");
}

TEST_CASE("a card has one mark whatever it is divided into, and a value that several have is nobody's") {
  const PublishedByName devices = {{"gpu-0", on_card("a", {{"uuid", "GPU-a"}})},
                                   {"gpu-0-mig-1", on_card("a", {{"parentUUID", "GPU-a"}, {"uuid", "MIG-1"}})},
                                   {"gpu-0-mig-2", on_card("a", {{"parentUUID", "GPU-a"}, {"uuid", "MIG-2"}})},
                                   {"gpu-1", on_card("b", {{"uuid", "GPU-b"}})},
                                   {"nic", on_card("nic", {})}};
  CHECK(count_marks(devices) == 2);
  CHECK(count_marks(devices, "a") == 1);
  CHECK(count_marks({{"0", on_card("0", {{"uuid", "node"}})}, {"1", on_card("1", {{"uuid", "node"}})}}) == 0);
}

TEST_CASE("a value that several cards have in the attribute that is asked for is nobody's, and partitions of one may") {
  const PublishedByName devices = {{"gpu-0", on_card("a", {{"board", "7"}, {"slot", "0"}})},
                                   {"gpu-1", on_card("b", {{"board", "7"}, {"slot", "1"}})},
                                   {"part-0", on_card("c", {{"board", "8"}, {"slot", "7"}})},
                                   {"part-1", on_card("c", {{"board", "8"}, {"slot", "7"}})}};
  CHECK(identity_of_one(devices, "gpu-0", "board") == "none");
  CHECK(identity_of_one(devices, "gpu-0", "slot") == "slot=0");
  CHECK(identity_of_one(devices, "part-0", "board") == "board=8");
  CHECK(identity_of_one(devices, "part-1", "slot") == "slot=7");
  const auto shared = shared_identities(devices);
  const Listing listing{.devices = devices, .shared = shared};
  CHECK(marks_of(listing, "board") == std::set<std::string>{mark_of("8")});
  CHECK(marks_of(listing, "slot").size() == 3);
}

TEST_CASE("cards are renamed if there were two or more and none has kept its name") {
  CHECK(are_all_renamed({"a", "b"}, {"c", "d"}));
  CHECK(are_all_renamed({"a", "b"}, {"c"}));
  CHECK(!are_all_renamed({"a", "b"}, {"c", "b"}));
  CHECK(!are_all_renamed({"a"}, {"c"}));
  CHECK(!are_all_renamed({}, {"c", "d"}));
}
