#include "base/printable.h"

#include <doctest/doctest.h>

using dhc::printable_cut;

TEST_CASE("text is cut between two characters, never inside one") {
  CHECK(printable_cut("a\xE2\x82\xAC", 4) == "a\xE2\x82\xAC");
  CHECK(printable_cut("a\xE2\x82\xAC", 3) == "a");
  CHECK(printable_cut("abc", 0).empty());
}

TEST_CASE("control characters of every kind become spaces") {
  CHECK(printable_cut("a\r\n\t\x1b\x7f"
                      "b\xC2\x9B"
                      "c",
                      64) == "a     b c");
}

TEST_CASE("bytes that are not UTF-8 become question marks") {
  CHECK(printable_cut("a\xFF\xC0\x80z", 64) == "a???z");
  CHECK(printable_cut("\xED\xA0\x80", 64) == "???");
  CHECK(printable_cut("\xF4\x90\x80\x80", 64) == "????");
  CHECK(printable_cut("\xE2\x82", 64) == "??");
}
