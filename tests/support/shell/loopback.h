#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

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

  explicit Loopback(HttpsServer::Script script, ServerOptions options = {}, k8s::TransportLimits limits = {});

  [[nodiscard]] k8s::Endpoint endpoint() const;
  /// Trusts the authority, shows no client certificate.
  [[nodiscard]] k8s::TlsMaterial material() const;

 private:
  bool tls_;
};

/// A request with limits far beyond what a loopback call needs.
[[nodiscard]] k8s::Request request_for(std::string target, k8s::Method method = k8s::Method::Get);

/// A 200 with this body.
[[nodiscard]] std::string ok(const std::string& body);

/// Answers every request with the same bytes.
[[nodiscard]] HttpsServer::Script always(std::string answer);

/// A streamed call and what its sink got.
struct Streamed {
  Result<k8s::Response> response;
  std::string body;
};
[[nodiscard]] Streamed stream(k8s::Transport& transport, const k8s::Request& request, std::stop_token stop = {});

/// The kind of error, or nothing if there was none.
template <class T>
[[nodiscard]] std::optional<ErrorKind> error_of(const Result<T>& result) {
  return result ? std::nullopt : std::optional(result.error().kind);
}

/// Waits until the condition holds, at most 5 s; whether it does.
[[nodiscard]] bool eventually(const std::function<bool()>& condition);

/// How long a call took.
[[nodiscard]] std::chrono::milliseconds time_of(const std::function<void()>& call);

}  // namespace dhc::test
