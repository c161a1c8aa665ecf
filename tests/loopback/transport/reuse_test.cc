#include <algorithm>
#include <atomic>
#include <thread>

#include <doctest/doctest.h>

#include "tests/support/shell/loopback.h"

using namespace dhc;
using namespace dhc::test;
using k8s::Method;

namespace {

/// How many of the requests start with these words.
std::ptrdiff_t count(const std::vector<std::string>& requests, std::string_view start) {
  return std::ranges::count_if(requests, [&](const std::string& each) { return each.starts_with(start); });
}

/// Answers the first request of each connection; reads a second one and goes without a word.
void answers_once(ServerConnection& c) {
  if (c.read_request().empty()) return;
  c.send(ok("once"));
  c.read_request();
}

}  // namespace

TEST_CASE("two requests one after the other use one connection") {
  Loopback loopback(always(ok("hello")));
  for (int i = 0; i < 2; ++i) {
    const auto response = loopback.transport->send(request_for("/x"), {});
    REQUIRE_MESSAGE(response, response.error().message);
    CHECK(response->status == 200);
    CHECK(response->body == "hello");
  }
  check_unless(Limitation::KeptConnections, loopback.server.connections() == 1);
  CHECK(loopback.server.requests().size() == 2);
}

TEST_CASE("a call whose time is over sends nothing, not even over a connection that stands") {
  Loopback loopback(always(ok("hello")));
  REQUIRE(loopback.transport->send(request_for("/first"), {}));
  auto late = request_for("/late", Method::Post);
  late.timeouts.total = Millis(0);
  CHECK(error_of(loopback.transport->send(late, {})) == ErrorKind::TimedOut);
  CHECK(loopback.transport->send(request_for("/last"), {}));
  CHECK(count(loopback.server.requests(), "POST") == 0);
}

TEST_CASE("each stream has a connection of its own") {
  Loopback loopback(always(ok("hello")));
  CHECK(loopback.transport->send(request_for("/"), {}));
  CHECK(stream(*loopback.transport, request_for("/")).response);
  CHECK(stream(*loopback.transport, request_for("/")).response);
  CHECK(loopback.server.connections() == 3);
}

TEST_CASE("an answer with Connection: close is the connection's last") {
  Loopback loopback(always("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"));
  CHECK(loopback.transport->send(request_for("/"), {}));
  CHECK(loopback.transport->send(request_for("/"), {}));
  CHECK(loopback.server.connections() == 2);
}

TEST_CASE("a connection on which bytes came that nobody asked for is not used again") {
  Loopback loopback(always(ok("") + ok("smuggled")));
  for (int i = 0; i < 3; ++i) {
    const auto answer = loopback.transport->send(request_for("/"), {});
    REQUIRE(answer);
    CHECK(answer->body.empty());
  }
}

TEST_CASE("a GET on a kept connection that closes without an answer is sent again on a fresh one") {
  Loopback loopback(answers_once);
  CHECK(loopback.transport->send(request_for("/"), {}));
  const auto answer = loopback.transport->send(request_for("/again"), {});
  REQUIRE_MESSAGE(answer, answer.error().message);
  CHECK(answer->body == "once");
  CHECK(loopback.server.connections() == 2);
}

TEST_CASE("a write on a kept connection that closes without an answer is never sent twice") {
  for (const Method method : {Method::Post, Method::Patch, Method::Put, Method::Delete}) {
    Loopback loopback(answers_once);
    CHECK(loopback.transport->send(request_for("/"), {}));
    const auto answer = loopback.transport->send(request_for("/write", method), {});
    const std::string line = std::string(to_string(method)) + " /write";
    CHECK(count(loopback.server.requests(), line) == 1);
    check_unless(Limitation::KeptConnections, error_of(answer) == ErrorKind::Unavailable);
  }
}

TEST_CASE("a connection that the server closed while it was idle is not used for a write") {
  std::atomic<bool> cut = false;
  Loopback loopback([&cut](ServerConnection& c) {
    if (c.read_request().empty()) return;
    c.send(ok("x"));
    if (!cut.exchange(true)) return c.cut();
    c.wait_for_client_to_leave();
  });
  CHECK(loopback.transport->send(request_for("/"), {}));
  CHECK(eventually([&] { return cut.load(); }));
  std::this_thread::sleep_for(
      std::chrono::milliseconds(20));  // cut() itself: nothing tells us that its FIN has arrived
  const auto answer = loopback.transport->send(request_for("/write", Method::Post), {});
  REQUIRE_MESSAGE(answer, answer.error().message);
  CHECK(count(loopback.server.requests(), "POST /write") == 1);
  CHECK(loopback.server.connections() == 2);
}

TEST_CASE("a fresh connection that closes without an answer is not tried again") {
  Loopback loopback([](ServerConnection& c) { c.read_request(); });
  CHECK(error_of(loopback.transport->send(request_for("/"), {})) == ErrorKind::Unavailable);
  CHECK(loopback.server.connections() == 1);
}

TEST_CASE("new material means a new connection") {
  const CertificateAuthority clients("clients");
  std::mutex mutex;
  std::vector<std::string> names;
  std::string current = "first";
  {
    Loopback loopback(
        [&](ServerConnection& c) {
          {
            const std::lock_guard lock(mutex);
            names.push_back(c.client_name());
          }
          while (!c.read_request().empty()) c.send(ok(""));
        },
        {.client_ca_pem = clients.pem()});
    const Identity first = clients.issue({.common_name = "first", .names = ""});
    const Identity second = clients.issue({.common_name = "second", .names = ""});
    const auto transport = make_transport_under_test(loopback.endpoint(),
                                                     [&](const auto&) {
                                                       k8s::TlsMaterial material = loopback.material();
                                                       const Identity& identity = current == "first" ? first : second;
                                                       material.client_cert_pem = identity.cert_pem;
                                                       material.client_key_pem = identity.key_pem;
                                                       return material;
                                                     },
                                                     {});
    for (const char* now : {"first", "first", "second", "second"}) {
      current = now;
      CHECK(transport->send(request_for("/"), {}));
    }
  }
  check_unless(Limitation::KeptConnections, names.size() == 2);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  CHECK(names == std::vector<std::string>{"first", "second"});
}

TEST_CASE("many threads share one transport") {
  Loopback loopback(always(ok("shared")));
  std::atomic<int> good = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 25; ++n) {
          const auto answer = loopback.transport->send(request_for("/"), {});
          if (answer && answer->body == "shared") ++good;
        }
      });
    }
  }
  CHECK(good == 200);
  CHECK(loopback.server.requests().size() == 200);
}
