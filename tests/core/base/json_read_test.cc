#include "base/json_read.h"

#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace dhc {

namespace {

std::string nested(std::size_t depth, const std::string& inside = {}) {
  return std::string(depth, '[') + inside + std::string(depth, ']');
}

}  // namespace

TEST_CASE("JSON of 64 levels is read, and of one more is none") {
  CHECK(read_json<nlohmann::json>(nested(64)).is_array());
  CHECK(read_json<nlohmann::json>(nested(65)).is_discarded());
  CHECK(read_json<nlohmann::ordered_json>(nested(65)).is_discarded());
  CHECK(read_json<nlohmann::json>(nested(1'000'000)).is_discarded());
  CHECK(read_json<nlohmann::json>("{\"a\":" + nested(63) + "}").is_object());
  CHECK(read_json<nlohmann::json>("{\"a\":" + nested(64) + "}").is_discarded());
}

TEST_CASE("Brackets in strings and side by side are no levels") {
  const std::string words = "\"" + std::string(1000, '[') + "\\\"" + std::string(1000, '{') + "\"";
  CHECK(read_json<nlohmann::json>("[" + words + "]").is_array());
  std::string flat = "[";
  for (int i = 0; i < 1000; ++i) flat += "[{}],";
  CHECK(read_json<nlohmann::json>(flat + "1]").is_array());
}

TEST_CASE("What is no JSON is discarded, however it begins") {
  for (const auto* text : {"", "\"", "\"\\", "]]]]", "[", "{", "nul"}) {
    CAPTURE(text);
    CHECK(read_json<nlohmann::json>(text).is_discarded());
  }
}

}  // namespace dhc
