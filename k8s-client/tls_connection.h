#pragma once
#include <chrono>
#include <memory>
#include <stop_token>
#include <string_view>

#include "base/error.h"
#include "k8s-client/transport.h"

namespace dhc::k8s {

/// One TCP or TLS connection. Used by one thread at a time, which each call blocks; the stop may come from any thread
/// and ends the call within milliseconds. After an error the connection is of no further use.
///
/// Errors: Unavailable (refused, reset, cut, certificate not accepted), TimedOut, Cancelled.
class TlsConnection {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  /// Resolves, connects and shakes hands, all before the deadline. `stop` holds until `detach`.
  [[nodiscard]] static Result<std::unique_ptr<TlsConnection>> open(const Endpoint& endpoint,
                                                                   const TlsMaterial& material, Deadline deadline,
                                                                   std::stop_token stop);
  ~TlsConnection();
  TlsConnection(const TlsConnection&) = delete;
  TlsConnection& operator=(const TlsConnection&) = delete;

  /// Writes all of it.
  [[nodiscard]] Status write(std::string_view bytes, Deadline deadline);

  /// At least one byte, valid until the next call; none if the server ended the connection as TLS (or TCP) says it
  /// should.
  [[nodiscard]] Result<std::string_view> read_some(Deadline deadline);

  /// From now on `stop` ends the calls; for a connection that comes out of a pool.
  void attach(std::stop_token stop);

  /// No stop ends the calls any more; for a connection that goes into a pool.
  void detach();

  /// Nothing has arrived since the last read: an idle server that sends anything (a close, most likely) is done with
  /// us.
  [[nodiscard]] bool quiet() const;

 private:
  TlsConnection();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dhc::k8s
