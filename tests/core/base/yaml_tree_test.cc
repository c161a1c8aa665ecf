#include "base/yaml_tree.h"

#include <string>

#include <doctest/doctest.h>

using dhc::plain_type;
using dhc::PlainType;
using dhc::read_yaml;
using dhc::TextPlace;
using dhc::YamlBounds;
using dhc::YamlNode;

namespace {
std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}
}  // namespace

TEST_CASE("a tree keeps places, quotes and doubled keys") {
  const auto documents = read_yaml("a: 'x'\na: [1, \"2\"]\n---\nb:\n");
  REQUIRE(documents);
  REQUIRE(documents->size() == 2);
  const YamlNode& first = documents->front();
  REQUIRE(first.items.size() == 4);
  CHECK(first.items[2].place == TextPlace{2, 1});
  CHECK(first.items[1].quoted);
  CHECK(first.items[1].place == TextPlace{1, 4});
  CHECK_FALSE(first.items[3].items[0].quoted);
  CHECK(first.items[3].items[1].quoted);
  CHECK(first.find("a")->text == "x");
  CHECK(documents->back().find("b")->kind == YamlNode::Kind::Null);
  CHECK(documents->back().items[0].place.line == 4);
}

TEST_CASE("an alias is refused unless it is asked for, and then it is a copy") {
  const std::string text = "a: &x {k: v}\nb: *x\n";
  const auto refused = read_yaml(text);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().place == TextPlace{2, 4});
  CHECK(refused.error().message == "an alias (*name) is not accepted here");
  const auto taken = read_yaml(text, YamlBounds{.aliases = true});
  REQUIRE(taken);
  CHECK(taken->front().find("b")->find("k")->text == "v");
}

TEST_CASE("an alias bomb is refused while it is small") {
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last + repeated("," + last, 9) + "]\n";
  }
  const auto refused = read_yaml(bomb, YamlBounds{.aliases = true});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "more than 50000 values");
}

TEST_CASE("depth, size, NUL bytes and text that is not UTF-8 are refused with their place") {
  CHECK(read_yaml(repeated("[", 65)).error().message == "nested deeper than 64 levels");
  CHECK(read_yaml(repeated("[", 150'000)).error().message == "nested deeper than 64 levels");
  CHECK(read_yaml(repeated("- ", 150'000)).error().message == "nested deeper than 64 levels");
  CHECK(read_yaml(repeated("[", 150'001)).error().message == "more than 150000 brackets, quotes, commas and colons");
  CHECK(read_yaml(std::string(2'000'000, 'x')).error().message == "larger than 1048576 bytes");
  const auto nul = read_yaml(std::string_view("a: b\nc: \0\n", 10));
  REQUIRE_FALSE(nul);
  CHECK(nul.error().place == TextPlace{2, 4});
  CHECK(nul.error().message == "a NUL byte");
  CHECK(read_yaml("a: \xff\n").error().message == "bytes that are not UTF-8");
  CHECK(read_yaml("a: \xc0\x80\n").error().message == "bytes that are not UTF-8");
  CHECK(read_yaml("a: gr\xc3\xbc\xc3\x9f\n").has_value());
}

TEST_CASE("a comma that the parser cannot get past is a mistake, not a document without end") {
  for (const char* text : {"!a , ", "!a ]", "a: !b ,\n"}) {
    CAPTURE(text);
    CHECK_FALSE(read_yaml(text).has_value());
  }
  CHECK(read_yaml("!a , ").error().message == "not YAML: a bracket or comma that does not belong here");
}

TEST_CASE("a tab in the indentation is named as such") {
  const auto refused = read_yaml("a:\n\tb: c\n");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "a tab in the indentation");
  CHECK(refused.error().place == TextPlace{2, 1});
}

TEST_CASE("JSON indented with tabs is YAML enough") {
  const auto documents = read_yaml("{\n\t\"a\": [\n\t\t1,\n\t\t\"b\\/c\"\n\t]\n}\n");
  REQUIRE(documents);
  CHECK(documents->front().find("a")->items[1].text == "b/c");
}

TEST_CASE("plain scalars that some reader takes for no string are known") {
  for (const char* word : {"", "~", "null", "Null"}) CHECK(plain_type(word) == PlainType::Null);
  for (const char* word : {"true", "False", "yes", "NO", "on", "off", "y", "N"})
    CHECK(plain_type(word) == PlainType::Bool);
  for (const char* word : {"0", "-1", "+3", "014", "0x1F", "0o17", "1_000", "1.5", ".5", "1e3", "1.5E-3", "12:30",
                           ".inf", "-.Inf", ".nan", "0b11", "1."}) {
    CAPTURE(word);
    CHECK(plain_type(word) == PlainType::Number);
  }
  for (const char* word : {"1h30m", "60s", "a", "-", "v1", "1.2.3", "--1", "e3", "0xg", "1-2", "10.0.0.1", "_", ".",
                           "1e", "trueish", "1:2:", "500ms"}) {
    CAPTURE(word);
    CHECK(plain_type(word) == PlainType::String);
  }
}
