#include <algorithm>

#include <doctest/doctest.h>

#include "tests/support/shell/loopback.h"

using namespace dhc;
using namespace dhc::test;
using k8s::Method;

namespace {

/// Whether the request has this header; the blank after the colon is optional.
bool has_header(const std::string& request, const std::string& name, const std::string& value) {
  return request.find("\r\n" + name + ": " + value + "\r\n") != std::string::npos ||
         request.find("\r\n" + name + ":" + value + "\r\n") != std::string::npos;
}

}  // namespace

TEST_CASE("method, target, headers and body arrive as they were given") {
  Loopback loopback(always(ok("")));
  for (const Method method : {Method::Get, Method::Post, Method::Put, Method::Patch, Method::Delete}) {
    auto request = request_for("/api/v1/pods?labelSelector=a%3Db&x=%2F%25", method);
    request.headers = {{"Authorization", "Bearer token-1"}, {"Accept", "application/json"}};
    if (method != Method::Get) request.body = "{\"method\":\"" + std::string(to_string(method)) + "\"}";
    CHECK(loopback.transport->send(request, {}));
    const std::string seen = loopback.server.requests().back();
    CAPTURE(seen);
    CHECK(seen.starts_with(std::string(to_string(method)) + " /api/v1/pods?labelSelector=a%3Db&x=%2F%25 HTTP/1.1\r\n"));
    CHECK(has_header(seen, "Authorization", "Bearer token-1"));
    CHECK(has_header(seen, "Accept", "application/json"));
    CHECK(has_header(seen, "Host", "127.0.0.1:" + std::to_string(loopback.server.port())));
    CHECK(seen.ends_with("\r\n\r\n" + request.body));
    CHECK(seen.find("Accept-Encoding") == std::string::npos);
  }
}

TEST_CASE("the server's prefix stands before every target") {
  Loopback loopback(always(ok("")));
  auto endpoint = loopback.endpoint();
  endpoint.path_prefix = "/k8s/clusters/c-1";
  const auto transport = make_transport_under_test(endpoint, [&](const auto&) { return loopback.material(); }, {});
  CHECK(transport->send(request_for("/api/v1/nodes"), {}));
  CHECK(loopback.server.requests().front().starts_with("GET /k8s/clusters/c-1/api/v1/nodes HTTP/1.1\r\n"));
}

TEST_CASE("plain HTTP is spoken where the endpoint says so") {
  Loopback loopback(always(ok("plain")), {.tls = false});
  const auto answer = loopback.transport->send(request_for("/"), {});
  REQUIRE_MESSAGE(answer, answer.error().message);
  CHECK(answer->body == "plain");
}

TEST_CASE("any status is a Response and its headers have lower-case names") {
  for (const int status : {200, 201, 204, 301, 400, 401, 403, 404, 409, 410, 422, 429, 500, 503, 504}) {
    const std::string length = status == 204 ? "" : "Content-Length: 0\r\n";
    Loopback loopback(always("HTTP/1.1 " + std::to_string(status) + " Word\r\nRetry-After: 3\r\n" + length + "\r\n"));
    const auto answer = loopback.transport->send(request_for("/"), {});
    CAPTURE(status);
    REQUIRE_MESSAGE(answer, answer.error().message);
    CHECK(answer->status == static_cast<unsigned>(status));
    CHECK(k8s::header(*answer, "retry-after") == "3");
  }
}

TEST_CASE("no redirect is followed and no token goes to another server") {
  Loopback thief(always(ok("stolen")), {.tls = false});
  const std::string there = "http://127.0.0.1:" + std::to_string(thief.server.port()) + "/";
  for (const int status : {301, 302, 303, 307, 308}) {
    Loopback loopback(always("HTTP/1.1 " + std::to_string(status) + " Moved\r\nLocation: " + there +
                             "\r\nContent-Length: 0\r\n\r\n"));
    auto request = request_for("/");
    request.headers = {{"Authorization", "Bearer secret"}};
    const auto answer = loopback.transport->send(request, {});
    REQUIRE_MESSAGE(answer, answer.error().message);
    CHECK(answer->status == static_cast<unsigned>(status));
    const auto streamed = stream(*loopback.transport, request);
    REQUIRE(streamed.response);
    CHECK(streamed.response->status == static_cast<unsigned>(status));
  }
  CHECK(thief.server.connections() == 0);
}

TEST_CASE("a header or a target that would become two is refused and nothing is sent") {
  Loopback loopback(always(ok("")));
  const auto refused = [&](const k8s::Request& request) {
    CHECK(error_of(loopback.transport->send(request, {})) == ErrorKind::Invalid);
    CHECK(error_of(stream(*loopback.transport, request).response) == ErrorKind::Invalid);
  };
  for (const char* value : {"Bearer t\r\nImpersonate-User: admin", "Bearer t\n", "Bearer t\r"}) {
    auto request = request_for("/");
    request.headers = {{"Authorization", value}};
    refused(request);
  }
  auto named = request_for("/");
  named.headers = {{"X\r\nImpersonate-User", "admin"}};
  refused(named);
  refused(request_for("/ HTTP/1.1\r\nImpersonate-User: admin\r\n\r\n"));
  refused(request_for("http://other/"));
  CHECK(loopback.server.connections() == 0);
}

TEST_CASE("a stream's answer that is not 2xx is collected and its sink stays empty") {
  Loopback loopback(always("HTTP/1.1 410 Gone\r\nContent-Length: 17\r\n\r\n{\"kind\":\"Status\"}"));
  const auto streamed = stream(*loopback.transport, request_for("/"));
  REQUIRE_MESSAGE(streamed.response, streamed.response.error().message);
  CHECK(streamed.response->status == 410);
  CHECK(streamed.response->body == "{\"kind\":\"Status\"}");
  CHECK(streamed.body.empty());
}

TEST_CASE("of a stream's answer that is not 2xx at most 1 MiB is collected") {
  Loopback loopback([](ServerConnection& c) {
    c.read_request();
    c.send("HTTP/1.1 500 Internal Server Error\r\nTransfer-Encoding: chunked\r\n\r\n");
    const std::string chunk = "1000\r\n" + std::string(0x1000, 'x') + "\r\n";
    while (c.send(chunk)) {
    }
  });
  const auto streamed = stream(*loopback.transport, request_for("/"));
  REQUIRE_MESSAGE(streamed.response, streamed.response.error().message);
  CHECK(streamed.response->status == 500);
  CHECK(streamed.response->body.size() == 1024 * 1024);
}

TEST_CASE("an answer that comes before the whole request was sent is still an answer") {
  Loopback loopback([](ServerConnection& c) {
    c.send("HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    c.wait_for_client_to_leave();
  });
  auto request = request_for("/", Method::Post);
  request.body.assign(1000, 'x');
  const auto answer = loopback.transport->send(request, {});
  REQUIRE_MESSAGE(answer, answer.error().message);
  CHECK(answer->status == 413);
}
