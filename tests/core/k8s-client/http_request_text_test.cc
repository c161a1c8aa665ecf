#include "k8s-client/protocol/http_request_text.h"

#include <doctest/doctest.h>

using namespace dhc;
using namespace dhc::k8s;

namespace {

Request get(std::string target, std::vector<Header> headers = {}) {
  return {
      .method = Method::Get, .target = std::move(target), .headers = std::move(headers), .body = "", .timeouts = {}};
}

bool is_refused(const Request& request) {
  const auto text = build_request_text(request, "host", "");
  return !text && text.error().kind == ErrorKind::Invalid;
}

}  // namespace

TEST_CASE("a GET has a Host, no Content-Length and asks for no compression") {
  const auto text =
      build_request_text(get("/api/v1/pods?watch=1", {{"Accept", "application/json"}}), "host:6443", "/p");
  REQUIRE(text);
  CHECK(*text == "GET /p/api/v1/pods?watch=1 HTTP/1.1\r\nHost: host:6443\r\nAccept: application/json\r\n\r\n");
}

TEST_CASE("a POST says how long its body is, also when it is empty") {
  Request request = get("/x");
  request.method = Method::Post;
  request.body = "{}";
  CHECK(build_request_text(request, "h", "") == "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}");
  request.body = "";
  CHECK(build_request_text(request, "h", "") == "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
}

TEST_CASE("every control byte in a header's value is refused and the value is not repeated") {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const Request request = get("/", {{"Authorization", std::string("Bearer secret") + c + "Impersonate-User: admin"}});
    const bool control = (byte < 0x20 && byte != '\t') || byte == 0x7f;
    CAPTURE(byte);
    CHECK(is_refused(request) == control);
    const auto text = build_request_text(request, "h", "");
    if (!text) CHECK(text.error().message.find("secret") == std::string::npos);
  }
}

TEST_CASE("a header's name holds only the characters of a token") {
  for (const char* bad : {"", "A B", "A:", "A\r\nB", "A\n", "\xc3\xa4", "A\t"}) {
    CAPTURE(bad);
    CHECK(is_refused(get("/", {{bad, "v"}})));
  }
  CHECK(is_refused(get("/", {{std::string("A\0B", 3), "v"}})));
  CHECK_FALSE(is_refused(get("/", {{"X-Custom_1", "v"}})));
}

TEST_CASE("a target that could end the request line is refused") {
  for (const char* bad :
       {"", "x", "http://other/", "/a b", "/a\r\nX: y", "/a\nb", "/a#b", "/\xc3\xa4", "/\x7f", "/\t"}) {
    CAPTURE(bad);
    CHECK(is_refused(get(bad)));
  }
  CHECK(is_refused(get(std::string("/a\0b", 4))));
  CHECK_FALSE(is_refused(get("/a%20b?x=%2F&y=*")));
}

TEST_CASE("headers that decide where a message ends or who gets it are the transport's own") {
  for (const char* name : {"Host", "HOST", "content-length", "Transfer-Encoding", "Connection", "Accept-Encoding",
                           "Expect", "Upgrade", "TE", "Trailer", "Keep-Alive"}) {
    CAPTURE(name);
    CHECK(is_refused(get("/", {{name, "x"}})));
  }
}

TEST_CASE("a prefix or a server name that may not be sent is refused") {
  CHECK_FALSE(build_request_text(get("/"), "h\r\nX: y", ""));
  CHECK_FALSE(build_request_text(get("/"), "", ""));
  CHECK_FALSE(build_request_text(get("/"), "h", "p"));
  CHECK_FALSE(build_request_text(get("/"), "h", "/p q"));
}

TEST_CASE("the authority names the port only if the scheme does not, and puts IPv6 in brackets") {
  CHECK(build_authority("h", 443, true) == "h");
  CHECK(build_authority("h", 443, false) == "h:443");
  CHECK(build_authority("h", 80, false) == "h");
  CHECK(build_authority("::1", 6443, true) == "[::1]:6443");
}
