#pragma once
#include <string>

namespace dhc::sim {

/// What a server on loopback needs for TLS, made at run time: an authority of its own and a certificate for 127.0.0.1
/// and localhost, valid for a day. All PEM.
struct ServerIdentity {
  std::string ca_pem;
  std::string cert_pem;
  std::string key_pem;
};

/// Makes new keys on each call. Throws std::runtime_error if OpenSSL cannot.
[[nodiscard]] ServerIdentity make_server_identity();

}  // namespace dhc::sim
