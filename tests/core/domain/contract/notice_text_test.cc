#include "domain/contract/notice_text.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/rfc3339.h"

namespace dhc {

namespace {

Notice full_notice() {
  return {.evict = true,
          .number = 2,
          .device = "node-a/example.com/gpu/gpu-0",
          .container = "main",
          .reason = "DeviceUnhealthy",
          .message = "policy p evicts this pod from a bad device: Xid 79",
          .at = *parse_rfc3339("2026-11-20T12:01:00Z"),
          .deadline = parse_rfc3339("2026-11-20T12:06:00Z"),
          .retry = "credited",
          .exit_is_safe = true,
          .restarts = 3};
}

std::optional<NoticeAnswer> answer(std::string_view text) {
  const auto read = read_answer(text);
  return read ? std::optional(*read) : std::nullopt;
}

}  // namespace

TEST_CASE("A notice is one line of JSON with these fields, and is read back as it was written") {
  const auto text = notice_text(full_notice());
  CHECK(
      text ==
      R"({"v":1,"n":2,"action":"evict","device":"node-a/example.com/gpu/gpu-0","container":"main",)"
      R"("reason":"DeviceUnhealthy","message":"policy p evicts this pod from a bad device: Xid 79",)"
      R"("at":"2026-11-20T12:01:00Z","deadline":"2026-11-20T12:06:00Z","retry":"credited","exit":"safe","restarts":3})");
  CHECK(read_notice(text) == full_notice());
  const Notice peer{.peer = "train-3",
                    .number = 1,
                    .device = "d",
                    .reason = "DeviceUnhealthy",
                    .at = full_notice().at,
                    .deadline = full_notice().deadline};
  CHECK(notice_text(peer) ==
        R"({"v":1,"n":1,"action":"peer","device":"d","container":"","reason":"DeviceUnhealthy","message":"",)"
        R"("at":"2026-11-20T12:01:00Z","deadline":"2026-11-20T12:06:00Z","pod":"train-3"})");
  CHECK(read_notice(notice_text(peer)) == peer);
  CHECK_FALSE(read_notice(R"({"v":1,"action":"peer","at":"2026-11-20T12:01:00Z"})"));
  auto none = full_notice();
  none.evict = false;
  const auto json = nlohmann::json::parse(notice_text(none));
  CHECK(json["action"] == "none");
  for (const auto* key : {"deadline", "retry", "exit", "restarts", "also"}) CHECK_FALSE(json.contains(key));
}

TEST_CASE("A notice names the pod's other bad devices, as many as the line has room for") {
  auto notice = full_notice();
  notice.also = {{.device = "node-a/example.com/gpu/gpu-1", .container = "side"}, {.device = "d/p/nic-0"}};
  const auto text = notice_text(notice);
  CHECK(text.ends_with(R"("restarts":3,"also":[{"device":"node-a/example.com/gpu/gpu-1","container":"side"},)"
                       R"({"device":"d/p/nic-0","container":""}]})"));
  CHECK(read_notice(text) == notice);
  notice.also.assign(100, {.device = "d"});
  REQUIRE(read_notice(notice_text(notice)));
  CHECK(read_notice(notice_text(notice))->also.size() == kMostAlso);
  notice.also.assign(100, {.device = std::string(380, '"')});
  CHECK(notice_text(notice).size() <= kLongestNotice);
  REQUIRE(read_notice(notice_text(notice)));
  CHECK(read_notice(notice_text(notice))->also.size() == 2);
  const auto odd = read_notice(R"({"v":1,"action":"evict","at":"2026-11-20T12:01:00Z","also":[1,{"device":2},"x"]})");
  REQUIRE(odd);
  CHECK(odd->also == std::vector<NoticedDevice>(3));
}

TEST_CASE("Words of any length and any bytes make no line that is longer than it may be, or has a control character") {
  for (const std::string filling : {"\"", "\\", "\n", "\x01", "\x80", "\u00e9", "\u2028", "a"}) {
    std::string words;
    while (words.size() < 5000) words += filling;
    auto notice = full_notice();
    notice.device = notice.container = notice.message = words;
    notice.also.assign(20, {.device = words, .container = words});
    notice.number = notice.restarts = INT64_MAX;
    const auto text = notice_text(notice);
    CAPTURE(text);
    CHECK(text.size() <= kLongestNotice);
    for (const char c : text) CHECK((static_cast<unsigned char>(c) >= 0x20 && c != 0x7f));
    CHECK(read_notice(text));
  }
}

TEST_CASE("What is no notice of this version is none, and numbers that nobody can count on from are cut") {
  for (const std::string_view text :
       {"", "evict", "{}", "[]", "null", R"({"v":2,"action":"evict","at":"2026-11-20T12:01:00Z"})",
        R"({"v":1,"action":"dance","at":"2026-11-20T12:01:00Z"})", R"({"v":1,"action":"evict"})",
        R"({"v":"1","action":"evict","at":"2026-11-20T12:01:00Z"})", R"({"v":1,"action":"evict","at":7})"}) {
    CAPTURE(text);
    CHECK_FALSE(read_notice(text));
  }
  CHECK_FALSE(read_notice(std::string(kLongestNotice + 1, ' ')));
  const auto read = read_notice(
      R"({"v":1,"n":9223372036854775807,"action":"none","at":"2026-11-20T12:01:00Z","restarts":-5,"deadline":{}})");
  REQUIRE(read);
  CHECK(read->number == 1'000'000'000);
  CHECK(read->restarts == 0);
  CHECK_FALSE(read->deadline);
}

TEST_CASE("An answer is done, done with a time, or a time until which the pod asks to stay") {
  const auto time = *parse_rfc3339("2026-11-20T12:01:00Z");
  CHECK(answer("done") == NoticeAnswer{});
  CHECK(answer(" done ") == NoticeAnswer{});
  CHECK(answer("done: 2026-11-20T12:01:00Z") == NoticeAnswer{NoticeAnswer::Kind::Done, time});
  CHECK(answer("extend-until:2026-11-20T13:01:00+01:00") == NoticeAnswer{NoticeAnswer::Kind::ExtendUntil, time});
  for (const std::string_view text : {"", "Done", "done:", "done: soon", "extend-until:", "extend-until: 5m", "yes"}) {
    CAPTURE(text);
    CHECK_FALSE(answer(text));
  }
  CHECK(read_answer("extend-until: 5m").error() ==
        "\"extend-until: 5m\" is no answer; write done, done: TIME or extend-until: TIME, with a time such as "
        "2026-11-20T18:23:16Z");
  CHECK(read_answer(std::string(100'000, 'x')).error().size() < 250);
}

}  // namespace dhc
