#include <functional>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "k8s-client/model/decoder.h"
#include "tests/core/k8s-client/model/kept.h"
#include "tests/support/core/samples.h"

namespace {

using namespace dhc::k8s;
using dhc::test::full_sample;
using dhc::test::list_of;

// What a hostile input may come to.
enum class Expect {
  Read,        ///< Harmless: in a part that nobody looks at, or an allowed way to write the same.
  Bad,         ///< The object is bad, and we know whose it is.
  BadNoName,   ///< The object is bad, and its name, too.
  BadUnknown,  ///< The object is bad, and nothing of it can be read.
  Frame,       ///< Not even the end of the object can be found: as a list item it makes the page Malformed.
};

struct Hostile {
  const char* name;
  Expect expect;
  std::function<std::string(std::string)> apply;  ///< From a good object's text, which has `"extra":0` and `"n"`.
};

std::string replace(std::string text, std::string_view what, std::string_view by) {
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

auto extra(std::string value) {
  return [value](const std::string& text) { return replace(text, R"("extra":0)", R"("extra":)" + value); };
}

auto name(std::string value) {
  return [value](const std::string& text) { return replace(text, R"("name":"n")", R"("name":")" + value + '"'); };
}

auto grace(std::string value) {
  return [value](const std::string& text) {
    return replace(text, R"("deletionGracePeriodSeconds":30)", R"("deletionGracePeriodSeconds":)" + value);
  };
}

auto wrapped(std::string before, std::string after) {
  return [before, after](const std::string& text) { return before + text + after; };
}

std::string many_labels(std::size_t count) {
  std::string labels = R"("labels":{)";
  for (std::size_t i = 0; i < count; ++i) labels += (i == 0 ? "\"l" : ",\"l") + std::to_string(i) + R"(":"v")";
  return labels + "}";
}

// transport-facts.md B.2 tells what parsers do with each of these.
std::vector<Hostile> hostile_inputs() {
  const auto second_meta = R"("metadata":{"namespace":"ns","name":"n","uid":"u","resourceVersion":"7"},"extra":0)";
  return {
      {"bad UTF-8 in a skipped part", Expect::Bad, extra("\"\xff\"")},
      {"bad UTF-8 in the name", Expect::BadNoName, name("n\xff")},
      {"overlong UTF-8", Expect::Bad, extra("\"\xc0\x80\"")},
      {"surrogate as UTF-8", Expect::Bad, extra("\"\xed\xa0\x80\"")},
      {"lone surrogate in the name", Expect::BadNoName, name(R"(\ud800)")},
      {"lone surrogate in a skipped part", Expect::Read, extra(R"("\ud800")")},
      {"NUL in the name", Expect::BadNoName, name(R"(n\u0000)")},
      {"NUL in a skipped part", Expect::Read, extra(R"("\u0000")")},
      {"escaped control character in the name", Expect::BadNoName, name(R"(n\u001b[31m)")},
      {"raw control character", Expect::Bad, extra("\"\n\"")},
      {"100,000 levels in a skipped part", Expect::Read, extra(std::string(100'000, '[') + std::string(100'000, ']'))},
      {"a million levels, unclosed", Expect::Frame, extra(std::string(1'000'000, '['))},
      {"a number beyond every range", Expect::Bad, grace("99999999999999999999999")},
      {"a number beyond every range in a skipped part", Expect::Read, extra("99999999999999999999999")},
      {"1e400", Expect::Bad, grace("1e400")},
      {"a float", Expect::Bad, grace("30.0")},
      {"a number as text", Expect::Bad, grace("\"30\"")},
      {"cut in the middle", Expect::Frame, [](const std::string& text) { return text.substr(0, text.size() / 2); }},
      {"the last bracket missing", Expect::Frame,
       [](const std::string& text) { return text.substr(0, text.size() - 1); }},
      {"garbage after the object", Expect::Frame, wrapped("", "x")},
      {"a second object after it", Expect::Frame, wrapped("", "{}")},
      {"a bad literal in a used field", Expect::Bad, grace("nul")},
      {"a bad literal in a skipped part", Expect::Read, extra("tru")},
      {"a bad number in a skipped part", Expect::Read, extra("0x1F")},
      {"metadata twice", Expect::Read,
       [=](const std::string& text) { return replace(text, R"("extra":0)", second_meta); }},
      {"an escaped key", Expect::Read,
       [](const std::string& text) { return replace(text, R"("metadata")", R"("m\u0065tadata")"); }},
      {"lists and maps as null", Expect::Read,
       [](const std::string& text) {
         return replace(text, R"("extra":0)", R"("extra":null,"status":null,"spec":null,"data":null)");
       }},
      {"a byte order mark", Expect::BadUnknown, wrapped("\xef\xbb\xbf", "")},
      {"a megabyte of annotation", Expect::Read,
       [](const std::string& text) {
         return replace(text, R"("annotations":{)", R"("annotations":{"a":")" + std::string(1'000'000, 'x') + "\",");
       }},
      {"100,000 labels", Expect::Read,
       [](const std::string& text) { return replace(text, R"("labels":{"app":"infer"})", many_labels(100'000)); }},
      {"no object at all", Expect::BadUnknown, [](const std::string&) { return std::string(R"([1,"x"])"); }},
  };
}

// A slice without a spec names no pool; and what is large is tried on one kind, the code that reads it is the same.
bool is_left_out(const Hostile& hostile, Kind kind, const std::string& object) {
  if (std::string_view(hostile.name) == "lists and maps as null") return kind == Kind::ResourceSlice;
  return object.size() > 100'000 && kind != Kind::Pod;
}

std::string target_object(Kind kind) {
  auto text = full_sample(kind);
  return text.insert(text.size() - 1, R"(,"extra":0)");
}

void check_bad(const BadObject& bad, Expect expect) {
  CHECK_FALSE(bad.why.empty());
  CHECK(bad.uid == (expect == Expect::Bad || expect == Expect::BadNoName ? "u" : ""));
  CHECK(bad.name == (expect == Expect::Bad ? "n" : ""));
}

void check_line(Decoder& decoder, const Hostile& hostile, const std::string& type, const std::string& object) {
  CAPTURE(type);
  const auto event = decoder.decode_event(R"({"type":")" + type + R"(","object":)" + object + "}\n");
  if (hostile.expect == Expect::Read) {
    CHECK_FALSE(std::holds_alternative<BadObject>(event.what));
    CHECK(event.resource_version == "7");
  } else {
    REQUIRE(std::holds_alternative<BadObject>(event.what));
    check_bad(std::get<BadObject>(event.what), hostile.expect);
  }
}

TEST_CASE("Each of 31 hostile inputs, of any kind, in any event, is bad by itself and the next line is read") {
  const auto inputs = hostile_inputs();
  REQUIRE(inputs.size() == 31);
  for (const auto kind : kAllKinds) {
    Decoder decoder(kind, kKept);
    const auto good = R"({"type":"ADDED","object":)" + full_sample(kind) + "}";
    for (const auto& hostile : inputs) {
      CAPTURE(to_string(kind));
      CAPTURE(hostile.name);
      const auto object = hostile.apply(target_object(kind));
      if (is_left_out(hostile, kind, object)) continue;
      for (const auto* type : {"ADDED", "MODIFIED", "DELETED"}) {
        check_line(decoder, hostile, type, object);
        CHECK(std::holds_alternative<Changed>(decoder.decode_event(good).what));
      }
    }
  }
}

TEST_CASE("Each of 31 hostile inputs, of any kind, in a list, leaves its neighbours readable or the page Malformed") {
  const auto inputs = hostile_inputs();
  for (const auto kind : kAllKinds) {
    Decoder decoder(kind, kKept);
    const auto before = full_sample(kind, "before", "u-before");
    const auto after = full_sample(kind, "after", "u-after");
    for (const auto& hostile : inputs) {
      CAPTURE(to_string(kind));
      CAPTURE(hostile.name);
      const auto object = hostile.apply(target_object(kind));
      if (is_left_out(hostile, kind, object)) continue;
      const auto page = decoder.decode_list(list_of({before, object, after}));
      if (hostile.expect == Expect::Frame || std::string_view(hostile.name) == "a byte order mark") {
        REQUIRE_FALSE(page.has_value());
        CHECK(page.error().kind == dhc::ErrorKind::Malformed);
        continue;
      }
      REQUIRE(page.has_value());
      const bool read = hostile.expect == Expect::Read;
      REQUIRE(page->objects.size() == (read ? 3 : 2));
      REQUIRE(page->bad.size() == (read ? 0 : 1));
      CHECK(meta_of(page->objects.front()).uid == "u-before");
      CHECK(meta_of(page->objects.back()).uid == "u-after");
      if (!read) check_bad(page->bad[0], hostile.expect);
    }
  }
}

TEST_CASE("Of duplicate keys the last counts, and nothing of the first is left") {
  auto text = full_sample(Kind::Pod);
  text.insert(text.size() - 1,
              R"(,"status":{"phase":"Pending","containerStatuses":[{"allocatedResourcesStatus":[{"name":"a.b/c"}]}]})");
  const auto pod = Decoder(Kind::Pod, kKept).decode_object(text);
  REQUIRE(pod.has_value());
  CHECK(std::get<Pod>(*pod).phase == PodPhase::Pending);
  CHECK(std::get<Pod>(*pod).status_reason.empty());
  CHECK(std::get<Pod>(*pod).conditions.empty());
  CHECK(std::get<Pod>(*pod).allocated == std::vector<AllocatedResource>{{"a.b/c", {}}});
  CHECK(std::get<Pod>(*pod).claims == std::vector<PodClaim>{{"gpu", "shared"}});
}

TEST_CASE("Of duplicate labels the last counts, and a null one takes it away") {
  const auto read =
      Decoder(Kind::Namespace, kKept).decode_object(R"({"metadata":{"name":"n","uid":"u","resourceVersion":"7",
                          "labels":{"b":"1","a":"1","b":"2","c":"3","c":null}}})");
  REQUIRE(read.has_value());
  CHECK(meta_of(*read).labels == StringMap{{"a", "1"}, {"b", "2"}});
}

TEST_CASE("An event is read however its members are ordered, spaced and escaped") {
  Decoder decoder(Kind::Pod, kKept);
  const auto object = full_sample(Kind::Pod);
  for (const auto& line :
       {R"({"object":)" + object + R"(,"type":"ADDED"})", R"( { "type" : "ADDED" , "object" : )" + object + " } \r\n",
        R"({"ty\u0070e":"\u0041DDED","obj\u0065ct":)" + object + "}",
        R"({"type":"ERROR","object":{},"other":[{"}":"{"}],"type":"ADDED","object":)" + object + "}"}) {
    CAPTURE(line);
    const auto event = decoder.decode_event(line);
    CHECK(std::holds_alternative<Changed>(event.what));
    CHECK(event.resource_version == "7");
  }
}

TEST_CASE("A line that is no event is bad and belongs to nobody") {
  Decoder decoder(Kind::Pod, kKept);
  for (const auto* line :
       {"", " ", "{}", "null", "[]", "{", "}", "\"", R"({"type":"ADDED"})", R"({"object":)", "<html>", "\xff\xfe",
        R"({"type":"ADDED","object":null})", R"({"type":"ADDED","object":"x"})", R"({"type":"ADDED","object":{}})",
        R"({"type":"ADDED","object":{}}})", R"({"type":"ADDED" "object":{}})", R"({"type":"ADDED","object":})"}) {
    CAPTURE(line);
    const auto event = decoder.decode_event(line);
    REQUIRE(std::holds_alternative<BadObject>(event.what));
    CHECK(std::get<BadObject>(event.what).uid.empty());
    CHECK(event.resource_version.empty());
  }
}

TEST_CASE("A type of event that we do not know is bad, with the object's identity and version") {
  for (const auto* type : {R"("SYNC")", "null", "17", R"("\ud800")", R"(["ADDED"])"}) {
    const auto event =
        Decoder(Kind::Pod, kKept)
            .decode_event(std::string(R"({"type":)") + type + R"(,"object":)" + full_sample(Kind::Pod) + "}");
    REQUIRE(std::holds_alternative<BadObject>(event.what));
    CHECK(std::get<BadObject>(event.what) == BadObject{"ns", "n", "u", "type: not a type of event"});
    CHECK(event.resource_version == "7");
  }
}

TEST_CASE("A bookmark needs a version, and only the right annotation ends the initial events") {
  Decoder decoder(Kind::Pod, kKept);
  const auto bookmark = [&](const std::string& meta) {
    return decoder.decode_event(R"({"type":"BOOKMARK","object":{"kind":"Pod","metadata":)" + meta +
                                R"(,"spec":{"containers":null}}})");
  };
  CHECK(std::get<Bookmark>(bookmark(R"({"resourceVersion":"8"})").what) == Bookmark{false});
  CHECK(bookmark(R"({"resourceVersion":"8"})").resource_version == "8");
  CHECK(std::get<Bookmark>(
            bookmark(R"({"resourceVersion":"8","annotations":{"k8s.io/initial-events-end":"true"}})").what) ==
        Bookmark{true});
  CHECK(std::get<Bookmark>(
            bookmark(R"({"resourceVersion":"8","annotations":{"k8s.io/initial-events-end":"false"}})").what) ==
        Bookmark{false});
  CHECK(std::get<Bookmark>(bookmark(R"({"resourceVersion":"8","annotations":null})").what) == Bookmark{false});
  CHECK(std::get<BadObject>(bookmark("{}").what).why == "metadata.resourceVersion: missing");
  CHECK(std::get<BadObject>(bookmark("null").what).why == "metadata.resourceVersion: missing");
  CHECK(std::get<BadObject>(bookmark(R"({"resourceVersion":8})").what).why == "metadata.resourceVersion: not a string");
}

TEST_CASE("A page without items or version says nothing about the cluster and is Malformed") {
  Decoder decoder(Kind::Pod, kKept);
  for (const auto* body :
       {"", "{}", "[]", "<html>", R"({"metadata":{"resourceVersion":"1"}})", R"({"items":[]})",
        R"({"metadata":null,"items":[]})", R"({"metadata":{"resourceVersion":1},"items":[]})",
        R"({"metadata":{"resourceVersion":"1"},"items":{}})", R"({"metadata":{"resourceVersion":"1"},"items":[{]})",
        R"({"metadata":{"resourceVersion":"1"},"items":[]}x)", R"({"metadata":{"resourceVersion":"1"},"items":[,]})",
        R"({"kind":"Status","metadata":{},"status":"Failure","code":410})"}) {
    CAPTURE(body);
    const auto page = decoder.decode_list(body);
    REQUIRE_FALSE(page.has_value());
    CHECK(page.error().kind == dhc::ErrorKind::Malformed);
    CHECK(page.error().message.starts_with("list page: "));
  }
}

TEST_CASE("An empty list is a list, with its version and its token") {
  Decoder decoder(Kind::Pod, kKept);
  for (const auto* items : {"[]", "null", " [ ] "}) {
    const auto page = decoder.decode_list(
        std::string(R"({"metadata":{"resourceVersion":"1","continue":"ab=="},"items":)") + items + "}");
    REQUIRE(page.has_value());
    CHECK(page->resource_version == "1");
    CHECK(page->continue_token == "ab==");
    CHECK(page->objects.empty());
    CHECK(page->bad.empty());
  }
}

}  // namespace
