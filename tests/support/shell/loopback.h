#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "k8s-client/transport.h"
#include "tests/support/shell/certificates.h"
#include "tests/support/shell/https_server.h"
#include "tests/support/shell/transport_under_test.h"

namespace dhc::test {

/// A server with a certificate for 127.0.0.1 and localhost, its authority, and a transport to it.
struct Loopback {
  CertificateAuthority authority;
  HttpsServer server;
  std::unique_ptr<k8s::Transport> transport;

  explicit Loopback(HttpsServer::Script script, ServerOptions options = {}, k8s::TransportLimits limits = {})
      : server(with_identity(std::move(options)), std::move(script)),
        transport(make_transport_under_test(endpoint(), [m = material()](auto) { return m; }, limits)) {}

  [[nodiscard]] k8s::Endpoint endpoint(bool tls = true) const {
    return {.tls = tls, .host = "127.0.0.1", .port = server.port(), .path_prefix = ""};
  }
  [[nodiscard]] k8s::TlsMaterial material() const {
    k8s::TlsMaterial out;
    out.ca_pem = authority.pem();
    return out;
  }

 private:
  [[nodiscard]] ServerOptions with_identity(ServerOptions options) const {
    if (options.identity.cert_pem.empty()) {
      options.identity = authority.issue({.common_name = "server", .names = "DNS:localhost,IP:127.0.0.1"});
    }
    return options;
  }
};

/// A request with limits far beyond what a loopback call needs.
[[nodiscard]] inline k8s::Request request_for(std::string target, k8s::Method method = k8s::Method::Get) {
  k8s::Request out;
  out.method = method;
  out.target = std::move(target);
  return out;
}

/// A 200 with this body.
[[nodiscard]] inline std::string ok(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// Answers every request with the same bytes.
[[nodiscard]] inline HttpsServer::Script always(std::string answer) {
  return [answer = std::move(answer)](ServerConnection& c) {
    while (!c.read_request().empty()) c.send(answer);
  };
}

}  // namespace dhc::test
