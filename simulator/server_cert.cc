#include "simulator/server_cert.h"

#include <memory>
#include <stdexcept>

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "k8s-client/openssl_handles.h"

namespace dhc::sim {
namespace {

using Bio = k8s::BioHandle;
using Cert = k8s::CertificateHandle;
using Key = k8s::KeyHandle;
using Extension = k8s::ExtensionHandle;

constexpr long kBackdated = -3600;
constexpr long kDay = 24L * 3600;

void must(bool done) {
  if (!done) throw std::runtime_error("OpenSSL could not make the simulator's certificate");
}

void extend(X509* cert, X509* issuer, int nid, const char* value) {
  X509V3_CTX context{};
  X509V3_set_ctx(&context, issuer, cert, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  must(extension != nullptr && X509_add_ext(cert, extension.get(), -1) == 1);
}

Cert make_cert(EVP_PKEY* key, const char* name) {
  Cert cert(X509_new());
  must(cert != nullptr && X509_set_version(cert.get(), 2) == 1);
  long serial = 0;
  must(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial)) == 1);
  ASN1_INTEGER_set(X509_get_serialNumber(cert.get()), serial & 0x7fffffffL);
  X509_gmtime_adj(X509_getm_notBefore(cert.get()), kBackdated);
  X509_gmtime_adj(X509_getm_notAfter(cert.get()), kDay);
  must(X509_NAME_add_entry_by_txt(X509_get_subject_name(cert.get()), "CN", MBSTRING_UTF8,
                                  reinterpret_cast<const unsigned char*>(name), -1, -1, 0) == 1);
  must(X509_set_pubkey(cert.get(), key) == 1);
  return cert;
}

template <class Write>
std::string pem_of(Write write) {
  const Bio bio(BIO_new(BIO_s_mem()));
  must(bio != nullptr && write(bio.get()) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

}  // namespace

ServerIdentity make_server_identity() {
  const Key ca_key(EVP_EC_gen("P-256"));
  const Key key(EVP_EC_gen("P-256"));
  must(ca_key != nullptr && key != nullptr);
  const Cert ca = make_cert(ca_key.get(), "simulator authority");
  must(X509_set_issuer_name(ca.get(), X509_get_subject_name(ca.get())) == 1);
  extend(ca.get(), ca.get(), NID_basic_constraints, "critical,CA:TRUE");
  extend(ca.get(), ca.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
  extend(ca.get(), ca.get(), NID_subject_key_identifier, "hash");
  must(X509_sign(ca.get(), ca_key.get(), EVP_sha256()) > 0);
  const Cert cert = make_cert(key.get(), "kube-apiserver");
  must(X509_set_issuer_name(cert.get(), X509_get_subject_name(ca.get())) == 1);
  extend(cert.get(), ca.get(), NID_basic_constraints, "CA:FALSE");
  extend(cert.get(), ca.get(), NID_ext_key_usage, "serverAuth");
  extend(cert.get(), ca.get(), NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
  must(X509_sign(cert.get(), ca_key.get(), EVP_sha256()) > 0);
  return {.ca_pem = pem_of([&](BIO* bio) { return PEM_write_bio_X509(bio, ca.get()); }),
          .cert_pem = pem_of([&](BIO* bio) { return PEM_write_bio_X509(bio, cert.get()); }),
          .key_pem = pem_of([&](BIO* bio) {
            return PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

}  // namespace dhc::sim
