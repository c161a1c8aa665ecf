#include <atomic>
#include <filesystem>
#include <thread>

#include <doctest/doctest.h>

#include "tests/support/shell/loopback.h"

using namespace dhc;
using namespace dhc::test;
using namespace std::chrono_literals;

namespace {

struct Stopped {
  std::optional<ErrorKind> error;
  Millis after{};  ///< From the request to stop until the call returned.
};

/// Runs the call on a thread, asks it to stop as soon as `there` says so.
Stopped stop_when(const std::function<bool()>& there,
                  const std::function<std::optional<ErrorKind>(std::stop_token)>& call) {
  Stopped out;
  std::chrono::steady_clock::time_point returned;
  std::stop_source stop;
  std::jthread caller([&] {
    out.error = call(stop.get_token());
    returned = std::chrono::steady_clock::now();
  });
  CHECK(eventually(there));
  const auto asked = std::chrono::steady_clock::now();
  stop.request_stop();
  caller.join();
  out.after = std::chrono::duration_cast<Millis>(returned - asked);
  return out;
}

/// Within 100 ms; a machine that is busy elsewhere gets a second and a third try.
void check_stops_soon(const std::function<Stopped()>& once) {
  Millis best = 1h;
  for (int i = 0; i < 3 && best >= 100ms; ++i) {
    const Stopped stopped = once();
    CHECK(stopped.error == ErrorKind::Cancelled);
    best = std::min(best, stopped.after);
  }
  CHECK(best < 100ms);
}

k8s::Request patient(k8s::Method method = k8s::Method::Get) {
  auto request = request_for("/", method);
  request.timeouts = {.connect = 20s, .idle = 20s, .total = std::nullopt};
  return request;
}

}  // namespace

TEST_CASE("a call that is stopped before it starts opens no connection") {
  Loopback loopback(always(ok("")));
  std::stop_source stop;
  stop.request_stop();
  CHECK(error_of(loopback.transport->send(patient(), stop.get_token())) == ErrorKind::Cancelled);
  CHECK(error_of(stream(*loopback.transport, patient(), stop.get_token()).response) == ErrorKind::Cancelled);
  CHECK(loopback.server.connections() == 0);
}

TEST_CASE("a stop ends a call that connects") {
  const SilentPort silent_port;
  check_stops_soon([&] {
    std::atomic<bool> asked = false;
    const auto transport =
        make_transport_under_test({.tls = true, .host = "127.0.0.1", .port = silent_port.port(), .path_prefix = ""},
                                  [&asked](const auto&) {
                                    asked = true;
                                    k8s::TlsMaterial material;
                                    material.insecure_skip_verify = true;
                                    return material;
                                  },
                                  {});
    return stop_when([&] { return asked.load(); },
                     [&](auto stop) { return error_of(transport->send(patient(), stop)); });
  });
}

TEST_CASE("a stop ends a call that shakes hands") {
  check_stops_soon([] {
    Loopback loopback([](ServerConnection&) {}, {.shakes_hands = false});
    return stop_when([&] { return loopback.server.connections() == 1; },
                     [&](auto stop) { return error_of(loopback.transport->send(patient(), stop)); });
  });
}

TEST_CASE("a stop ends a call that sends") {
  check_stops_soon([] {
    std::atomic<bool> shaken = false;
    Loopback loopback([&shaken](ServerConnection& c) {
      shaken = true;
      c.wait_for_client_to_leave();
    });
    auto request = patient(k8s::Method::Post);
    request.body.assign(32 * 1024 * 1024, 'x');
    return stop_when([&] { return shaken.load(); },
                     [&](auto stop) { return error_of(loopback.transport->send(request, stop)); });
  });
}

TEST_CASE("a stop ends a call that waits for the answer") {
  check_stops_soon([] {
    Loopback loopback([](ServerConnection& c) {
      c.read_request();
      c.wait_for_client_to_leave();
    });
    return stop_when([&] { return loopback.server.requests().size() == 1; },
                     [&](auto stop) { return error_of(loopback.transport->send(patient(), stop)); });
  });
}

TEST_CASE("a stop ends a call inside the body") {
  check_stops_soon([] {
    Loopback loopback([](ServerConnection& c) {
      c.read_request();
      c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n");
      c.wait_for_client_to_leave();
    });
    std::atomic<std::size_t> got = 0;
    return stop_when([&] { return got.load() == 2; },
                     [&](auto stop) {
                       return error_of(loopback.transport->stream(
                           patient(),
                           [&got](std::string_view piece) {
                             got += piece.size();
                             return true;
                           },
                           stop));
                     });
  });
}

TEST_CASE("a stop ends a call whose server never stops sending") {
  check_stops_soon([] {
    Loopback loopback([](ServerConnection& c) {
      c.read_request();
      c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
      const std::string chunk = "1000\r\n" + std::string(0x1000, 'x') + "\r\n";
      while (c.send(chunk)) {
      }
    });
    std::atomic<std::size_t> got = 0;
    return stop_when([&] { return got.load() > 1'000'000; },
                     [&](auto stop) {
                       return error_of(loopback.transport->stream(
                           patient(),
                           [&got](std::string_view piece) {
                             got += piece.size();
                             return true;
                           },
                           stop));
                     });
  });
}

TEST_CASE("a stop of a finished call does nothing to the next one on the same connection") {
  Loopback loopback(always(ok("x")));
  for (int i = 0; i < 20; ++i) {
    std::stop_source stop;
    CHECK(loopback.transport->send(patient(), stop.get_token()));
    stop.request_stop();
  }
  check_unless(Limitation::KeptConnections, loopback.server.connections() == 1);
}

TEST_CASE("the sink ends a stream with Cancelled by saying no") {
  Loopback loopback([](ServerConnection& c) {
    c.read_request();
    c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n");
    c.wait_for_client_to_leave();
  });
  int pieces = 0;
  const auto answer = loopback.transport->stream(patient(), [&pieces](std::string_view) { return ++pieces < 1; }, {});
  CHECK(error_of(answer) == ErrorKind::Cancelled);
  CHECK(pieces == 1);
}

TEST_CASE("calls that fail leave no file descriptor behind") {
  Loopback loopback([](ServerConnection& c) {
    c.read_request();
    c.reset();
  });
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  (void)loopback.transport->send(patient(), {});
  const auto before = open_files();
  for (int i = 0; i < 10; ++i) CHECK_FALSE(stream(*loopback.transport, patient()).response);
  CHECK(eventually([&] { return open_files() <= before + 2; }));
}
