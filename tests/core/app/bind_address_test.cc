#include "app/bind_address.h"

#include <doctest/doctest.h>

using dhc::parse_bind_address;

TEST_CASE("an address to listen on is an IP and a port, or a port alone") {
  CHECK(parse_bind_address(":8080").value() == dhc::BindAddress{"", 8080});
  CHECK(parse_bind_address("127.0.0.1:0").value() == dhc::BindAddress{"127.0.0.1", 0});
  CHECK(parse_bind_address("localhost:80").value() == dhc::BindAddress{"127.0.0.1", 80});
  CHECK(parse_bind_address("[::1]:65535").value() == dhc::BindAddress{"::1", 65535});
}

TEST_CASE("an address without a usable port is refused with the accepted forms") {
  for (const char* text : {"", "8080", ":", ":65536", ":-1", ":80x", "::1:80", "127.0.0.1:"}) {
    CAPTURE(text);
    const auto address = parse_bind_address(text);
    REQUIRE_FALSE(address);
    CHECK(address.error().message.find("IP:PORT") != std::string::npos);
  }
}
