#include "k8s-client/tls_connection.h"

#include <doctest/doctest.h>

#include "tests/support/shell/loopback.h"

using namespace dhc;
using namespace dhc::k8s;
using namespace dhc::test;
using namespace std::chrono_literals;

namespace {

TlsConnection::Deadline soon() { return std::chrono::steady_clock::now() + 5s; }

}  // namespace

TEST_CASE("a stop that comes after the last read closes the connection before it can be kept") {
  Loopback loopback(always(ok("x")));
  std::stop_source stop;
  auto connection = TlsConnection::open(loopback.endpoint(), loopback.material(), soon(), stop.get_token());
  REQUIRE_MESSAGE(connection, connection.error().message);
  REQUIRE((*connection)->write("GET / HTTP/1.1\r\n\r\n", soon()));
  REQUIRE((*connection)->read_some(soon()));
  CHECK((*connection)->quiet());
  // Between the last byte and the return to the pool: no call is there to be ended, only the next one could be.
  stop.request_stop();
  (*connection)->detach();
  CHECK_FALSE((*connection)->quiet());
}

TEST_CASE("a kept connection listens to its new call's stop alone") {
  Loopback loopback(always(ok("x")));
  std::stop_source first;
  std::stop_source second;
  auto connection = TlsConnection::open(loopback.endpoint(), loopback.material(), soon(), first.get_token());
  REQUIRE(connection);
  (*connection)->detach();
  (*connection)->attach(second.get_token());
  first.request_stop();
  CHECK((*connection)->write("GET / HTTP/1.1\r\n\r\n", soon()));
  CHECK((*connection)->read_some(soon()));
  second.request_stop();
  CHECK(error_of((*connection)->read_some(soon())) == ErrorKind::Cancelled);
}
