#include "k8s-client/protocol/request.h"

#include <doctest/doctest.h>

using namespace dhc::k8s;

TEST_CASE("percent_encode leaves unreserved characters and encodes all others") {
  CHECK(percent_encode("aZ09-._~") == "aZ09-._~");
  CHECK(percent_encode("a/b?c=d&e#f %") == "a%2Fb%3Fc%3Dd%26e%23f%20%25");
  CHECK(percent_encode("\r\n\xc3\xa4") == "%0D%0A%C3%A4");
  CHECK(percent_encode(std::string_view("\0", 1)) == "%00");
}

TEST_CASE("header gives the first of a name, or nothing") {
  const Response response{.status = 200, .headers = {{"a", "1"}, {"b", "2"}, {"a", "3"}}, .body = ""};
  CHECK(header(response, "a") == "1");
  CHECK(header(response, "b") == "2");
  CHECK(header(response, "c") == std::nullopt);
}
