#pragma once
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

#include "k8s-client/tls_connection.h"
#include "k8s-client/transport.h"

namespace dhc::k8s {

/// Idle connections to one server, at most 4, each for at most 30 s. Thread-safe.
class ConnectionPool {
 public:
  /// The connection used last that was opened with this material and is still quiet; none: null. Others that are too
  /// old, not quiet, or of another material are closed.
  [[nodiscard]] std::unique_ptr<TlsConnection> take(const TlsMaterial& material);

  /// Keeps a detached connection.
  void keep(std::unique_ptr<TlsConnection> connection, const TlsMaterial& material);

 private:
  struct Idle {
    std::unique_ptr<TlsConnection> connection;
    TlsMaterial material;
    std::chrono::steady_clock::time_point since;
  };

  std::mutex mutex_;
  std::vector<Idle> idle_;  ///< Oldest first.
};

}  // namespace dhc::k8s
