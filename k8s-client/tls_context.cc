#include "k8s-client/tls_context.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include "k8s-client/openssl_handles.h"
#include "k8s-client/resolver.h"

namespace dhc::k8s {
namespace {

using Bio = BioHandle;
using Certificate = CertificateHandle;
using Key = KeyHandle;

/// OpenSSL would otherwise ask for a passphrase on the terminal.
int no_passphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*user*/) { return -1; }

Bio reader_of(std::string_view text) {
  const auto size = static_cast<int>(std::min<std::size_t>(text.size(), std::numeric_limits<int>::max()));
  return Bio(BIO_new_mem_buf(text.data(), size));
}

std::unexpected<Error> unreadable(std::string_view what, std::string_view remedy) {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  ERR_clear_error();
  return fail(ErrorKind::Unavailable,
              fmt::format("{}{}{}; {}", what, reason != nullptr ? ": " : "", reason != nullptr ? reason : "", remedy));
}

/// All certificates of a PEM text; empty if one cannot be read.
std::vector<Certificate> read_certificates(std::string_view pem) {
  std::vector<Certificate> out;
  const Bio bio = reader_of(pem);
  while (X509* each = PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr)) out.emplace_back(each);
  const unsigned long end = ERR_peek_last_error();
  if (ERR_GET_LIB(end) == ERR_LIB_PEM && ERR_GET_REASON(end) == PEM_R_NO_START_LINE) {
    ERR_clear_error();
    return out;
  }
  return {};
}

Status trust(SSL_CTX& context, std::string_view ca_pem) {
  if (ca_pem.empty()) {
    if (SSL_CTX_set_default_verify_paths(&context) == 1) return {};
    return unreadable("the system's CA certificates cannot be read",
                      "check SSL_CERT_FILE, or set certificate-authority");
  }
  const std::vector<Certificate> authorities = read_certificates(ca_pem);
  if (authorities.empty()) {
    return unreadable("certificate-authority holds no readable certificate",
                      "check certificate-authority in the kubeconfig");
  }
  X509_STORE* store = X509_STORE_new();
  if (store == nullptr) return unreadable("out of memory", "free some");
  SSL_CTX_set_cert_store(&context, store);  // takes ownership, drops the old one
  for (const Certificate& each : authorities) {
    if (X509_STORE_add_cert(store, each.get()) != 1) {
      return unreadable("certificate-authority cannot be used", "check certificate-authority in the kubeconfig");
    }
  }
  return {};
}

Status use_client_certificate(SSL_CTX& context, const TlsMaterial& material) {
  static constexpr std::string_view kRemedy = "check client-certificate and client-key in the kubeconfig";
  const std::vector<Certificate> chain = read_certificates(material.client_cert_pem);
  if (chain.empty()) return unreadable("client-certificate holds no readable certificate", kRemedy);
  if (SSL_CTX_use_certificate(&context, chain.front().get()) != 1) {
    return unreadable("client-certificate cannot be used", kRemedy);
  }
  for (std::size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(&context, chain[i].get()) != 1) {
      return unreadable("client-certificate's chain cannot be used", kRemedy);
    }
  }
  const Bio bio = reader_of(material.client_key_pem);
  const Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr));
  if (!key) return unreadable("client-key holds no readable key", "check client-key; it may not have a passphrase");
  if (SSL_CTX_use_PrivateKey(&context, key.get()) != 1 || SSL_CTX_check_private_key(&context) != 1) {
    return unreadable("client-key does not fit client-certificate", kRemedy);
  }
  return {};
}

/// What an operator should look at, for the verification errors they can do something about.
std::string verify_remedy(long result, std::string_view name) {
  switch (result) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return fmt::format("the server's certificate is not for {}; check server and tls-server-name in the kubeconfig",
                         name);
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "check the server's certificate and this machine's clock";
    default:
      return "check certificate-authority in the kubeconfig";
  }
}

std::string alert_remedy(int reason) {
  switch (reason) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
      return "; the server did not accept us: check client-certificate and client-key in the kubeconfig";
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
    case SSL_R_UNSUPPORTED_PROTOCOL:
      return "; the server must offer TLS 1.2 or later";
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
      return "; the server does not speak TLS on this port: check server in the kubeconfig";
    default:
      return "";
  }
}

}  // namespace

Status configure_tls_context(SSL_CTX& context, const TlsMaterial& material) {
  ERR_clear_error();
  if (SSL_CTX_set_min_proto_version(&context, TLS1_2_VERSION) != 1) {
    return unreadable("TLS 1.2 cannot be set as the least version", "check OpenSSL's configuration file");
  }
  SSL_CTX_set_session_cache_mode(&context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify(&context, material.insecure_skip_verify ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nullptr);
  if (!material.insecure_skip_verify) {
    if (auto trusted = trust(context, material.ca_pem); !trusted) return trusted;
    // A CA file may hold an intermediate alone; client-go takes any certificate in it as an anchor (Go's CertPool).
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(&context), X509_V_FLAG_PARTIAL_CHAIN);
  }
  if (material.client_cert_pem.empty() && material.client_key_pem.empty()) return {};
  return use_client_certificate(context, material);
}

Result<TlsContext> make_tls_context(const TlsMaterial& material) {
  TlsContext context(SSL_CTX_new(TLS_client_method()));
  if (!context) return unreadable("OpenSSL cannot start", "check its installation");
  if (auto configured = configure_tls_context(*context, material); !configured) {
    return std::unexpected(configured.error());
  }
  return context;
}

Status expect_peer(SSL& ssl, const std::string& name) {
  X509_VERIFY_PARAM* param = SSL_get0_param(&ssl);
  X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  bool set = false;
  if (is_ip_address(name)) {
    set = X509_VERIFY_PARAM_set1_ip_asc(param, name.c_str()) == 1;
  } else if (!name.empty() && !name.contains('\0')) {
    set = X509_VERIFY_PARAM_set1_host(param, name.data(), name.size()) == 1 &&
          SSL_set_tlsext_host_name(&ssl, name.c_str()) == 1;
  }
  if (!set)
    return unreadable("the server's name cannot be verified", "check server and tls-server-name in the kubeconfig");
  return {};
}

std::string explain_tls_failure(long verify_result, int reason, std::string_view words, std::string_view name) {
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED && verify_result != X509_V_OK) {
    return fmt::format("certificate verify failed: {}; {}", X509_verify_cert_error_string(verify_result),
                       verify_remedy(verify_result, name));
  }
  return fmt::format("{}{}", words, alert_remedy(reason));
}

}  // namespace dhc::k8s
