#include "k8s-client/protocol/http_reader.h"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace dhc;
using namespace dhc::k8s;

namespace {

struct Reading {
  std::string body;
  Status status;
  bool stop = false;
  HttpReader reader;

  explicit Reading(HttpLimits limits = {})
      : reader(limits, [this](std::string_view piece) {
          body += piece;
          return !stop;
        }) {}

  Reading& feed(std::string_view bytes) {
    if (status) status = reader.feed(bytes);
    return *this;
  }
  Reading& end() {
    if (status) status = reader.end_of_stream();
    return *this;
  }
  std::optional<ErrorKind> error() const { return status ? std::nullopt : std::optional(status.error().kind); }
};

const std::string kChunked =
    "HTTP/1.1 200 OK\r\nX-A: b\r\nTransfer-Encoding: chunked\r\n\r\n"
    "8\r\n{\"a\":1}\n\r\n5;ext=1\r\n{\"b\":\r\n3\r\n2}\n\r\n0\r\nTrailer: x\r\n\r\n";
const std::string kCounted = "HTTP/1.1 201 Created\r\nContent-Length: 11\r\nX-A: b\r\n\r\nhello world";
const std::string kInterim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";

ErrorKind error_of(std::string_view wire, HttpLimits limits = {}) {
  Reading r(limits);
  const auto error = r.feed(wire).end().error();
  REQUIRE(error);
  return *error;
}

/// Feeds `piece` until an error comes; the bytes it took, 0 if none came.
std::size_t fed_until_error(std::string_view start, std::string_view piece) {
  Reading r;
  r.feed(start);
  std::size_t sent = start.size();
  for (int i = 0; i < 100'000 && r.status; ++i) {
    r.feed(piece);
    sent += piece.size();
  }
  CHECK(r.error() == ErrorKind::Malformed);
  return r.status ? 0 : sent;
}

}  // namespace

TEST_CASE("a response cut at every byte gives the same status, headers and body") {
  for (const std::string& wire : {kChunked, kCounted, kInterim + kChunked, kInterim + kCounted}) {
    Reading whole;
    REQUIRE_FALSE(whole.feed(wire).error());
    for (std::size_t cut = 0; cut <= wire.size(); ++cut) {
      CAPTURE(cut);
      Reading r;
      r.feed(std::string_view(wire).substr(0, cut));
      CHECK(r.reader.done() == (cut == wire.size()));
      r.feed(std::string_view(wire).substr(cut));
      REQUIRE_FALSE(r.error());
      CHECK(r.reader.done());
      CHECK(r.reader.reusable());
      CHECK(r.body == whole.body);
      CHECK(r.reader.head().headers == whole.reader.head().headers);
      CHECK(r.reader.status() == whole.reader.status());
    }
  }
}

TEST_CASE("a response that comes byte by byte is read as one that comes whole") {
  Reading r;
  for (const char c : kInterim + kChunked) r.feed(std::string_view(&c, 1));
  CHECK_FALSE(r.error());
  CHECK(r.reader.done());
  CHECK(r.body == "{\"a\":1}\n{\"b\":2}\n");
  CHECK(header(r.reader.head(), "x-a") == "b");
}

TEST_CASE("a response that ends at any byte before its end is Unavailable") {
  for (const std::string& wire : {kChunked, kCounted, kInterim + kCounted}) {
    for (std::size_t cut = 0; cut < wire.size(); ++cut) {
      CAPTURE(cut);
      Reading r;
      CHECK(r.feed(std::string_view(wire).substr(0, cut)).end().error() == ErrorKind::Unavailable);
    }
  }
}

TEST_CASE("bytes of a chunk are given before the chunk is whole") {
  Reading r;
  r.feed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\nabc");
  CHECK(r.body == "abc");
  CHECK(r.reader.header_done());
  CHECK_FALSE(r.reader.done());
}

