#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/shell/certificates.h"

namespace dhc::test {

/// The server's end of one connection, in the hands of a script. Used by the script's thread alone.
class ServerConnection {
 public:
  virtual ~ServerConnection() = default;
  /// The next request, header and body; empty if the client has gone or the server stops.
  virtual std::string read_request() = 0;
  /// Sends exactly these bytes; false if the client has gone.
  virtual bool send(std::string_view bytes) = 0;
  /// Waits, at most so long; returns early if the server stops.
  virtual void pause(std::chrono::milliseconds time) = 0;
  /// Waits until the client has gone or the server stops.
  virtual void wait_for_client_to_leave() = 0;
  /// Ends TLS and TCP as they should be ended.
  virtual void close() = 0;
  /// Ends TCP without ending TLS.
  virtual void cut() = 0;
  /// Sends a TCP reset.
  virtual void reset() = 0;
  /// What the client named in SNI.
  [[nodiscard]] virtual std::string server_name() const = 0;
  /// The common name of the client's certificate; empty: it showed none.
  [[nodiscard]] virtual std::string client_name() const = 0;
};

struct ServerOptions {
  bool tls = true;
  Identity identity = {};
  std::string client_ca_pem = {};  ///< Not empty: the client must show a certificate of this authority.
  int max_tls_version = 0;         ///< As OpenSSL counts; 0: the newest.
  bool shakes_hands = true;        ///< false: accepts TCP and never says a word.
};

/// A server on a free loopback port whose answers are bytes that a test wrote: each connection runs the script on a
/// thread of its own.
class HttpsServer {
 public:
  using Script = std::function<void(ServerConnection&)>;

  HttpsServer(ServerOptions options, Script script);
  /// Ends all connections and joins.
  ~HttpsServer();
  HttpsServer(const HttpsServer&) = delete;
  HttpsServer& operator=(const HttpsServer&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  /// Connections accepted so far.
  [[nodiscard]] int connections() const;
  /// Requests read so far, over all connections.
  [[nodiscard]] std::vector<std::string> requests() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A loopback port where SYNs are swallowed, as by a firewall: connecting to it never ends.
class SilentPort {
 public:
  SilentPort();
  ~SilentPort();
  SilentPort(const SilentPort&) = delete;
  SilentPort& operator=(const SilentPort&) = delete;
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  std::vector<int> fds_;
  std::uint16_t port_ = 0;
};

}  // namespace dhc::test
