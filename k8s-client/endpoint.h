#pragma once
#include <cstdint>
#include <string>

namespace dhc::k8s {

/// What a TLS connection needs; read again for every new connection, so that rotated files are picked up.
struct TlsMaterial {
  std::string ca_pem;           ///< Only this is trusted; empty: the system's roots.
  std::string client_cert_pem;  ///< Empty: no client certificate.
  std::string client_key_pem;
  std::string server_name;  ///< Verified (and sent as SNI if it is a name) instead of the host; empty: the host.
  bool insecure_skip_verify = false;
  friend bool operator==(const TlsMaterial&, const TlsMaterial&) = default;
};

/// The one server a transport speaks to.
struct Endpoint {
  bool tls = true;
  std::string host;  ///< Name or IP, IPv6 without brackets.
  std::uint16_t port = 443;
  std::string path_prefix;  ///< Put before every target, no trailing slash.
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

}  // namespace dhc::k8s
