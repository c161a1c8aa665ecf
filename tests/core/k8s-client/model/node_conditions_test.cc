#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "k8s-client/model/decoder.h"
#include "k8s-client/model/proto_decoder.h"
#include "tests/support/core/proto_writing.h"

namespace {

using namespace dhc::k8s;
using dhc::test::enveloped;
using dhc::test::field;
using Conditions = std::vector<std::pair<std::string, std::string>>;

// The most pressing first.
const std::array<std::string, 5> kLifecycle = {"GracefulNodeShutdownInProgress", "MaintenanceInProgress",
                                               "DrainInProgress", "Drained", "MaintenancePlanned"};

Node from_json(const Conditions& conditions) {
  auto list = nlohmann::json::array();
  for (const auto& [type, status] : conditions) list.push_back({{"type", type}, {"status", status}});
  const nlohmann::json node = {{"apiVersion", "v1"},
                               {"kind", "Node"},
                               {"metadata", {{"name", "a"}, {"uid", "u"}, {"resourceVersion", "1"}}},
                               {"status", {{"conditions", list}}}};
  const nlohmann::json all = {
      {"apiVersion", "v1"}, {"kind", "NodeList"}, {"metadata", {{"resourceVersion", "1"}}}, {"items", {node}}};
  auto page = Decoder(Kind::Node, {}).decode_list(all.dump());
  REQUIRE(page.has_value());
  REQUIRE(page->objects.size() == 1);
  return std::get<Node>(page->objects.front());
}

Node from_protobuf(const Conditions& conditions) {
  std::string list;
  for (const auto& [type, status] : conditions) list += field(4, field(1, type) + field(2, status));
  const auto meta = field(1, field(1, "a") + field(5, "u") + field(6, "1"));
  auto page = ProtoDecoder(Kind::Node, {})
                  .decode_list(enveloped("v1", "NodeList", field(1, field(2, "1")) + field(2, meta + field(3, list))));
  REQUIRE(page.has_value());
  REQUIRE(page->objects.size() == 1);
  return std::get<Node>(page->objects.front());
}

}  // namespace

TEST_CASE("a node's lifecycle condition is read from JSON and from protobuf, if it is True") {
  for (const auto& type : kLifecycle) {
    CAPTURE(type);
    for (const std::string status : {"True", "False", "Unknown", "true", ""}) {
      CAPTURE(status);
      const Conditions conditions = {{"Ready", "True"}, {type, status}};
      const std::string read = status == "True" ? type : "";
      CHECK(from_json(conditions).lifecycle == read);
      CHECK(from_protobuf(conditions).lifecycle == read);
      CHECK(from_json(conditions).ready);
      CHECK(from_protobuf(conditions).ready);
    }
  }
  CHECK(from_json({{"MemoryPressure", "True"}, {"Draining", "True"}}).lifecycle.empty());
  CHECK(from_protobuf({{"MemoryPressure", "True"}, {"Draining", "True"}}).lifecycle.empty());
}

TEST_CASE("of several lifecycle conditions the most pressing is kept, in whatever order they stand") {
  for (std::size_t most = 0; most < kLifecycle.size(); ++most) {
    Conditions conditions;
    for (std::size_t i = most; i < kLifecycle.size(); ++i) conditions.emplace_back(kLifecycle.at(i), "True");
    std::ranges::sort(conditions);
    do {
      CHECK(from_json(conditions).lifecycle == kLifecycle.at(most));
      CHECK(from_protobuf(conditions).lifecycle == kLifecycle.at(most));
    } while (std::ranges::next_permutation(conditions).found);
  }
}

TEST_CASE("a node's conditions are kept by their reasons, whatever their types, from JSON and from protobuf alike") {
  static constexpr std::array<std::string_view, 2> kReasons = {"Ours", "OursToo"};
  const KeptFields kept{.prefix = {}, .marks = {}, .node_reasons = kReasons};
  auto list = nlohmann::json::array();
  std::string proto;
  const auto add = [&](const std::string& type, const std::string& reason) {
    list.push_back({{"type", type},
                    {"status", "True"},
                    {"reason", reason},
                    {"message", "m"},
                    {"lastTransitionTime", "1970-01-01T00:01:00Z"}});
    proto += field(
        4, field(1, type) + field(2, "True") + field(4, dhc::test::number(1, 60)) + field(5, reason) + field(6, "m"));
  };
  add("Ready", "KubeletReady");
  add("Z", "Ours");
  add("A", "OursToo");
  add("B", "ours");
  const nlohmann::json node = {{"metadata", {{"name", "a"}, {"uid", "u"}, {"resourceVersion", "1"}}},
                               {"status", {{"conditions", list}}}};
  const nlohmann::json all = {
      {"apiVersion", "v1"}, {"kind", "NodeList"}, {"metadata", {{"resourceVersion", "1"}}}, {"items", {node}}};
  const auto json_page = Decoder(Kind::Node, kept).decode_list(all.dump());
  const auto meta = field(1, field(1, "a") + field(5, "u") + field(6, "1"));
  const auto proto_page =
      ProtoDecoder(Kind::Node, kept)
          .decode_list(enveloped("v1", "NodeList", field(1, field(2, "1")) + field(2, meta + field(3, proto))));
  REQUIRE(json_page.has_value());
  REQUIRE(proto_page.has_value());
  const auto& read = std::get<Node>(json_page->objects.front()).kept;
  REQUIRE(read.size() == 2);
  CHECK(read.front().type == "A");
  CHECK(read.back() == Condition{.type = "Z",
                                 .status = "True",
                                 .reason = "Ours",
                                 .message = "m",
                                 .last_transition = dhc::WallTime(dhc::Seconds(60))});
  CHECK(read == std::get<Node>(proto_page->objects.front()).kept);
  CHECK(std::get<Node>(Decoder(Kind::Node, {}).decode_list(all.dump())->objects.front()).kept.empty());
}
