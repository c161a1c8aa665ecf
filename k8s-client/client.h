#pragma once
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "base/error.h"
#include "k8s-client/protocol/request.h"
#include "k8s-client/transport.h"

namespace dhc::k8s {

/// Gives what a request needs to say who we are. Thread-safe.
class Credentials {
 public:
  Credentials() = default;
  virtual ~Credentials() = default;
  Credentials(const Credentials&) = delete;
  Credentials& operator=(const Credentials&) = delete;

  /// Headers such as Authorization and Impersonate-User; empty for client certificates. Errors name the file or command
  /// and the remedy.
  [[nodiscard]] virtual Result<std::vector<Header>> headers(std::stop_token stop) = 0;

  /// The server said 401: the next call reads everything again.
  virtual void unauthorized() = 0;

  /// What the next TLS connection uses.
  [[nodiscard]] virtual Result<TlsMaterial> tls(std::stop_token stop) = 0;

  /// Where the credentials come from and what to do when the server refuses them, for the message of a 401; never a
  /// secret.
  [[nodiscard]] virtual std::string remedy() const { return {}; }
};

/// Asked with each request in the moment before it is sent; may shorten its time. Its error becomes the call's.
using Admission = std::function<Status(Request&)>;

/// Speaks to the API server: adds who we are, and turns every answer that is not 2xx into an Error by its remedy. One
/// attempt a call. Thread-safe.
class Client {
 public:
  Client(std::shared_ptr<Transport> transport, std::shared_ptr<Credentials> credentials, std::string user_agent);

  /// The same client, but every request is first put to `admission`, after whatever takes time: Cancelled must mean
  /// that nothing was sent.
  [[nodiscard]] Client admitted_by(Admission admission) const;

  /// One request, one answer. A write whose answer cannot be read is Unavailable: it may have been carried out.
  [[nodiscard]] Result<Response> call(const Request& request, std::stop_token stop) const;

  /// A response whose body is streamed to `sink`.
  [[nodiscard]] Result<Response> stream(const Request& request, const BodySink& sink, std::stop_token stop) const;

 private:
  [[nodiscard]] Result<Request> signed_request(const Request& request, std::stop_token stop) const;
  [[nodiscard]] Result<Response> judged(Result<Response> answer) const;

  std::shared_ptr<Transport> transport_;
  std::shared_ptr<Credentials> credentials_;
  std::string user_agent_;
  Admission admission_;
};

/// One write whose answer's body nobody reads; a request that could not be built is its own error.
[[nodiscard]] Status send(const Result<Request>& request, const Client& client, std::stop_token stop);

}  // namespace dhc::k8s
