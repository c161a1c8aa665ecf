#include <doctest/doctest.h>

#include "tests/support/shell/loopback.h"

using namespace dhc;
using namespace dhc::test;
using k8s::Method;

TEST_CASE("two requests one after the other use one connection") {
  Loopback loopback(always(ok("hello")));
  for (int i = 0; i < 2; ++i) {
    const auto response = loopback.transport->send(request_for("/x"), {});
    REQUIRE_MESSAGE(response, response.error().message);
    CHECK(response->status == 200);
    CHECK(response->body == "hello");
  }
  CHECK(loopback.server.connections() == 1);
  CHECK(loopback.server.requests().size() == 2);
}
