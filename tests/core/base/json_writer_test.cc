#include "base/json_writer.h"

#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/json_text.h"
#include "base/rfc3339.h"

namespace dhc::test {

namespace {

std::string written(const auto& write) {
  std::string text;
  JsonWriter json(text);
  write(json);
  return text;
}

}  // namespace

TEST_CASE("A text is written as the tree writes it, whatever bytes it has") {
  std::vector<std::string> texts = {
      "",         "plain",     "a \"quoted\" one",          "C:\\path", "line\nbreak", "\x01\x1f", "\x7f", "größer",
      "\xff\xfe", "half \xc3", std::string("nul\0in it", 9)};
  for (int byte = 0; byte < 256; ++byte) texts.push_back("x" + std::string(1, static_cast<char>(byte)) + "y");
  for (const auto& text : texts) {
    CAPTURE(text);
    CHECK(written([&](JsonWriter& json) { json.value(text); }) == json_text(text));
  }
}

TEST_CASE("Numbers, flags and times are written as the tree writes them") {
  for (const double number : {0.01, 0.5, 1.0, 1.25, 99.99, 1e6, 1e21})
    CHECK(written([&](JsonWriter& json) { json.value(number); }) == json_text(number));
  for (const std::int64_t number : {INT64_MIN, std::int64_t{-1}, std::int64_t{0}, INT64_MAX})
    CHECK(written([&](JsonWriter& json) { json.value(number); }) == json_text(number));
  const auto at = *parse_rfc3339("2026-11-20T12:00:00Z");
  CHECK(written([&](JsonWriter& json) { json.value(at); }) == "\"2026-11-20T12:00:00Z\"");
  CHECK(written([&](JsonWriter& json) { json.value(true); }) == "true");
}

TEST_CASE("What says nothing is left out, and leaves no comma behind") {
  const auto text = written([](JsonWriter& json) {
    json.begin_object();
    json.put("nothing", std::string());
    json.put_group("first", [] {});
    json.put("a", std::string("1"));
    json.put_group("empty", [&] { json.put("never", false); });
    json.put_group("group", [&] {
      json.put("flag", true);
      json.put_group("none", [] {});
    });
    json.put_list("nobody", std::vector<std::string>());
    json.list("all", std::vector<std::string>());
    json.put_list("names", std::vector<std::string>{"x", "y"});
    json.put_entries("entries", std::vector<std::int64_t>{1, 2}, [&](std::int64_t n) { json.member("n", n); });
    json.put_entries("last", std::vector<std::int64_t>(), [](std::int64_t) {});
    json.end_object();
  });
  CHECK(text == R"({"a":"1","group":{"flag":true},"all":[],"names":["x","y"],"entries":[{"n":1},{"n":2}]})");
}

}  // namespace dhc::test