TEST_CASE("a header without end stops at the limit") {
  CHECK(fed_until_error("HTTP/1.1 200 OK\r\nX: ", std::string(64, 'x')) <= 17'000);
  CHECK(fed_until_error("HTTP/1.1 200 OK\r\n", "X-Y: 0123456789\r\n") <= 17'000);
  CHECK(fed_until_error("HTTP/1.1 200 ", std::string(64, 'x')) <= 34'000);
}

TEST_CASE("a chunk-size line or a trailer without end stops at 32 KiB and a piece") {
  const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  CHECK(fed_until_error(chunked, std::string(64, '0')) <= 34'000);
  CHECK(fed_until_error(chunked + "5;", std::string(64, 'x')) <= 34'000);
  CHECK(fed_until_error(chunked + "0\r\n", "X-Y: 0123456789\r\n") <= 34'000);
}

TEST_CASE("a header of exactly the limit is read and one byte more is refused") {
  const auto of = [](std::size_t size) { return "HTTP/1.1 204 No\r\nX: " + std::string(size - 7, 'x') + "\r\n\r\n"; };
  const HttpLimits limits{.header_bytes = 1000};
  std::size_t most = 0;
  for (std::size_t size = 900; size < 1100; ++size) {
    if (Reading r(limits); r.feed(of(size)).status) most = size;
  }
  CHECK(most == 1000);
}

TEST_CASE("endless 1xx responses and 101 are refused") {
  CHECK(fed_until_error("", "HTTP/1.1 100 Continue\r\n\r\n") < 1000);
  CHECK(error_of("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n") == ErrorKind::Malformed);
}

TEST_CASE("a message whose end could be read in two ways is refused") {
  const std::string start = "HTTP/1.1 200 OK\r\n";
  CHECK(error_of(start + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc") == ErrorKind::Malformed);
  CHECK(error_of(start + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc") == ErrorKind::Malformed);
  CHECK(error_of(start + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc") == ErrorKind::Malformed);
  CHECK(error_of(start + "Content-Length: -3\r\n\r\nabc") == ErrorKind::Malformed);
  CHECK(error_of(start + "Content-Length: 99999999999999999999999\r\n\r\nabc") == ErrorKind::Malformed);
  CHECK(error_of(start + "Transfer-Encoding: chunked\r\n\r\n-5\r\nabcde") == ErrorKind::Malformed);
  CHECK(error_of(start + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n") == ErrorKind::Malformed);
  CHECK(error_of(start + "Transfer-Encoding: gzip, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n") == ErrorKind::Malformed);
  CHECK(error_of(start + "Transfer-Encoding: gzip\r\n\r\nabc") == ErrorKind::Malformed);
}

TEST_CASE("an encoding that was not asked for is refused") {
  CHECK(error_of("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc") == ErrorKind::Malformed);
  Reading r;
  r.feed("HTTP/1.1 200 OK\r\nContent-Encoding: identity\r\nContent-Length: 3\r\n\r\nabc");
  CHECK(r.body == "abc");
  CHECK_FALSE(r.error());
}

TEST_CASE("what is not HTTP/1 is refused") {
  CHECK(error_of("HTTP/2.0 200 OK\r\n\r\n") == ErrorKind::Malformed);
  CHECK(error_of("SSH-2.0-OpenSSH_9.2\r\n") == ErrorKind::Malformed);
  CHECK(error_of("\x15\x03\x01\x02\x02\x46" + std::string(64, 'x')) == ErrorKind::Malformed);
}

TEST_CASE("a status that HTTP does not have is refused before a byte of the body") {
  for (const std::string status : {"000", "099", "600", "999"}) {
    for (const std::string rest :
         {" X\r\n\r\nabc", " X\r\nContent-Length: 0\r\n\r\n", " X\r\nContent-Length: 3\r\n\r\nabc"}) {
      Reading r;
      CHECK(r.feed("HTTP/1.1 " + status + rest).end().error() == ErrorKind::Malformed);
      CHECK(r.body.empty());
    }
  }
}

TEST_CASE("the body's limit holds with a length, with chunks and without either") {
  const HttpLimits limits{.body_bytes = 4};
  for (const std::string head : {"Content-Length: 5\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n5\r\n", "\r\n"}) {
    CAPTURE(head);
    CHECK(error_of("HTTP/1.1 200 OK\r\n" + head + "hello", limits) == ErrorKind::Malformed);
  }
  Reading r(limits);
  CHECK_FALSE(r.feed("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfour").error());
  CHECK(r.body == "four");
}

TEST_CASE("a receiver that says stop ends the reading with Cancelled") {
  Reading r;
  r.stop = true;
  CHECK(r.feed(kChunked).error() == ErrorKind::Cancelled);
  CHECK(r.body == "{\"a\":1}\n");
}

TEST_CASE("a body without a length ends with the connection and the connection is not used again") {
  Reading r;
  r.feed("HTTP/1.0 200 OK\r\n\r\nabc").end();
  CHECK_FALSE(r.error());
  CHECK(r.body == "abc");
  CHECK(r.reader.done());
  CHECK_FALSE(r.reader.reusable());
}

TEST_CASE("a connection is not used again after Connection: close or bytes that nobody asked for") {
  Reading closing;
  closing.feed("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
  CHECK(closing.reader.done());
  CHECK_FALSE(closing.reader.reusable());

  Reading surplus;
  surplus.feed(kCounted + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  CHECK(surplus.reader.done());
  CHECK_FALSE(surplus.reader.reusable());

  Reading no_content;
  no_content.feed("HTTP/1.1 204 No Content\r\n\r\nbody");
  CHECK(no_content.reader.done());
  CHECK(no_content.body.empty());
  CHECK_FALSE(no_content.reader.reusable());
}

TEST_CASE("a redirect is a response like any other") {
  Reading r;
  r.feed("HTTP/1.1 302 Found\r\nLocation: https://other/\r\nContent-Length: 0\r\n\r\n");
  CHECK(r.reader.status() == 302);
  CHECK(header(r.reader.head(), "location") == "https://other/");
}

TEST_CASE("where the status alone is wanted, nothing that follows it is an error") {
  const std::string gzip = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b\x08";
  const std::string long_body = "HTTP/1.1 202 Accepted\r\nContent-Length: 100\r\n\r\n" + std::string(100, 'x');
  const std::string endless = "HTTP/1.1 200 OK\r\n\r\n" + std::string(100, 'x');
  const std::string long_header = "HTTP/1.1 204 No Content\r\nX: " + std::string(2000, 'y') + "\r\n\r\n";
  const std::string bad_chunk = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
  const std::string refused = "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Encoding: br\r\n\r\n\x01\x02";
  const std::vector<std::pair<std::string, unsigned>> cases = {{gzip, 200U},        {long_body, 202U}, {endless, 200U},
                                                               {long_header, 204U}, {bad_chunk, 200U}, {refused, 503U}};
  for (const auto& [wire, status] : cases) {
    CAPTURE(wire.substr(0, 40));
    const HttpLimits limits{.header_bytes = 1000, .body_bytes = 50, .status_only = true};
    for (const std::size_t piece : {std::size_t(1), std::size_t(7), wire.size()}) {
      Reading r(limits);
      for (std::size_t at = 0; at < wire.size() && !r.reader.done(); at += piece) r.feed(wire.substr(at, piece));
      CHECK_FALSE(r.error());
      CHECK(r.reader.done());
      CHECK_FALSE(r.reader.reusable());
      CHECK(r.reader.head().status == status);
    }
  }
  Reading busy({.status_only = true});
  busy.feed(refused);
  CHECK(header(busy.reader.head(), "retry-after") == "7");
}

TEST_CASE("where the status alone is wanted, what is no answer is none") {
  const HttpLimits limits{.header_bytes = 1000, .status_only = true};
  CHECK(error_of("HTTP/1.1 200 OK\r\nX: y\r\n", limits) == ErrorKind::Unavailable);
  CHECK(error_of("ICY 200 OK\r\n\r\n", limits) == ErrorKind::Malformed);
  CHECK(error_of("HTTP/1.1 999 Odd\r\n\r\n", limits) == ErrorKind::Malformed);
  Reading interim(limits);
  interim.feed(kInterim);
  CHECK_FALSE(interim.reader.done());
  interim.feed(kCounted);
  CHECK(interim.reader.head().status == 201);
  CHECK(interim.reader.reusable());
}
