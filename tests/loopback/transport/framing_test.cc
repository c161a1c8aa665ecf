#include <atomic>

#include <doctest/doctest.h>

#include "tests/support/shell/loopback.h"

using namespace dhc;
using namespace dhc::test;
using namespace std::chrono_literals;

namespace {

const std::string kChunkedHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const std::string kChunked = kChunkedHead + "8\r\n{\"a\":1}\n\r\n5\r\n{\"b\":\r\n3\r\n2}\n\r\n0\r\n\r\n";
const std::string kCounted = "HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{\"a\":1}\n{\"b\":2}\n";
const std::string kBody = "{\"a\":1}\n{\"b\":2}\n";

/// The number at the end of a request's target.
std::size_t number_in(const std::string& request) { return std::stoul(request.substr(request.find("/cut/") + 5)); }

std::optional<ErrorKind> error_after(const std::string& answer) {
  Loopback loopback([&answer](ServerConnection& c) {
    c.read_request();
    c.send(answer);
    c.close();
  });
  auto request = request_for("/");
  request.timeouts.idle = 300ms;
  return error_of(stream(*loopback.transport, request).response);
}

/// How many bytes of an endless answer the client takes before it goes with an error; the server gives up at 4 MB.
std::size_t taken_of_endless(const std::string& start, const std::string& piece, std::optional<ErrorKind>& error) {
  static constexpr std::size_t kEnough = 4'000'000;
  std::atomic<std::size_t> sent = 0;
  {
    Loopback loopback([&](ServerConnection& c) {
      c.read_request();
      if (!c.send(start)) return;
      while (sent < kEnough && c.send(piece)) sent += piece.size();
      c.cut();
    });
    auto request = request_for("/");
    request.timeouts.idle = 2s;
    error = error_of(loopback.transport->send(request, {}));
  }
  return sent;
}

}  // namespace

TEST_CASE("an answer cut at every byte into two packets is the same answer") {
  for (const std::string& wire : {kChunked, kCounted}) {
    Loopback loopback([&wire](ServerConnection& c) {
      for (std::string request = c.read_request(); !request.empty(); request = c.read_request()) {
        const std::size_t cut = number_in(request);
        if (cut > 0) c.send(std::string_view(wire).substr(0, cut));
        if (cut < wire.size()) c.send(std::string_view(wire).substr(cut));
      }
    });
    for (std::size_t cut = 0; cut <= wire.size(); ++cut) {
      CAPTURE(cut);
      const auto answer = loopback.transport->send(request_for("/cut/" + std::to_string(cut)), {});
      REQUIRE_MESSAGE(answer, answer.error().message);
      CHECK(answer->body == kBody);
    }
  }
}

TEST_CASE("an answer that comes byte by byte is streamed whole") {
  Loopback loopback([](ServerConnection& c) {
    c.read_request();
    for (const char& byte : kChunked) c.send({&byte, 1});
    c.wait_for_client_to_leave();
  });
  const auto streamed = stream(*loopback.transport, request_for("/"));
  CHECK_FALSE(error_of(streamed.response));
  CHECK(streamed.body == kBody);
}

TEST_CASE("an answer that ends at any byte before its end is Unavailable, whether TLS ends or TCP is cut") {
  for (const std::string& wire : {kChunked, kCounted}) {
    for (const bool clean : {false, true}) {
      Loopback loopback([&wire, clean](ServerConnection& c) {
        const std::string request = c.read_request();
        if (request.empty()) return;
        const std::size_t cut = number_in(request);
        if (cut > 0) c.send(std::string_view(wire).substr(0, cut));
        if (clean) c.close();
      });
      for (std::size_t cut = 0; cut < wire.size(); ++cut) {
        CAPTURE(cut);
        CAPTURE(clean);
        const auto streamed = stream(*loopback.transport, request_for("/cut/" + std::to_string(cut)));
        CHECK(error_of(streamed.response) == ErrorKind::Unavailable);
        CHECK(kBody.starts_with(streamed.body));
      }
    }
  }
}

TEST_CASE("a reset inside the body is Unavailable") {
  Loopback loopback([](ServerConnection& c) {
    c.read_request();
    c.send(kChunkedHead + "5\r\nab");
    c.reset();
  });
  CHECK(error_of(stream(*loopback.transport, request_for("/")).response) == ErrorKind::Unavailable);
}

TEST_CASE("a body without a length ends where TLS ends and is cut where only TCP ends") {
  const auto read = [](bool clean) {
    Loopback loopback([clean](ServerConnection& c) {
      c.read_request();
      c.send("HTTP/1.1 200 OK\r\n\r\nabc");
      if (clean) c.close();
    });
    return stream(*loopback.transport, request_for("/"));
  };
  const Streamed whole = read(true);
  CHECK_FALSE(error_of(whole.response));
  CHECK(whole.body == "abc");
  CHECK(error_of(read(false).response) == ErrorKind::Unavailable);
}

