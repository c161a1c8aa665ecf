// Which fields the fixtures hold to be read: a field taken out of the protobuf alone has to make the two decoders
// differ. A field that is read in both formats is named here.
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "k8s-client/model/decoder.h"
#include "k8s-client/model/proto_decoder.h"
#include "k8s-client/model/proto_envelope.h"
#include "k8s-client/model/proto_reading.h"
#include "tests/core/k8s-client/model/kept.h"
#include "tests/support/core/fixtures.h"
#include "tests/support/core/proto_writing.h"
#include "tests/support/core/same_record.h"

namespace {

using namespace dhc::k8s;
using dhc::test::enveloped;
using dhc::test::field;
using dhc::test::number;
using dhc::test::read_fixture;

using Tags = std::vector<std::uint32_t>;

/// The message without the field that the path leads to, wherever it stands. Numbers of a fixed size, which we read
/// nowhere, go with it.
std::string without(std::string_view message, const Tags& path, std::size_t depth = 0) {
  std::string out;
  proto::Fields fields(message);
  std::uint32_t tag = 0;
  proto::Value value;
  while (fields.next(tag, value) == proto::Fields::Step::Next) {
    const bool on_path = tag == path.at(depth);
    if (on_path && depth + 1 == path.size()) continue;
    if (value.type == protozero::pbf_wire_type::varint) {
      out += number(tag, value.number);
    } else if (value.type == protozero::pbf_wire_type::length_delimited) {
      out += field(tag, on_path ? without(value.bytes, path, depth + 1) : std::string(value.bytes));
    }
  }
  return out;
}

/// The paths that `tree` names: "2(4 5(1 2))" are 2.4, 2.5.1 and 2.5.2.
std::vector<Tags> paths_of(std::string_view tree) {
  std::vector<Tags> paths;
  Tags above;
  std::uint32_t tag = 0;
  bool leaf = false;
  const auto end_number = [&] {
    if (!leaf) return;
    auto path = above;
    path.push_back(tag);
    paths.push_back(std::move(path));
    leaf = false;
    tag = 0;
  };
  for (const char c : tree) {
    if (c >= '0' && c <= '9') {
      tag = tag * 10 + static_cast<std::uint32_t>(c - '0');
      leaf = true;
    } else if (c == '(') {
      above.push_back(tag);
      leaf = false;
      tag = 0;
    } else {
      end_number();
      if (c == ')') above.pop_back();
    }
  }
  end_number();
  return paths;
}

std::string text_of(const Tags& path) {
  std::string text;
  for (const auto tag : path) text += (text.empty() ? "" : ".") + std::to_string(tag);
  return text;
}

/// Checks that each field that the tree names is set in the filled objects of a kind and read.
void check_read(Kind kind, const std::string& file, std::string_view tree) {
  const auto as_json = Decoder(kind, kKept).decode_list(read_fixture("protobuf/filled/" + file + ".json"));
  const auto body = read_fixture("protobuf/filled/" + file + ".pb");
  proto::Envelope envelope;
  Fault fault;
  REQUIRE(as_json.has_value());
  REQUIRE(proto::open_envelope(body, fault, envelope));
  const ProtoDecoder decoder(kind, kKept);
  const auto agrees_without = [&](Tags path) {
    path.insert(path.begin(), 2);  // the items of the list
    const auto page =
        decoder.decode_list(enveloped(envelope.api_version, envelope.kind, without(envelope.message, path)));
    return page.has_value() && dhc::test::same_records(page->objects, as_json->objects) &&
           page->bad.size() == as_json->bad.size();
  };
  CHECK(agrees_without({4711}));
  for (const auto& path : paths_of(tree)) {
    CAPTURE(text_of(path));
    CHECK_FALSE(agrees_without(path));
  }
}

constexpr std::string_view kMetaTree = "1(1 3 5 6 8 9 10 11(1 2) 12(1 2) 13(1 3 4 5 6)) ";
constexpr std::string_view kClusterMeta = "1(1 5 6 8 9 10 11(1 2) 12(1 2) 13(1 3 4 5 6)) ";

std::string meta_and(std::string_view tree) { return std::string(kMetaTree).append(tree); }

TEST_CASE("Each field of a pod that JSON is read for is read in protobuf") {
  check_read(
      Kind::Pod, "pods",
      meta_and("2(1(2(1(1))) 2(1 2 8(1(1 2(1)) 3)) 4 7(1 2) 10 18(1(1(1(1(1 2 3) 2(1 2 3)))) 2(1) 3(1)) 20(8(1) 24) "
               "22(1 2 3 4) 33 38 39(1 3)) "
               "3(1 2(1 2 4 5 6) 3 4 8(1 2(2(1) 3(1 6)) 3(2(1) 3(6)) 14(1 2(1 2 6))) "
               "10(1 2(2(1) 3(1 6)) 3(2(1) 3(6)) 14(1 2(1 2 6))) 13(14(1 2(1 2 6))) 15(1 2) 18(2))"));
}

TEST_CASE("Each field of a claim that JSON is read for is read in protobuf") {
  check_read(Kind::ResourceClaim, "claims",
             meta_and("2(1(1(1 2(1 4) 3(2 5)))) "
                      "3(1(1(1(1 2 3 4 5 6(1 2 3 4) 7 8))) 2(1 3 4 5) 4(1 2 3 4(1 2 4 5 6) 6(1 2 3)))"));
}

TEST_CASE("Each field of a slice that JSON is read for is read in protobuf") {
  check_read(Kind::ResourceSlice, "slices", meta_and("2(1 2(1 2) 3 6(1 2(1 2(4)) 4(1) 8(1 2 3 4)))"));
}

TEST_CASE("Each field of a node and a namespace that JSON is read for is read in protobuf") {
  check_read(Kind::Node, "nodes", meta_and("2(4 5(1 2 3 4)) 3(1(1 2(1)) 2(1 2(1)) 4(1 2) 7(3 7))"));
  check_read(Kind::Namespace, "namespaces", kClusterMeta);
}

TEST_CASE("Each field of a rule that JSON is read for is read in protobuf") {
  check_read(Kind::DeviceTaintRule, "rules", meta_and("1(7) 2(1(2 3 4) 2(1 2 3 4)) 3(1(1 2 3 5 6))"));
}

TEST_CASE("Each field of a Job that JSON is read for is read in protobuf") {
  check_read(Kind::Job, "jobs",
             meta_and("2(1 2 5 6(2(3)) 7 9 10 11(1(1 2(1 2 3) 3(1 2))) 12 13 14 15) "
                      "3(1(1 2 4 5 6) 4 5 6 8(1 2) 10 11)"));
}

}  // namespace
