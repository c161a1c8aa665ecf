#include "domain/findings/enforcement.h"

#include <cmath>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace dhc;

namespace {

DeviceKey card_number(int i) {
  return i % 2 == 0 ? DeviceKey::dra("gpu.example.com", fmt::format("node-{}", i / 8), fmt::format("gpu-{}", i % 8))
                    : DeviceKey::plugin(fmt::format("node-{}", i / 8), "example.com/gpu", fmt::format("gpu-{}", i % 8));
}

}  // namespace

TEST_CASE("A higher share takes devices in and lets none go, from none at 0% to all at 100%") {
  for (int i = 0; i < 2000; ++i) {
    CHECK_FALSE(is_in_share(card_number(i), 0));
    CHECK(is_in_share(card_number(i), 100));
    for (int percent = 1; percent < 100; ++percent) {
      if (is_in_share(card_number(i), percent)) CHECK(is_in_share(card_number(i), percent + 1));
    }
  }
}

TEST_CASE("A share of many devices whose names differ in a digit is about that share of them") {
  constexpr int kCards = 8000;
  for (const int percent : {1, 10, 50, 90}) {
    int in = 0;
    for (int i = 0; i < kCards; ++i) in += is_in_share(card_number(i), percent) ? 1 : 0;
    const double expected = kCards * percent / 100.0;
    CHECK(std::abs(in - expected) < 4 * std::sqrt(expected));  // four standard deviations
  }
}

TEST_CASE("Which devices are in a share never changes, in no process and no release") {
  std::string in;
  for (int i = 0; i < 64; ++i) in += is_in_share(card_number(i), 25) ? '1' : '0';
  CHECK(in == "1000010100001010000001000000110001101010011000000001011011101110");
}
