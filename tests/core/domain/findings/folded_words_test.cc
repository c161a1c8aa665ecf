#include "domain/findings/folded_words.h"

#include <string>

#include <doctest/doctest.h>

namespace dhc {

TEST_CASE("What differs from device to device is folded, and what was said stays") {
  CHECK(folded_words("critical XID 79 reported by NVML") == "critical XID # reported by NVML");
  CHECK(folded_words("critical XID 79 reported by NVML") == folded_words("critical  XID 140 reported by NVML "));
  CHECK(folded_words("GPU-5f3a1b2c-77ab-beef-cafe-0123456789ab is lost") == "GPU-# is lost");
  CHECK(folded_words("0000:3b:00.0 fell off the bus") == folded_words("0000:D8:00.0 fell off the bus"));
  CHECK(folded_words("row remap failed at 0x7f3a") == "row remap failed at #");
  CHECK(folded_words("gpu12 of H100: dead") == "gpu# of H#: dead");
  CHECK(folded_words("commit deadbeef") == "commit #");
  CHECK(folded_words("1234567-12-1") == "#-#-#");
  CHECK(folded_words("12345678-1234-1234-1234-123456789abcd") == "#-#-#-#-#");  // one letter more than a UUID
  CHECK(folded_words("").empty());
  CHECK(folded_words(" \n ").empty());
}

TEST_CASE("An address is folded whichever of its bytes are letters") {
  for (const char* bus : {"3b", "df", "AF", "aa", "00"}) {
    CAPTURE(bus);
    const auto at = [&](const std::string& before, const std::string& after) {
      return folded_words(before + bus + after);
    };
    CHECK(at("0000:", ":00.0 fell off the bus") == "#:#:#.# fell off the bus");
    CHECK(at("PCI device 0000:", ":00.0 is not present") == "PCI device #:#:#.# is not present");
    CHECK(at("GPU at PCI:0000:", ":00: GPU is lost") == "GPU at PCI:#:#:#: GPU is lost");
    CHECK(at("[0000:", ":00.0]") == "[#:#:#.#]");
    CHECK(at("10000:", ":1f.7.") == "#:#:#.#.");
    CHECK(at("GPU 00000000:", ":00.0: lost") == "GPU #:#:#.#: lost");
    CHECK(at("nvidia ", ":00.0 lost") == "nvidia #:#.# lost");
    CHECK(at("link of b8:59:9f:", ":d4:fe is down") == "link of #:#:#:#:#:# is down");
  }
  CHECK(folded_words("feed:de:ad.b") == "#:#:#.#");
  // A word is no part of an address, nor is what goes on after one.
  CHECK(folded_words("ECC:3, be:ad and dead:be:efx") == "ECC:#, be:ad and dead:be:efx");
  CHECK(folded_words("12:34:56.7") == folded_words("12:34:56.78"));
}

TEST_CASE("Folded words are one short line, whatever a driver says") {
  CHECK(folded_words("a\nb\tc\x01\xff") == "a b c ?");
  CHECK(folded_words(std::string(100'000, 'x')).size() == 160);
  CHECK(folded_words(std::string(100'000, '-')).size() == 160);
}

}  // namespace dhc
