#include "domain/contract/device_key.h"

#include <string>

#include <doctest/doctest.h>

using namespace dhc;

TEST_CASE("replicas of one card are known by each plugin's own way of naming them, and no other name is one") {
  const auto card = [](std::string_view id) {
    const auto found = card_of_plugin_id(id);
    return std::string(found.id) + " " + std::to_string(found.replica);
  };
  CHECK(card("GPU-1::3") == "GPU-1 3");
  CHECK(card("nvidia0/vgpu2") == "nvidia0 2");
  CHECK(card("nvidia0/gi3/vgpu1") == "nvidia0/gi3 1");
  CHECK(card("card12-4") == "card12 4");
  for (const std::string id : {"GPU-1", "gpu-0", "card-1", "cardX-1", "card0-", "card0", "::1", "GPU-1::x", "GPU-1::-1",
                               "GPU-1::10000", "nvidia0/gi3", "/vgpu1", "0000:03:00.0", ""}) {
    CHECK(card(id) == id + " 0");
  }
}
