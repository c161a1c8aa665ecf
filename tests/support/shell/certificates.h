#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace dhc::test {

/// A certificate and its private key, as PEM.
struct Identity {
  std::string cert_pem;
  std::string key_pem;
};

/// What a certificate says.
struct CertificateText {
  std::string common_name = "test";
  std::string names = {};  ///< subjectAltName as OpenSSL writes it: "DNS:localhost,IP:127.0.0.1"; empty: none.
  std::chrono::hours valid_from{-1};
  std::chrono::hours valid_for{24};
};

/// An authority made at run time, so that no key is ever checked in.
class CertificateAuthority {
 public:
  explicit CertificateAuthority(const std::string& name = "test authority");
  ~CertificateAuthority();
  CertificateAuthority(const CertificateAuthority&) = delete;
  CertificateAuthority& operator=(const CertificateAuthority&) = delete;

  [[nodiscard]] const std::string& pem() const;
  [[nodiscard]] Identity issue(const CertificateText& text) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dhc::test