TEST_CASE("bytes of a chunk arrive before the chunk is whole") {
  Loopback loopback([](ServerConnection& c) {
    c.read_request();
    c.send(kChunkedHead + "1000\r\nabc");
    c.wait_for_client_to_leave();
  });
  std::string body;
  auto request = request_for("/");
  request.timeouts.idle = 300ms;
  (void)loopback.transport->stream(request,
                                   [&body](std::string_view piece) {
                                     body += piece;
                                     return true;
                                   },
                                   {});
  check_unless(Limitation::PartsOfChunks, body == "abc");
}

TEST_CASE("a message whose end could be read in two ways is Malformed") {
  check_unless(
      Limitation::BothLengthAndChunks,
      error_after("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n") ==
          ErrorKind::Malformed);
  check_unless(Limitation::NegativeChunk,
               error_after(kChunkedHead + "-5\r\nabcde\r\n0\r\n\r\n") == ErrorKind::Malformed);
  check_unless(
      Limitation::BadLength,
      error_after("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd") == ErrorKind::Malformed);
}

TEST_CASE("an encoding that nobody asked for is Malformed") {
  CHECK(error_after("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc") ==
        ErrorKind::Malformed);
}

TEST_CASE("what is not HTTP is Malformed") {
  check_unless(Limitation::NotHttp, error_after("SSH-2.0-OpenSSH_9.2\r\n\r\n") == ErrorKind::Malformed);
}

TEST_CASE("1xx answers are skipped") {
  const auto body = [](const std::string& wire) {
    Loopback loopback(always(wire));
    auto request = request_for("/");
    request.timeouts.idle = 300ms;
    return loopback.transport->send(request, {});
  };
  const auto answer = body("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok("real"));
  check_unless(Limitation::InterimAnswers, answer && answer->status == 200 && answer->body == "real");
}

TEST_CASE("a header without end is left within 64 KiB of its limit") {
  std::optional<ErrorKind> error;
  const auto fields = taken_of_endless("HTTP/1.1 200 OK\r\n", "X-Y: 0123456789\r\n", error);
  check_unless(Limitation::HeaderLimit, error == ErrorKind::Malformed && fields < 4'000'000);
  const auto field = taken_of_endless("HTTP/1.1 200 OK\r\nX: ", std::string(1024, 'x'), error);
  check_unless(Limitation::HeaderLimit, error == ErrorKind::Malformed && field < 4'000'000);
}

TEST_CASE("a chunk-size line without end is left") {
  std::optional<ErrorKind> error;
  const auto taken = taken_of_endless(kChunkedHead, std::string(1024, '0'), error);
  check_unless(Limitation::ChunkLineLimit, error == ErrorKind::Malformed && taken < 4'000'000);
}

TEST_CASE("a header of the limit is read and one beyond it is Malformed") {
  const auto answer = [](std::size_t value) {
    Loopback loopback(always("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: " + std::string(value, 'x') + "\r\n\r\n"), {},
                      {.header_bytes = 4096, .body_bytes = 1000});
    return error_of(loopback.transport->send(request_for("/"), {}));
  };
  CHECK_FALSE(answer(4000));
  CHECK(answer(4200) == ErrorKind::Malformed);
}

TEST_CASE("a collected body of the limit is read and one byte more is Malformed, with a length or in chunks") {
  for (const std::size_t size : {1000UL, 1001UL}) {
    for (const bool chunked : {true, false}) {
      const std::string body(size, 'x');
      const std::string wire =
          chunked ? kChunkedHead + (size == 1000 ? "3e8" : "3e9") + "\r\n" + body + "\r\n0\r\n\r\n" : ok(body);
      Loopback loopback(always(wire), {}, {.header_bytes = 4096, .body_bytes = 1000});
      const auto answer = loopback.transport->send(request_for("/"), {});
      CAPTURE(chunked);
      if (size == 1000) {
        CHECK_FALSE(error_of(answer));
      } else {
        CHECK(error_of(answer) == ErrorKind::Malformed);
      }
      CHECK(stream(*loopback.transport, request_for("/")).body == body);
    }
  }
}

TEST_CASE("a streamed body is not taken faster than its sink takes it") {
  static constexpr std::size_t kBytes = 64 * 1024 * 1024;
  std::atomic<std::size_t> sent = 0;
  Loopback loopback([&sent](ServerConnection& c) {
    c.read_request();
    c.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(kBytes) + "\r\n\r\n");
    const std::string piece(64 * 1024, 'x');
    while (sent < kBytes && c.send(piece)) sent += piece.size();
  });
  std::size_t got = 0;
  std::size_t stalled_at = 0;
  const auto answer =
      loopback.transport->stream(request_for("/"),
                                 [&](std::string_view piece) {
                                   got += piece.size();
                                   if (stalled_at != 0) return true;
                                   // The sink holds the first piece until the server could send no more for a while.
                                   auto last_change = std::chrono::steady_clock::now();
                                   for (std::size_t seen = 0; std::chrono::steady_clock::now() - last_change < 100ms;) {
                                     if (sent != seen) {
                                       seen = sent;
                                       last_change = std::chrono::steady_clock::now();
                                     }
                                   }
                                   stalled_at = sent;
                                   return true;
                                 },
                                 {});
  CHECK_FALSE(error_of(answer));
  CHECK(got == kBytes);
  CHECK(stalled_at < kBytes / 2);
}
