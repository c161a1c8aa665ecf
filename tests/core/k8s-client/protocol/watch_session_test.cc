#include "k8s-client/protocol/watch_session.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/support/core/fixtures.h"
#include "tests/support/core/proto_writing.h"
#include "tests/support/core/watch_driver.h"

using namespace dhc;
using namespace dhc::k8s;
using dhc::test::read_fixture;

namespace {

constexpr Now kNow{.mono = MonoTime(Seconds(100)), .wall = {}};

struct Heard {
  std::vector<std::string> words;
  std::uint64_t events = 0;
  std::uint64_t json_bytes = 0;
  std::uint64_t protobuf_bytes = 0;
  bool open = true;
  friend bool operator==(const Heard&, const Heard&) = default;
};

Heard hear(Kind kind, const std::vector<std::string_view>& pieces) {
  WatchSession session(WatchTarget{.kind = kind, .ns = {}, .name = {}});
  REQUIRE(std::holds_alternative<OpenStream>(session.next(kNow, 0.5)));
  Heard heard;
  std::vector<Delivery> out;
  for (const auto piece : pieces) heard.open = heard.open && session.feed(piece, kNow, out);
  for (const auto& delivery : out) heard.words.push_back(test::word_of(delivery));
  const auto status = session.status();
  heard.events = status.events;
  heard.json_bytes = status.json_bytes;
  heard.protobuf_bytes = status.protobuf_bytes;
  return heard;
}

/// Cuts the stream in two at every `step`-th byte, then feeds it byte by byte: the first difference, or nothing.
std::string difference_when_cut(Kind kind, const std::string& body, std::size_t step) {
  const auto whole = hear(kind, {body});
  if (!whole.open || whole.words.size() < 2 || !whole.words.front().starts_with("Snapshot(")) return "no watch";
  for (std::size_t at = 0; at <= body.size(); at += step) {
    const auto cut = hear(kind, {std::string_view(body).substr(0, at), std::string_view(body).substr(at)});
    if (!(cut == whole)) return "cut at byte " + std::to_string(at);
  }
  std::vector<std::string_view> bytes;
  for (std::size_t at = 0; at < body.size(); ++at) bytes.push_back(std::string_view(body).substr(at, 1));
  return hear(kind, bytes) == whole ? "" : "byte by byte";
}

/// A WatchList body of `slices-watchlist.ndjson`, then the same session goes on.
WatchSession synced(Kind kind, const std::string& fixture, std::vector<Delivery>& out) {
  WatchSession session(WatchTarget{.kind = kind, .ns = {}, .name = {}});
  REQUIRE(std::holds_alternative<OpenStream>(session.next(kNow, 0.5)));
  REQUIRE(session.feed(read_fixture(fixture), kNow, out));
  return session;
}

Now later(Millis time) { return {.mono = kNow.mono + time, .wall = {}}; }

/// The target of the next stream, after the check that comes before it.
std::string stream_target(WatchSession& session, const Now& now) {
  auto step = session.next(now, 0.5);
  if (const auto* check = std::get_if<SendList>(&step)) {
    REQUIRE(check->request.target.ends_with("?limit=1"));
    const std::string body =
        R"({"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"99999999"},"items":[]})";
    std::vector<Delivery> out;
    session.list_answered(Response{.status = 200, .headers = {}, .body = body}, now, 0.5, out);
    step = session.next(now, 0.5);
  }
  REQUIRE(std::holds_alternative<OpenStream>(step));
  return std::get<OpenStream>(step).request.target;
}

/// Without what the watch says of itself.
std::vector<Delivery> about_objects(const std::vector<Delivery>& out) {
  std::vector<Delivery> kept;
  for (const auto& delivery : out) {
    if (!std::holds_alternative<Told>(delivery)) kept.push_back(delivery);
  }
  return kept;
}

}  // namespace

