#include "tests/support/shell/loopback.h"

#include <thread>
#include <utility>

namespace dhc::test {
namespace {

ServerOptions with_identity(ServerOptions options, const CertificateAuthority& authority) {
  if (options.identity.cert_pem.empty()) {
    options.identity = authority.issue({.common_name = "server", .names = "DNS:localhost,IP:127.0.0.1"});
  }
  return options;
}

}  // namespace

Loopback::Loopback(HttpsServer::Script script, ServerOptions options, k8s::TransportLimits limits)
    : server(with_identity(options, authority), std::move(script)), tls_(options.tls) {
  transport = make_transport_under_test(endpoint(), [m = material()](const auto&) { return m; }, limits);
}

k8s::Endpoint Loopback::endpoint() const {
  return {.tls = tls_, .host = "127.0.0.1", .port = server.port(), .path_prefix = ""};
}

k8s::TlsMaterial Loopback::material() const {
  k8s::TlsMaterial out;
  out.ca_pem = authority.pem();
  return out;
}

k8s::Request request_for(std::string target, k8s::Method method) {
  k8s::Request out;
  out.method = method;
  out.target = std::move(target);
  return out;
}

std::string ok(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

HttpsServer::Script always(std::string answer) {
  return [answer = std::move(answer)](ServerConnection& connection) {
    while (!connection.read_request().empty()) connection.send(answer);
  };
}

Streamed stream(k8s::Transport& transport, const k8s::Request& request, std::stop_token stop) {
  std::string body;
  auto response = transport.stream(
      request,
      [&body](std::string_view piece) {
        body += piece;
        return true;
      },
      std::move(stop));
  return {.response = std::move(response), .body = std::move(body)};
}

bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

std::chrono::milliseconds time_of(const std::function<void()>& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
}

}  // namespace dhc::test
