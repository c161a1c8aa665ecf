#include "tests/support/shell/certificates.h"

#include <atomic>
#include <stdexcept>

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "k8s-client/openssl_handles.h"

namespace dhc::test {
namespace {

using Bio = k8s::BioHandle;
using Certificate = k8s::CertificateHandle;
using Extension = k8s::ExtensionHandle;
using Key = k8s::KeyHandle;

void must(bool done) {
  if (!done) throw std::runtime_error("OpenSSL could not make a test certificate");
}

std::string text_of(const Bio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

Key make_key() {
  Key key(EVP_EC_gen("P-256"));
  must(key != nullptr);
  return key;
}

void extend(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context{};
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  must(extension && X509_add_ext(certificate, extension.get(), -1) == 1);
}

Certificate make(const CertificateText& text, EVP_PKEY* key) {
  static std::atomic<long> serial{1};
  Certificate certificate(X509_new());
  must(certificate && X509_set_version(certificate.get(), 2) == 1);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial++);
  const auto seconds = [](std::chrono::hours h) { return static_cast<long>(std::chrono::seconds(h).count()); };
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), seconds(text.valid_from));
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), seconds(text.valid_from + text.valid_for));
  must(X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
                                  reinterpret_cast<const unsigned char*>(text.common_name.c_str()), -1, -1, 0) == 1);
  must(X509_set_pubkey(certificate.get(), key) == 1);
  return certificate;
}

std::string pem_of(X509* certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  must(PEM_write_bio_X509(bio.get(), certificate) == 1);
  return text_of(bio);
}

std::string pem_of(EVP_PKEY* key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  must(PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  return text_of(bio);
}

}  // namespace

struct CertificateAuthority::Impl {
  Key key = make_key();
  Certificate certificate;
  std::string pem;
};

CertificateAuthority::CertificateAuthority(const std::string& name) : impl_(std::make_unique<Impl>()) {
  Impl& i = *impl_;
  i.certificate = make({.common_name = name, .names = ""}, i.key.get());
  X509* own = i.certificate.get();
  must(X509_set_issuer_name(own, X509_get_subject_name(own)) == 1);
  extend(own, own, NID_basic_constraints, "critical,CA:TRUE");
  extend(own, own, NID_key_usage, "critical,keyCertSign,cRLSign");
  extend(own, own, NID_subject_key_identifier, "hash");
  must(X509_sign(own, i.key.get(), EVP_sha256()) > 0);
  i.pem = pem_of(own);
}

CertificateAuthority::~CertificateAuthority() = default;

const std::string& CertificateAuthority::pem() const { return impl_->pem; }

Identity CertificateAuthority::issue(const CertificateText& text) const {
  const Key key = make_key();
  const Certificate certificate = make(text, key.get());
  X509* issuer = impl_->certificate.get();
  must(X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer)) == 1);
  extend(certificate.get(), issuer, NID_basic_constraints, "CA:FALSE");
  extend(certificate.get(), issuer, NID_ext_key_usage, "serverAuth,clientAuth");
  if (!text.names.empty()) extend(certificate.get(), issuer, NID_subject_alt_name, text.names);
  must(X509_sign(certificate.get(), impl_->key.get(), EVP_sha256()) > 0);
  return {.cert_pem = pem_of(certificate.get()), .key_pem = pem_of(key.get())};
}

}  // namespace dhc::test