TEST_CASE("a recorded watch cut at every byte gives the same deliveries") {
  CHECK(
      difference_when_cut(Kind::ResourceSlice, read_fixture("recordings/watch/slices-driver-dies.ndjson"), 1).empty());
  CHECK(difference_when_cut(Kind::DeviceTaintRule, read_fixture("recordings/watch/rules-watchlist.ndjson"), 1).empty());
}

TEST_CASE("recorded watches of pods, claims and jobs, cut at every 97th byte and fed byte by byte, say the same") {
  CHECK(difference_when_cut(Kind::Pod, read_fixture("recordings/watch/pods-driver-dies.ndjson"), 97).empty());
  CHECK(difference_when_cut(Kind::ResourceClaim, read_fixture("recordings/watch/claims-watchlist.ndjson"), 97).empty());
  CHECK(difference_when_cut(Kind::Job, read_fixture("recordings/watch/jobs-watchlist.ndjson"), 97).empty());
}

TEST_CASE("a recorded watch ends with the version of its last bookmark") {
  std::vector<Delivery> out;
  auto session = synced(Kind::ResourceClaim, "recordings/watch/claims-watchlist.ndjson", out);
  CHECK(test::word_of(out.front()) == "Snapshot()");
  out = about_objects(out);
  CHECK(test::word_of(out.at(1)) == "+infer-5c79c8697c-vhngp-gpu-7wrnc");
  CHECK(test::word_of(out.back()) == "-infer-5c79c8697c-vhngp-gpu-7wrnc");
  CHECK(session.status().bad_objects == 0);
  session.stream_ended(Response{}, later(std::chrono::minutes(6)), 0.5, out);
  CHECK(stream_target(session, later(std::chrono::minutes(6))).find("resourceVersion=1595&") != std::string::npos);
}

TEST_CASE("the recorded 410 of a 200 stream leads to a list no older than what we have") {
  std::vector<Delivery> out;
  auto session = synced(Kind::ResourceSlice, "recordings/watch/slices-watchlist.ndjson", out);
  session.stream_ended(Response{}, later(Seconds(60)), 0.5, out);
  const auto watched = stream_target(session, later(Seconds(60)));
  const auto delivered = about_objects(out).size();
  CHECK_FALSE(session.feed(read_fixture("recordings/status/watch-410.json"), later(Seconds(61)), out));
  session.stream_ended(fail(ErrorKind::Cancelled, "by us"), later(Seconds(61)), 0.5, out);
  CHECK(std::holds_alternative<WaitFor>(session.next(later(Seconds(61)), 0.5)));
  const auto listed = stream_target(session, later(Seconds(70)));
  CHECK(listed.find("sendInitialEvents=true") != std::string::npos);
  const auto version = watched.substr(watched.find("resourceVersion="));
  CHECK(listed.ends_with(version.substr(0, version.find('&'))));
  CHECK(about_objects(out).size() == delivered);
}

