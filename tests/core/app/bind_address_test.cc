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

TEST_CASE("only 127.0.0.0/8 and ::1 are the loopback") {
  for (const char* text : {"127.0.0.1:1", "127.8.8.8:1", "localhost:1", "[::1]:1"}) {
    CAPTURE(text);
    CHECK(dhc::is_loopback(parse_bind_address(text).value()));
  }
  for (const char* text :
       {":8082", "0.0.0.0:1", "[::]:1", "10.0.0.1:1", "128.0.0.1:1", "[fe80::1]:1", "1127.0.0.1:1"}) {
    CAPTURE(text);
    CHECK_FALSE(dhc::is_loopback(parse_bind_address(text).value()));
  }
}

TEST_CASE("a Host header names the loopback or another place, whatever its port") {
  for (const char* host : {"localhost", "localhost:8082", "127.0.0.1", "127.0.0.1:8082", "[::1]", "[::1]:8082"}) {
    CAPTURE(host);
    CHECK(dhc::is_loopback_host(host));
  }
  for (const char* host : {"", ":8082", "example.com", "example.com:8082", "127.0.0.1.example.com:8082",
                           "127.example.com", "localhost.example.com", "10.0.0.1:8082", "[::2]:8082", "::1"}) {
    CAPTURE(host);
    CHECK_FALSE(dhc::is_loopback_host(host));
  }
}
