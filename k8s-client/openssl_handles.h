#pragma once
#include <memory>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

namespace dhc::k8s {

/// Frees an OpenSSL object by the function that its manual names.
template <auto Free>
struct OpensslFreer {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using BioHandle = std::unique_ptr<BIO, OpensslFreer<BIO_free_all>>;
using CertificateHandle = std::unique_ptr<X509, OpensslFreer<X509_free>>;
using KeyHandle = std::unique_ptr<EVP_PKEY, OpensslFreer<EVP_PKEY_free>>;
using ExtensionHandle = std::unique_ptr<X509_EXTENSION, OpensslFreer<X509_EXTENSION_free>>;

}  // namespace dhc::k8s