TEST_CASE("the unfinished line of a stream that was cut is not joined to the next stream") {
  std::vector<Delivery> out;
  auto session = synced(Kind::ResourceSlice, "recordings/watch/slices-watchlist.ndjson", out);
  CHECK(session.feed(R"({"type":"ADDED","object":{"ki)", kNow, out));
  session.stream_ended(fail(ErrorKind::Unavailable, "cut"), kNow, 0.5, out);
  CHECK_FALSE(stream_target(session, later(Seconds(30))).empty());
  const auto body = read_fixture("recordings/watch/slices-driver-dies.ndjson");
  const auto before = about_objects(out).size();
  CHECK(session.feed(body.substr(0, body.find('\n') + 1), later(Seconds(30)), out));
  CHECK(about_objects(out).size() == before + 1);
  CHECK(session.status().bad_objects == 0);
}

TEST_CASE("a line longer than 8 MiB is counted and the stream goes on") {
  std::vector<Delivery> out;
  auto session = synced(Kind::ResourceSlice, "recordings/watch/slices-watchlist.ndjson", out);
  const auto before = out.size();
  const std::string piece(1024UL * 1024, 'x');
  for (int i = 0; i < 9; ++i) CHECK(session.feed(piece, kNow, out));
  CHECK(session.feed("\n", kNow, out));
  CHECK(session.status().bad_objects == 1);
  const auto body = read_fixture("recordings/watch/slices-driver-dies.ndjson");
  CHECK(session.feed(body.substr(0, body.find('\n') + 1), kNow, out));
  CHECK(out.size() == before + 1);
}

TEST_CASE("an HTML page with status 200 is no watch") {
  WatchSession session(WatchTarget{.kind = Kind::Node, .ns = {}, .name = {}});
  CHECK(std::holds_alternative<OpenStream>(session.next(kNow, 0.5)));
  std::vector<Delivery> out;
  std::string page;
  for (int i = 0; i < 20; ++i) page += "<p>Please log in</p>\n";
  CHECK_FALSE(session.feed(page, kNow, out));
  session.stream_ended(fail(ErrorKind::Cancelled, "by us"), kNow, 0.5, out);
  CHECK(std::holds_alternative<WaitFor>(session.next(kNow, 0.5)));
  CHECK(out.empty());
}

TEST_CASE("pages recorded from a real server become one snapshot, and a page that is none starts again") {
  WatchSession session(WatchTarget{.kind = Kind::Pod, .ns = {}, .name = {}});
  std::vector<Delivery> out;
  CHECK(std::holds_alternative<OpenStream>(session.next(kNow, 0.5)));
  session.stream_ended(fail(ErrorKind::Invalid, "no WatchList"), kNow, 0.5, out);
  CHECK(std::holds_alternative<SendList>(session.next(kNow, 0.5)));
  session.list_answered(Response{.status = 200, .headers = {}, .body = "<html>"}, kNow, 0.5, out);
  CHECK(out.empty());
  CHECK(std::holds_alternative<WaitFor>(session.next(kNow, 0.5)));
  CHECK(std::holds_alternative<SendList>(session.next(later(Seconds(30)), 0.5)));
  session.list_answered(Response{.status = 200, .headers = {}, .body = read_fixture("recordings/list/pods.json")},
                        later(Seconds(30)), 0.5, out);
  CHECK(about_objects(out).size() == 1);
  CHECK(std::get<Snapshot>(out.front()).objects.size() == 4);
  CHECK(stream_target(session, later(Seconds(30))).find("resourceVersion=1438&") != std::string::npos);
}

namespace {

WatchSession pods_in_protobuf() {
  return WatchSession(WatchTarget{.kind = Kind::Pod, .ns = {}, .name = {}, .kept = {}, .wire = WireFormat::Protobuf});
}

std::string accept_of(const Request& request) { return request.headers.at(0).value; }

}  // namespace

TEST_CASE("a watch in protobuf says what the same watch in JSON says, wherever it is cut") {
  const auto body = read_fixture("protobuf/watch/pods-driver-dies.pb");
  CHECK(difference_when_cut(Kind::Pod, body, 97).empty());
  const auto protobuf = hear(Kind::Pod, {body});
  const auto json = hear(Kind::Pod, {read_fixture("recordings/watch/pods-driver-dies.ndjson")});
  CHECK(protobuf.words == json.words);
  CHECK(protobuf.events == json.events);
  CHECK(protobuf.protobuf_bytes == body.size());
  CHECK(protobuf.json_bytes == 0);
}

TEST_CASE("a server that answers in JSON is read as JSON, stream and page, though protobuf was asked for") {
  auto session = pods_in_protobuf();
  std::vector<Delivery> out;
  CHECK(accept_of(std::get<OpenStream>(session.next(kNow, 0.5)).request).starts_with(kProtobuf));
  CHECK(session.feed(read_fixture("recordings/watch/pods-driver-dies.ndjson"), kNow, out));
  CHECK(test::word_of(out.front()).starts_with("Snapshot("));
  CHECK(session.status().protobuf_bytes == 0);
  session.stream_ended(Response{}, later(std::chrono::minutes(6)), 0.5, out);
  const auto check = session.next(later(std::chrono::minutes(6)), 0.5);
  CHECK(accept_of(std::get<SendList>(check).request).starts_with(kProtobuf));
  session.list_answered(Response{.status = 200, .headers = {}, .body = read_fixture("recordings/list/pods.json")},
                        later(std::chrono::minutes(6)), 0.5, out);
  CHECK(session.status().endings[static_cast<std::size_t>(WatchEnding::Malformed)] == 0);
}

TEST_CASE("pages in protobuf become one snapshot, and the next stream may be JSON") {
  auto session = pods_in_protobuf();
  std::vector<Delivery> out;
  CHECK(std::holds_alternative<OpenStream>(session.next(kNow, 0.5)));
  session.stream_ended(fail(ErrorKind::Invalid, "no WatchList"), kNow, 0.5, out);
  CHECK(accept_of(std::get<SendList>(session.next(kNow, 0.5)).request).starts_with(kProtobuf));
  session.list_answered(Response{.status = 200, .headers = {}, .body = read_fixture("protobuf/list/pods.pb")}, kNow,
                        0.5, out);
  out = about_objects(out);
  REQUIRE(out.size() == 1);
  CHECK(std::get<Snapshot>(out.front()).objects.size() == 4);
  CHECK(stream_target(session, kNow).find("resourceVersion=1438&") != std::string::npos);
}

TEST_CASE("a server that refuses protobuf is asked in JSON from then on, with WatchList again") {
  auto session = pods_in_protobuf();
  std::vector<Delivery> out;
  CHECK(std::holds_alternative<OpenStream>(session.next(kNow, 0.5)));
  session.stream_ended(fail(ErrorKind::Invalid, "406"), kNow, 0.5, out);
  CHECK(std::holds_alternative<SendList>(session.next(kNow, 0.5)));
  session.list_answered(fail(ErrorKind::Invalid, "406"), kNow, 0.5, out);
  const auto stream = session.next(kNow, 0.5);
  REQUIRE(std::holds_alternative<OpenStream>(stream));
  CHECK(accept_of(std::get<OpenStream>(stream).request) == kJson);
  CHECK(std::get<OpenStream>(stream).request.target.find("sendInitialEvents=true") != std::string::npos);
  CHECK(session.status().endings[static_cast<std::size_t>(WatchEnding::OtherFormat)] == 1);
  // JSON that is refused as well is no reason to hurry.
  session.stream_ended(fail(ErrorKind::Invalid, "406"), kNow, 0.5, out);
  CHECK(std::holds_alternative<SendList>(session.next(kNow, 0.5)));
  session.list_answered(fail(ErrorKind::Invalid, "406"), kNow, 0.5, out);
  CHECK(std::holds_alternative<WaitFor>(session.next(kNow, 0.5)));
}

TEST_CASE("a list and a stream in protobuf that cannot be read are asked for in JSON") {
  for (const bool stream : {true, false}) {
    CAPTURE(stream);
    auto session = pods_in_protobuf();
    std::vector<Delivery> out;
    CHECK(std::holds_alternative<OpenStream>(session.next(kNow, 0.5)));
    if (stream) {
      CHECK_FALSE(session.feed(std::string("\0\xFF\xFF\xFF", 4), kNow, out));
      session.stream_ended(fail(ErrorKind::Cancelled, "by us"), kNow, 0.5, out);
    } else {
      session.stream_ended(fail(ErrorKind::Invalid, "no WatchList"), kNow, 0.5, out);
      CHECK(std::holds_alternative<SendList>(session.next(kNow, 0.5)));
      const auto body = read_fixture("protobuf/list/pods.pb");
      session.list_answered(Response{.status = 200, .headers = {}, .body = body.substr(0, body.size() / 2)}, kNow, 0.5,
                            out);
    }
    const auto next = session.next(kNow, 0.5);
    REQUIRE(std::holds_alternative<OpenStream>(next));
    CHECK(accept_of(std::get<OpenStream>(next).request) == kJson);
    CHECK(out.empty());
  }
}

TEST_CASE("the unfinished frame of a stream that was cut is not joined to the next stream") {
  auto session = pods_in_protobuf();
  std::vector<Delivery> out;
  CHECK(std::holds_alternative<OpenStream>(session.next(kNow, 0.5)));
  const auto body = read_fixture("protobuf/watch/pods-driver-dies.pb");
  CHECK(session.feed(std::string_view(body).substr(0, 5000), kNow, out));
  session.stream_ended(fail(ErrorKind::Unavailable, "cut"), kNow, 0.5, out);
  CHECK_FALSE(stream_target(session, later(Seconds(60))).empty());
  CHECK(session.feed(body, later(Seconds(60)), out));
  CHECK(test::word_of(out.front()).starts_with("Snapshot("));
  CHECK(session.status().bad_objects == 0);
}

TEST_CASE("the 410 of a stream in protobuf leads to a list") {
  auto session = pods_in_protobuf();
  std::vector<Delivery> out;
  CHECK(std::holds_alternative<OpenStream>(session.next(kNow, 0.5)));
  CHECK(session.feed(read_fixture("protobuf/watch/pods-driver-dies.pb"), kNow, out));
  CHECK_FALSE(session.feed(read_fixture("protobuf/status/watch-410.pb"), kNow, out));
  session.stream_ended(fail(ErrorKind::Cancelled, "by us"), kNow, 0.5, out);
  CHECK(session.status().endings[static_cast<std::size_t>(WatchEnding::Gone)] == 1);
}

TEST_CASE("what protobuf holds instead of the kind that was asked for leads to JSON, and says nothing about objects") {
  const auto table = test::enveloped("meta.k8s.io/v1", "Table", test::field(1, test::field(2, "7")));
  const auto refusal = test::enveloped("v1", "Status", test::field(3, "no") + test::number(6, 200));
  const auto newer = test::enveloped("v2", "PodList", test::field(1, test::field(2, "7")));
  for (const auto& body : {table, refusal, newer, std::string("k8s\0", 4), std::string()}) {
    auto session = pods_in_protobuf();
    std::vector<Delivery> out;
    CHECK(std::holds_alternative<OpenStream>(session.next(kNow, 0.5)));
    session.stream_ended(fail(ErrorKind::Invalid, "no WatchList"), kNow, 0.5, out);
    CHECK(std::holds_alternative<SendList>(session.next(kNow, 0.5)));
    session.list_answered(Response{.status = 200, .headers = {}, .body = body}, kNow, 0.5, out);
    CHECK(out.empty());
    CHECK(accept_of(std::get<OpenStream>(session.next(kNow, 0.5)).request) == kJson);
  }
}

TEST_CASE("a stream of protobuf about another kind is given up after ten frames, for JSON") {
  const auto event = test::field(1, "ADDED") + test::field(2, test::field(1, test::enveloped("v1", "Secret", "")));
  const auto frame = std::string("\0\0\0", 3) + static_cast<char>(event.size()) + event;
  auto session = pods_in_protobuf();
  std::vector<Delivery> out;
  CHECK(std::holds_alternative<OpenStream>(session.next(kNow, 0.5)));
  for (int i = 0; i < 9; ++i) CHECK(session.feed(frame, kNow, out));
  CHECK_FALSE(session.feed(frame, kNow, out));
  session.stream_ended(fail(ErrorKind::Cancelled, "by us"), kNow, 0.5, out);
  CHECK(out.empty());
  CHECK(accept_of(std::get<OpenStream>(session.next(kNow, 0.5)).request) == kJson);
}
