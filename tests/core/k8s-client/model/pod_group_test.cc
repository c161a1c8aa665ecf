#include "k8s-client/model/pod_group.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "k8s-client/model/decoder.h"

using namespace dhc::k8s;

namespace {

std::string group_text(std::string_view spec) {
  return fmt::format(
      R"({{"kind":"PodGroup","metadata":{{"namespace":"ml","name":"g","uid":"u","resourceVersion":"1"}},"spec":{}}})",
      spec);
}

bool is_indivisible(std::string_view spec) {
  auto read = Decoder(Kind::PodGroup).decode_object(group_text(spec));
  REQUIRE(read.has_value());
  return std::get<PodGroup>(*read).is_indivisible;
}

}  // namespace

TEST_CASE("A PodGroup is disrupted as a whole if its mode is all, and in Kubernetes 1.36 PodGroup") {
  CHECK(is_indivisible(R"({"disruptionMode":{"all":{}}})"));
  CHECK(is_indivisible(R"({"schedulingPolicy":{"gang":{"minCount":4}},"disruptionMode":{"all":{}},"priority":5})"));
  CHECK(is_indivisible(R"({"disruptionMode":"PodGroup"})"));
  for (const std::string_view spec :
       {R"({})", R"(null)", R"({"disruptionMode":null})", R"({"disruptionMode":{}})",
        R"({"disruptionMode":{"all":null}})", R"({"disruptionMode":{"single":{}}})", R"({"disruptionMode":"Pod"})"}) {
    CAPTURE(spec);
    CHECK_FALSE(is_indivisible(spec));
  }
}

TEST_CASE("Of a PodGroup's duplicate keys the last counts") {
  CHECK_FALSE(is_indivisible(R"({"disruptionMode":{"all":{}},"disruptionMode":{"single":{}}})"));
  CHECK_FALSE(is_indivisible(R"({"disruptionMode":{"all":{},"all":null}})"));
  CHECK(is_indivisible(R"({"disruptionMode":"Pod","disruptionMode":{"all":{}}})"));
}

TEST_CASE("A PodGroup whose mode is neither a known word nor an object cannot be read, and the fault says where") {
  for (const std::string_view mode : {"7", "[]", "true", R"("other")"}) {
    CAPTURE(mode);
    auto read = Decoder(Kind::PodGroup).decode_object(group_text(fmt::format(R"({{"disruptionMode":{}}})", mode)));
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().why.find("spec.disruptionMode") != std::string::npos);
    CHECK(read.error().name == "g");
  }
}
