#include "k8s-client/model/proto_decoder.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "k8s-client/model/decoder.h"
#include "k8s-client/protocol/api_error.h"
#include "k8s-client/protocol/frame_splitter.h"
#include "tests/core/k8s-client/model/kept.h"
#include "tests/support/core/fixtures.h"
#include "tests/support/core/proto_writing.h"
#include "tests/support/core/same_record.h"

// Both decoders must make the same record of the same object. The protobuf is what the API server's own encoders made
// (tests/cluster/cmd/encodings) of the recorded JSON, and of objects that have everything set.

namespace {

using namespace dhc::k8s;
using dhc::test::field;
using dhc::test::read_fixture;
using dhc::test::read_fixture_lines;
using dhc::test::same_record;

std::vector<std::string> frames_of(std::string_view stream) {
  std::vector<std::string> frames;
  FrameSplitter splitter;
  REQUIRE(splitter.feed(stream, [&](std::string_view frame) { frames.emplace_back(frame); }));
  REQUIRE(splitter.held() == 0);
  return frames;
}

/// Whether two decoders say the same, but for the words about what is wrong.
bool same_identity(const BadObject& a, const BadObject& b) {
  return a.ns == b.ns && a.name == b.name && a.uid == b.uid && !a.why.empty() && !b.why.empty();
}

bool same_event(const WatchEvent& a, const WatchEvent& b) {
  if (a.resource_version != b.resource_version || a.what.index() != b.what.index()) return false;
  if (const auto* changed = std::get_if<Changed>(&a.what))
    return same_record(changed->object, std::get<Changed>(b.what).object);
  if (const auto* deleted = std::get_if<Deleted>(&a.what)) return *deleted == std::get<Deleted>(b.what);
  if (const auto* mark = std::get_if<Bookmark>(&a.what)) return *mark == std::get<Bookmark>(b.what);
  if (const auto* bad = std::get_if<BadObject>(&a.what)) return same_identity(*bad, std::get<BadObject>(b.what));
  return error_from_status_object(std::get<ErrorStatus>(a.what).body) ==
         error_from_status_object(std::get<ErrorStatus>(b.what).body);
}

void check_same_page(Kind kind, const std::string& json_file, const std::string& protobuf_file) {
  CAPTURE(protobuf_file);
  const auto as_json = Decoder(kind, kKept).decode_list(read_fixture(json_file));
  const auto body = read_fixture(protobuf_file);
  REQUIRE(is_protobuf(body));
  const auto protobuf = ProtoDecoder(kind, kKept).decode_list(body);
  REQUIRE(as_json.has_value());
  REQUIRE_MESSAGE(protobuf.has_value(), protobuf.error().message);
  CHECK(as_json->resource_version == protobuf->resource_version);
  CHECK(as_json->continue_token == protobuf->continue_token);
  REQUIRE(as_json->objects.size() == protobuf->objects.size());
  for (std::size_t i = 0; i < as_json->objects.size(); ++i) {
    CAPTURE(meta_of(as_json->objects[i]).name);
    CHECK(same_record(as_json->objects[i], protobuf->objects[i]));
  }
  REQUIRE(as_json->bad.size() == protobuf->bad.size());
  for (std::size_t i = 0; i < as_json->bad.size(); ++i) CHECK(same_identity(as_json->bad[i], protobuf->bad[i]));
}

struct Listed {
  Kind kind;
  const char* filled;
  std::vector<const char*> lists;
  std::vector<const char*> watches;
};
const std::vector<Listed> kListed = {
    {Kind::Pod, "pods", {"pods", "pods-after-dra", "pods-limit1"}, {"pods-watchlist", "pods-driver-dies"}},
    {Kind::ResourceClaim, "claims", {"claims", "claims-after-dra"}, {"claims-watchlist"}},
    {Kind::ResourceSlice, "slices", {"slices"}, {"slices-watchlist", "slices-driver-dies"}},
    {Kind::Node, "nodes", {"nodes"}, {"nodes-watchlist"}},
    {Kind::Namespace, "namespaces", {}, {}},
    {Kind::DeviceTaintRule, "rules", {"rules"}, {"rules-watchlist"}},
    {Kind::Job, "jobs", {"jobs"}, {"jobs-watchlist"}},
};

TEST_CASE("A protobuf pod whose volume shows its program an annotation that is kept is read in full") {
  const auto read = [](std::uint32_t source, const std::string& volume) {
    const auto meta = field(1, field(1, "n") + field(3, "ns") + field(5, "u") + field(6, "7"));
    const auto spec = field(2, field(1, field(1, "a") + field(2, field(source, volume))) + field(10, "node-a"));
    auto object = ProtoDecoder(Kind::Pod, kKept).decode_object(dhc::test::enveloped("v1", "Pod", meta + spec));
    REQUIRE(object.has_value());
    return std::get<Pod>(*std::move(object));
  };
  const auto downward = [](std::string_view path) {
    return field(1, field(1, "x") + field(2, field(1, "v1") + field(2, path)));
  };
  const auto told = downward("metadata.annotations['device-health.io/notice']");
  CHECK(read(16, told).shows_kept_annotation);
  CHECK(read(16, told).node_name == "node-a");
  CHECK(read(26, field(1, field(2, told))).shows_kept_annotation);
  CHECK_FALSE(is_kept_whole(read(16, downward("metadata.annotations['example.com/notice']"))));
  CHECK_FALSE(is_kept_whole(read(17, told)));
}

TEST_CASE("Both decoders read the same from every recorded list") {
  for (const auto& [kind, filled, lists, watches] : kListed) {
    for (const std::string file : lists) {
      check_same_page(kind, "recordings/list/" + file + ".json", "protobuf/list/" + file + ".pb");
    }
  }
}

TEST_CASE("Both decoders read the same from every recorded event") {
  for (const auto& [kind, filled, lists, watches] : kListed) {
    for (const std::string file : watches) {
      CAPTURE(file);
      Decoder decoder(kind, kKept);
      const ProtoDecoder proto_decoder(kind, kKept);
      const auto lines = read_fixture_lines("recordings/watch/" + file + ".ndjson");
      const auto frames = frames_of(read_fixture("protobuf/watch/" + file + ".pb"));
      REQUIRE(lines.size() == frames.size());
      for (std::size_t i = 0; i < lines.size(); ++i) {
        CAPTURE(lines[i]);
        CHECK(same_event(decoder.decode_event(lines[i]), proto_decoder.decode_event(frames[i])));
      }
    }
  }
}

TEST_CASE("Both decoders read the same from objects with every field set, absent, empty, zero and hostile") {
  for (const auto& [kind, filled, lists, watches] : kListed) {
    const auto name = std::string("protobuf/filled/") + filled;
    check_same_page(kind, name + ".json", name + ".pb");
    const auto page = ProtoDecoder(kind, kKept).decode_list(read_fixture(name + ".pb"));
    std::string why;
    for (const auto& bad : page->bad) why += bad.why + "; ";
    CAPTURE(why);
    CHECK(page->objects.size() > page->bad.size());
  }
  check_same_page(Kind::Pod, "protobuf/filled/empty-pods.json", "protobuf/filled/empty-pods.pb");
  check_same_page(Kind::Pod, "protobuf/filled/unnamed-pods.json", "protobuf/filled/unnamed-pods.pb");
}

TEST_CASE("A Status in protobuf is the same error as in JSON") {
  for (const auto* name : {"evict-404", "evict-409-uid", "evict-429-pdb", "forbidden-403", "list-400-continue",
                           "node-patch-409", "rule-422", "unauthorized-401"}) {
    CAPTURE(name);
    const auto as_json = read_fixture(fmt::format("recordings/status/{}.json", name));
    const auto protobuf = read_fixture(fmt::format("protobuf/status/{}.pb", name));
    CHECK(error_from_status_object(as_json) == error_from_status_object(protobuf));
    for (const unsigned code : {400U, 403U, 404U, 409U, 410U, 422U, 429U, 500U, 503U}) {
      CHECK(error_from_response({.status = code, .headers = {}, .body = as_json}) ==
            error_from_response({.status = code, .headers = {}, .body = protobuf}));
    }
  }
}

TEST_CASE("A 410 inside a watch in protobuf is Gone") {
  const auto frames = frames_of(read_fixture("protobuf/status/watch-410.pb"));
  REQUIRE(frames.size() == 1);
  const auto event = ProtoDecoder(Kind::Pod).decode_event(frames[0]);
  REQUIRE(std::holds_alternative<ErrorStatus>(event.what));
  const auto error = error_from_status_object(std::get<ErrorStatus>(event.what).body);
  CHECK(error.kind == dhc::ErrorKind::Gone);
  CHECK(error.message == "too old resource version: 1 (1089)");
}

TEST_CASE("The bookmark that ends a WatchList is known by its annotation") {
  std::size_t ends = 0;
  for (const auto& frame : frames_of(read_fixture("protobuf/watch/pods-watchlist.pb"))) {
    const auto event = ProtoDecoder(Kind::Pod).decode_event(frame);
    const auto* mark = std::get_if<Bookmark>(&event.what);
    if (mark == nullptr || !mark->initial_events_end) continue;
    ++ends;
    CHECK_FALSE(event.resource_version.empty());
  }
  CHECK(ends == 1);
}

TEST_CASE("Every beginning of a page, a frame and a Status is refused or read, never more") {
  const auto list = read_fixture("protobuf/list/pods.pb");
  const ProtoDecoder decoder(Kind::Pod, kKept);
  const auto whole = decoder.decode_list(list);
  REQUIRE(whole.has_value());
  for (std::size_t size = 0; size < list.size(); ++size) {
    const auto page = decoder.decode_list(std::string_view(list).substr(0, size));
    // An envelope whose message was cut says so by its length.
    if (page) CHECK(page->objects == whole->objects);
  }
  const auto frame = frames_of(read_fixture("protobuf/watch/pods-driver-dies.pb")).at(0);
  for (std::size_t size = 0; size < frame.size(); ++size) {
    CHECK(std::holds_alternative<BadObject>(decoder.decode_event(std::string_view(frame).substr(0, size)).what));
  }
  const auto status = read_fixture("protobuf/status/evict-429-pdb.pb");
  for (std::size_t size = 0; size < status.size(); ++size) {
    (void)error_from_response({.status = 429, .headers = {}, .body = status.substr(0, size)});
  }
}

TEST_CASE("Any byte changed in a page is refused, or read as something that has its identity") {
  const auto list = read_fixture("protobuf/list/pods-limit1.pb");
  const ProtoDecoder decoder(Kind::Pod, kKept);
  for (std::size_t at = 0; at < list.size(); ++at) {
    for (const unsigned flip : {0x01U, 0x07U, 0x80U, 0xFFU}) {
      auto changed = list;
      changed[at] = static_cast<char>(static_cast<unsigned char>(changed[at]) ^ flip);
      const auto page = decoder.decode_list(changed);
      if (!page) continue;
      CHECK_FALSE(page->resource_version.empty());
      for (const auto& object : page->objects) CHECK_FALSE(meta_of(object).uid.empty());
      for (const auto& bad : page->bad) CHECK_FALSE(bad.why.empty());
    }
  }
}

TEST_CASE("A field with the wrong wire type makes the pod bad and leaves its identity") {
  using namespace std::string_literals;
  using dhc::test::field;
  const auto envelope = [](const std::string& message) { return dhc::test::enveloped("v1", "Pod", message); };
  const auto meta = field(1, field(1, "web") + field(3, "team-a") + field(5, "u-1") + field(6, "7"));
  const ProtoDecoder decoder(Kind::Pod, kKept);
  REQUIRE(decoder.decode_object(envelope(meta)).has_value());
  // A node's name as a number, a spec as a number, limits as a number, an exit code as text.
  const auto container_status = field(8, field(2, field(3, field(1, "x"))));
  for (const auto& wrong :
       {field(2, "\x50\x01"s), "\x10\x01"s, field(2, field(2, "\x40\x01"s)), field(3, container_status)}) {
    const auto read = decoder.decode_object(envelope(meta + wrong));
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().name == "web");
    CHECK(read.error().uid == "u-1");
    CHECK(read.error().why != "");
  }
  // An over-long length, an endless varint and a group end in the message itself.
  for (const auto& broken :
       {"\x12\xFF\xFF\xFF\xFF\x0F"s, "\x10\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s, "\x0B"s, "\x00\x01"s}) {
    CHECK_FALSE(decoder.decode_object(envelope(meta + broken)).has_value());
  }
  // Unknown fields of every wire type are stepped over.
  CHECK(decoder
            .decode_object(
                envelope(meta + "\xF8\x3F\x01\xF9\x3F"s + "12345678" + "\xFD\x3F"s + "1234" + "\xFA\x3F\x01z"s))
            .has_value());
}

TEST_CASE("Another kind, another version or another encoding is not read as a pod") {
  using namespace std::string_literals;
  const auto body = read_fixture("protobuf/list/pods.pb");
  CHECK_FALSE(ProtoDecoder(Kind::Pod).decode_list(read_fixture("protobuf/list/nodes.pb")).has_value());
  CHECK_FALSE(ProtoDecoder(Kind::Pod).decode_object(body).has_value());
  auto other_version = body;
  other_version.replace(other_version.find("v1"), 2, "v2");
  CHECK_FALSE(ProtoDecoder(Kind::Pod).decode_list(other_version).has_value());
  CHECK_FALSE(ProtoDecoder(Kind::Pod).decode_list(body + "\x1A\x04gzip"s).has_value());
  CHECK_FALSE(ProtoDecoder(Kind::Pod).decode_list(read_fixture("recordings/list/pods.json")).has_value());
}

}  // namespace
