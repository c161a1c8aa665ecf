#pragma once
#include <memory>
#include <string>
#include <string_view>

#include <openssl/ssl.h>

#include "base/error.h"
#include "k8s-client/transport.h"

namespace dhc::k8s {

/// Owns an SSL_CTX.
struct FreeTlsContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using TlsContext = std::unique_ptr<SSL_CTX, FreeTlsContext>;

/// A client's context for one connection: TLS 1.2 or later, only `material.ca_pem` trusted (SSL_CERT_FILE and the
/// system's roots are not looked at unless it is empty). Unavailable if a part of the material cannot be read: the
/// message names the part and what to check, never its content.
[[nodiscard]] Result<TlsContext> make_tls_context(const TlsMaterial& material);

/// The same settings put on a context that somebody else made; what it trusted before is forgotten.
[[nodiscard]] Status configure_tls_context(SSL_CTX& context, const TlsMaterial& material);

/// Makes the handshake verify that the peer's certificate is for `name`, a host or an IP address, by its
/// subjectAltName only, never by its common name. Sets SNI if it is a host name.
/// **Source:** RFC 6125 section 6.4.4, RFC 6066 section 3.
[[nodiscard]] Status expect_peer(SSL& ssl, const std::string& name);

/// What to say about a failed handshake: OpenSSL's words, then what to check. `verify_result` is
/// SSL_get_verify_result's, `reason` is OpenSSL's reason code (0: unknown), `words` are used if there is no better.
[[nodiscard]] std::string explain_tls_failure(long verify_result, int reason, std::string_view words,
                                              std::string_view name);

}  // namespace dhc::k8s
