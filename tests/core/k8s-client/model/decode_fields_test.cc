#include <ranges>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "k8s-client/model/decoder.h"
#include "tests/core/k8s-client/model/kept.h"
#include "tests/support/core/samples.h"

namespace {

using namespace dhc::k8s;
using dhc::test::every_kind;
using dhc::test::full_sample;
using dhc::test::list_of;
using nlohmann::json;
using Path = json::json_pointer;

// Every place in the document: fields, lists, items, map entries.
void collect(const json& value, const Path& at, std::vector<Path>& paths) {
  if (!at.empty()) paths.push_back(at);
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) collect(member, at / key, paths);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) collect(value[i], at / i, paths);
  }
}

std::vector<Path> places_in(const json& document) {
  std::vector<Path> paths;
  collect(document, Path(), paths);
  return paths;
}

bool is_map(const std::string& field) {
  return field == "labels" || field == "annotations" || field == "limits" || field == "capacity" ||
         field == "allocatable" || field == "data" || field == "attributes";
}

// The map that the place lies in, or the place itself.
Path without_map_entry(const Path& path) {
  Path found = path;
  for (auto at = path; !at.empty(); at.pop_back()) {
    if (is_map(at.parent_pointer().empty() ? "" : at.parent_pointer().back())) found = at.parent_pointer();
  }
  return found;
}

// As faults name it: `spec.containers[0].resources`. Entries of maps are not named: their keys are other people's text.
std::string name_of(const Path& place, const json& document) {
  const auto path = without_map_entry(place);
  std::string name;
  std::vector<std::string> parts;
  for (auto at = path; !at.empty(); at.pop_back()) {
    const bool item = document.at(at.parent_pointer()).is_array();
    parts.push_back(item ? "[" + at.back() + "]" : (at.parent_pointer().empty() ? "" : ".") + at.back());
  }
  for (const auto& part : std::ranges::reverse_view(parts)) name += part;
  return name;
}

void remove(json& document, const Path& path) {
  auto& parent = document.at(path.parent_pointer());
  if (parent.is_array()) {
    parent.erase(std::stoul(path.back()));
  } else {
    parent.erase(path.back());
  }
}

bool is_amount(const Path& path) {
  const auto parent = path.parent_pointer().empty() ? "" : path.parent_pointer().back();
  return parent == "limits" || parent == "capacity" || parent == "allocatable";
}

// One value of each JSON type but null that the field does not have, and bad ones of its own type.
std::vector<json> wrong_values(const json& good, const Path& path) {
  std::vector<json> wrong;
  for (const auto& value : {json(true), json(17), json(1.5), json("x"), json::object(), json::array(), json::array({1}),
                            json{{"x", "y"}}}) {
    const bool same = value.type() == good.type() || (value.is_number_integer() && good.is_number_integer());
    if (!same && !(is_amount(path) && value == json(17))) wrong.push_back(value);
  }
  if (good.is_number_integer()) wrong.push_back(json(18446744073709551615U));
  if (is_amount(path)) wrong.insert(wrong.end(), {json("x"), json("1.5"), json("-1"), json(-1)});
  if (good.is_string() && path.back().ends_with("Timestamp")) wrong.push_back(json("yesterday"));
  if (path.back() == "name" || path.back() == "uid") {
    wrong.insert(wrong.end(),
                 {json(std::string("a\0b", 3)), json("a\nb"), json("a\x7f"), json(std::string(1025, 'a'))});
  }
  return wrong;
}

void expect_same(const std::expected<Object, BadObject>& a, const std::expected<Object, BadObject>& b) {
  REQUIRE(a.has_value() == b.has_value());
  if (a.has_value()) CHECK(*a == *b);
  if (!a.has_value()) CHECK(a.error() == b.error());
}

TEST_CASE("The samples use every kind and are read") {
  for (const auto kind : every_kind()) {
    CAPTURE(to_string(kind));
    const auto object = Decoder(kind, kKept).decode_object(full_sample(kind));
    REQUIRE(object.has_value());
    CHECK(kind_of(*object) == kind);
  }
}

