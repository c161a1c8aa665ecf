#include <atomic>
#include <thread>

#include <doctest/doctest.h>

#include "k8s-client/boot_clock.h"
#include "tests/support/shell/loopback.h"

using namespace dhc;
using namespace dhc::test;
using namespace std::chrono_literals;

namespace {

/// Well above what a loaded machine adds to a limit, well below the limits that must not be the ones that ended a call.
constexpr auto kSlack = 2s;

struct Timed {
  std::optional<ErrorKind> error;
  std::string message;
  Millis took{};
};

Timed timed_stream(k8s::Transport& transport, const k8s::Request& request) {
  Timed out;
  out.took = time_of([&] {
    const auto streamed = stream(transport, request);
    out.error = error_of(streamed.response);
    if (!streamed.response) out.message = streamed.response.error().message;
  });
  return out;
}

void check_timed_out(const Timed& call, Millis limit) {
  CHECK(call.error == ErrorKind::TimedOut);
  CHECK(call.took >= limit);
  CHECK(call.took < limit + kSlack);
}

k8s::Request with(Millis connect, Millis idle, std::optional<Millis> total) {
  auto request = request_for("/");
  request.timeouts = {.connect = connect, .idle = idle, .total = total};
  return request;
}

const std::string kChunkedAnswer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

void silent(ServerConnection& c) {
  c.read_request();
  c.wait_for_client_to_leave();
}

/// A byte in its own chunk every 20 ms, 30 times.
void dripping(ServerConnection& c) {
  c.read_request();
  c.send(kChunkedAnswer);
  for (int i = 0; i < 30 && c.send("1\r\nx\r\n"); ++i) c.pause(20ms);
  c.send("0\r\n\r\n");
}

}  // namespace

TEST_CASE("connecting to a host that swallows packets ends at the connect limit") {
  const SilentPort silent_port;
  const auto transport =
      make_transport_under_test({.tls = true, .host = "127.0.0.1", .port = silent_port.port(), .path_prefix = ""},
                                [](const auto&) {
                                  k8s::TlsMaterial material;
                                  material.insecure_skip_verify = true;
                                  return material;
                                },
                                {});
  const auto call = timed_stream(*transport, with(100ms, 10s, 10s));
  check_timed_out(call, 100ms);
  CHECK(call.message.find("connecting may take 100 ms") != std::string::npos);
}

TEST_CASE("a server that accepts and never shakes hands is left at the connect limit") {
  Loopback loopback([](ServerConnection&) {}, {.shakes_hands = false});
  const auto call = timed_stream(*loopback.transport, with(100ms, 10s, 10s));
  check_timed_out(call, 100ms);
}

TEST_CASE("a server that never answers is left at the idle limit, as after a half-open connection") {
  Loopback loopback(silent);
  const auto call = timed_stream(*loopback.transport, with(10s, 100ms, std::nullopt));
  check_timed_out(call, 100ms);
  CHECK(call.message.find("silence may take 100 ms") != std::string::npos);
}

TEST_CASE("a server that falls silent inside a header, a chunk or between chunks is left at the idle limit") {
  for (const std::string& start :
       {std::string("HTTP/1.1 2"), kChunkedAnswer, kChunkedAnswer + "5\r\nab", kChunkedAnswer + "1\r\nx\r\n"}) {
    CAPTURE(start);
    Loopback loopback([&start](ServerConnection& c) {
      c.read_request();
      c.send(start);
      c.wait_for_client_to_leave();
    });
    check_timed_out(timed_stream(*loopback.transport, with(10s, 100ms, std::nullopt)), 100ms);
  }
}

TEST_CASE("a body that drips faster than the idle limit lives longer than it") {
  Loopback loopback(dripping);
  const auto streamed = stream(*loopback.transport, with(10s, 300ms, std::nullopt));
  CHECK_FALSE(error_of(streamed.response));
  CHECK(streamed.body == std::string(30, 'x'));
}

TEST_CASE("a body that drips is left at the total limit") {
  Loopback loopback(dripping);
  const auto call = timed_stream(*loopback.transport, with(10s, 10s, 150ms));
  CHECK(call.error == ErrorKind::TimedOut);
  CHECK(call.took >= 150ms);
  CHECK(call.took < 550ms);
  CHECK(call.message.find("whole call may take 150 ms") != std::string::npos);
}

TEST_CASE("the total limit counts connecting") {
  Loopback loopback([](ServerConnection&) {}, {.shakes_hands = false});
  const auto call = timed_stream(*loopback.transport, with(10s, 10s, 100ms));
  check_timed_out(call, 100ms);
}

TEST_CASE("a server that reads nothing is left at the idle limit while we send") {
  Loopback loopback([](ServerConnection& c) { c.wait_for_client_to_leave(); });
  auto request = with(10s, 200ms, 20s);
  request.method = k8s::Method::Post;
  request.body.assign(64 * 1024 * 1024, 'x');
  Result<k8s::Response> answer = fail(ErrorKind::Invalid, "");
  const auto took = time_of([&] { answer = loopback.transport->send(request, {}); });
  CHECK(error_of(answer) == ErrorKind::TimedOut);
  CHECK(took < 10s);
}

TEST_CASE("a request whose moment has passed is not sent, however much time its limits leave") {
  std::atomic<int> requests = 0;
  Loopback loopback([&](ServerConnection& c) {
    while (!c.read_request().empty()) {
      ++requests;
      if (!c.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")) return;
    }
  });
  auto request = with(60s, 60s, 60s);
  request.timeouts.end_by = k8s::boot_now() + Seconds(60);
  CHECK(loopback.transport->send(request, {}));
  CHECK(requests == 1);
  // As one that was frozen after it had been let through finds it; by now there is a connection.
  request.timeouts.end_by = k8s::boot_now();
  const auto late = loopback.transport->send(request, {});
  REQUIRE_FALSE(late);
  CHECK(late.error().kind == ErrorKind::TimedOut);
  CHECK(requests == 1);
}

TEST_CASE("a refused connection is Unavailable at once") {
  std::uint16_t port = 0;
  {
    Loopback gone(always(""));
    port = gone.server.port();
  }
  const auto transport =
      make_transport_under_test({.tls = false, .host = "127.0.0.1", .port = port, .path_prefix = ""}, {}, {});
  Result<k8s::Response> answer = fail(ErrorKind::Invalid, "");
  const auto took = time_of([&] { answer = transport->send(request_for("/"), {}); });
  CHECK(error_of(answer) == ErrorKind::Unavailable);
  CHECK(took < kSlack);
}
