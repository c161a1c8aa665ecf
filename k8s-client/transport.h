#pragma once
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/error.h"
#include "k8s-client/endpoint.h"
#include "k8s-client/protocol/request.h"

namespace dhc::k8s {

/// Bounds on what a server may send.
struct TransportLimits {
  std::size_t header_bytes = 16 * 1024;
  std::size_t body_bytes = 256 * 1024 * 1024;  ///< Of a response that is collected, not streamed.
};

/// Gives the material for the next connection; errors fail that connection.
using TlsSource = std::function<Result<TlsMaterial>(std::stop_token)>;

/// Takes a piece of a streamed body; false ends the stream with Cancelled.
using BodySink = std::function<bool(std::string_view)>;

/// Sends requests to one server. Thread-safe; each call blocks its caller until the answer, a limit or the stop (within
/// 100 ms). Follows no redirect, asks for no compression, trusts no CA but the given one, sends nothing to another
/// host.
class Transport {
 public:
  Transport() = default;
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// Sends and collects the whole body. Any HTTP status is a Response; errors are Unavailable, TimedOut, Cancelled,
  /// Malformed, Invalid (a header or target that may not be sent). One attempt, except when a pooled connection turns
  /// out closed before a byte was sent.
  [[nodiscard]] virtual Result<Response> send(const Request& request, std::stop_token stop) = 0;

  /// Like `send`, but a 2xx body goes to `sink` in pieces as it arrives; any other body is collected (at most 1 MiB).
  /// A value means that the body ended as HTTP says it should; a cut is Unavailable, silence beyond `idle` is TimedOut.
  [[nodiscard]] virtual Result<Response> stream(const Request& request, const BodySink& sink, std::stop_token stop) = 0;
};

}  // namespace dhc::k8s