TEST_CASE("Null is the same as absent, in every field of every kind") {
  for (const auto kind : every_kind()) {
    Decoder decoder(kind, kKept);
    const auto good = json::parse(full_sample(kind));
    for (const auto& path : places_in(good)) {
      CAPTURE(path.to_string());
      auto null = good;
      null[path] = nullptr;
      auto absent = good;
      remove(absent, path);
      expect_same(decoder.decode_object(null.dump()), decoder.decode_object(absent.dump()));
    }
  }
}

TEST_CASE("A wrong type in any field makes that object bad by name, and its neighbours stay readable") {
  for (const auto kind : every_kind()) {
    Decoder decoder(kind, kKept);
    const auto good = json::parse(full_sample(kind));
    const auto before = full_sample(kind, "before", "u-before");
    const auto after = full_sample(kind, "after", "u-after");
    for (const auto& path : places_in(good)) {
      for (const auto& value : wrong_values(good.at(path), path)) {
        auto bad = good;
        bad[path] = value;
        CAPTURE(bad.dump());
        const auto page = decoder.decode_list(list_of({before, bad.dump(), after}));
        REQUIRE(page.has_value());
        REQUIRE(page->objects.size() == 2);
        CHECK(meta_of(page->objects[0]).uid == "u-before");
        CHECK(meta_of(page->objects[1]).uid == "u-after");
        REQUIRE(page->bad.size() == 1);
        const auto name = name_of(path, good);
        CHECK_MESSAGE(page->bad[0].why.starts_with(name), page->bad[0].why << " should name " << name);
        const auto& uid = bad["metadata"].is_object() ? bad["metadata"]["uid"] : json();
        if (uid == json("u")) CHECK(page->bad[0].uid == "u");
      }
    }
  }
}

TEST_CASE("A deleted object needs nothing but its metadata to be readable") {
  for (const auto kind : every_kind()) {
    Decoder decoder(kind, kKept);
    auto object = json::parse(full_sample(kind));
    object["spec"] = 17;
    object["status"] = "broken";
    object["data"] = false;
    const auto event = decoder.decode_event(json{{"type", "DELETED"}, {"object", object}}.dump());
    REQUIRE(std::holds_alternative<Deleted>(event.what));
    CHECK(std::get<Deleted>(event.what) == Deleted{"ns", "n", "u"});
    CHECK(event.resource_version == "7");
  }
}

TEST_CASE("An object of another kind is bad, and a ReplicaSet may come as PartialObjectMetadata") {
  auto object = json::parse(full_sample(Kind::ReplicaSet));
  object["kind"] = "PartialObjectMetadata";
  CHECK(Decoder(Kind::ReplicaSet, kKept).decode_object(object.dump()).has_value());
  object["kind"] = "Table";
  const auto read = Decoder(Kind::ReplicaSet, kKept).decode_object(object.dump());
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error() == BadObject{"ns", "n", "u", "kind: another kind"});
}

TEST_CASE("A document cut at any byte is bad, never half a record") {
  for (const auto kind : every_kind()) {
    Decoder decoder(kind, kKept);
    const auto good = full_sample(kind);
    for (std::size_t size = 0; size < good.size(); ++size) {
      REQUIRE_FALSE(decoder.decode_object(std::string_view(good).substr(0, size)).has_value());
    }
    CHECK(decoder.decode_object(good).has_value());
  }
}

TEST_CASE("Any one byte replaced gives a record or a bad object, and the next document is read as if nothing was") {
  for (const auto kind : {Kind::Pod, Kind::ResourceClaim, Kind::Node}) {
    Decoder decoder(kind, kKept);
    const auto good = full_sample(kind);
    const auto expected = decoder.decode_object(good);
    for (std::size_t at = 0; at < good.size(); ++at) {
      for (const char byte : {'"', '\\', '{', '}', ']', ',', '0', '\0', '\xff'}) {
        auto changed = good;
        changed[at] = byte;
        const auto read = decoder.decode_object(changed);
        if (!read.has_value()) REQUIRE_FALSE(read.error().why.empty());
      }
    }
    CHECK(decoder.decode_object(good) == expected);
  }
}

}  // namespace
