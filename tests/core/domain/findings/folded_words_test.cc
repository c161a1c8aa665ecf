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

TEST_CASE("Folded words are one short line, whatever a driver says") {
  CHECK(folded_words("a\nb\tc\x01\xff") == "a b c ?");
  CHECK(folded_words(std::string(100'000, 'x')).size() == 160);
  CHECK(folded_words(std::string(100'000, '-')).size() == 160);
}

}  // namespace dhc
