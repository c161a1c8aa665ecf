#include "app/log_line.h"

#include <array>

#include <doctest/doctest.h>

using dhc::json_line;
using dhc::LogPair;
using dhc::text_line;

TEST_CASE("a text line quotes only what would be misread") {
  const std::array pairs = {LogPair{"msg", "serving"}, LogPair{"what", "two words"}, LogPair{"n", "7", true}};
  CHECK(text_line(pairs) == R"(msg=serving what="two words" n=7)");
}

TEST_CASE("a JSON line keeps the order of its fields and leaves numbers bare") {
  const std::array pairs = {LogPair{"msg", "serving"}, LogPair{"n", "7", true}};
  CHECK(json_line(pairs) == R"({"msg":"serving","n":7})");
}

TEST_CASE("hostile text can neither end a line nor command a terminal") {
  const std::array pairs = {LogPair{"m", "a\n{\"level\":\"error\"}\x1b[2J\xC2\x9B\x7f\xFF"}};
  for (const auto& line : {text_line(pairs), json_line(pairs)}) {
    CAPTURE(line);
    CHECK(line.find('\n') == std::string::npos);
    CHECK(line.find('\x1b') == std::string::npos);
    CHECK(line.find('\xC2') == std::string::npos);
    CHECK(line.find('\xFF') == std::string::npos);
  }
}
