#include <cstdlib>
#include <fstream>
#include <unistd.h>

#include <doctest/doctest.h>
#include <openssl/ssl.h>

#include "tests/support/shell/loopback.h"

using namespace dhc;
using namespace dhc::test;
using k8s::TlsMaterial;

namespace {

std::unique_ptr<k8s::Transport> transport_to(const Loopback& to, TlsMaterial material, std::string host = "127.0.0.1") {
  k8s::Endpoint endpoint = to.endpoint();
  endpoint.host = std::move(host);
  return make_transport_under_test(endpoint, [m = std::move(material)](const auto&) { return m; }, {});
}

/// Calls a server that shows a certificate with these names.
Result<k8s::Response> call(const CertificateText& text, const std::string& host, const std::string& server_name = "") {
  const CertificateAuthority authority;
  Loopback loopback(always(ok("")), {.identity = authority.issue(text)});
  TlsMaterial material;
  material.ca_pem = authority.pem();
  material.server_name = server_name;
  return transport_to(loopback, material, host)->send(request_for("/"), {});
}

void check_refused(const Result<k8s::Response>& answer, std::string_view words) {
  REQUIRE_FALSE(answer);
  CHECK(answer.error().kind == ErrorKind::Unavailable);
  CHECK_MESSAGE(answer.error().message.find(words) != std::string::npos, answer.error().message);
}

/// Sets SSL_CERT_FILE to a file with this content for as long as it lives.
class SystemRoots {
 public:
  explicit SystemRoots(const std::string& pem) {
    const int fd = ::mkstemp(path_.data());
    REQUIRE(fd >= 0);
    ::close(fd);
    std::ofstream(path_) << pem;
    if (const char* old = std::getenv("SSL_CERT_FILE")) old_ = old;
    ::setenv("SSL_CERT_FILE", path_.c_str(), 1);
  }
  ~SystemRoots() {
    if (old_.empty()) {
      ::unsetenv("SSL_CERT_FILE");
    } else {
      ::setenv("SSL_CERT_FILE", old_.c_str(), 1);
    }
    ::unlink(path_.c_str());
  }
  SystemRoots(const SystemRoots&) = delete;
  SystemRoots& operator=(const SystemRoots&) = delete;

 private:
  std::string old_;
  std::string path_ = "/tmp/dhc-roots-XXXXXX";
};

}  // namespace

TEST_CASE("a server of another authority is refused with the problem and the remedy") {
  Loopback loopback(always(ok("")));
  const CertificateAuthority other("other authority");
  TlsMaterial material;
  material.ca_pem = other.pem();
  const auto answer = transport_to(loopback, material)->send(request_for("/"), {});
  check_refused(answer, "certificate verify failed: unable to get local issuer certificate");
  check_refused(answer, "check certificate-authority in the kubeconfig");
  CHECK(loopback.server.requests().empty());
}

TEST_CASE("SSL_CERT_FILE adds nothing to the cluster's own authority") {
  const CertificateAuthority system("system authority");
  const SystemRoots roots(system.pem());
  Loopback loopback(always(ok("")), {.identity = system.issue({.names = "IP:127.0.0.1"})});
  CHECK(error_of(loopback.transport->send(request_for("/"), {})) == ErrorKind::Unavailable);

  SUBCASE("and is what is trusted if the cluster names no authority") {
    CHECK(transport_to(loopback, {})->send(request_for("/"), {}));
  }
}

TEST_CASE("one of several authorities is enough, as while a cluster's authority is rotated") {
  Loopback loopback(always(ok("")));
  const CertificateAuthority other("other authority");
  TlsMaterial material;
  material.ca_pem = other.pem() + loopback.authority.pem();
  CHECK(transport_to(loopback, material)->send(request_for("/"), {}));
}

TEST_CASE("TLS 1.1 is refused and TLS 1.2 is not") {
  Loopback old(always(ok("")), {.max_tls_version = TLS1_1_VERSION});
  const auto answer = old.transport->send(request_for("/"), {});
  check_refused(answer, "");
  check_unless(Limitation::TlsVersionIsNamed, answer.error().message.find("TLS 1.2") != std::string::npos);
  Loopback good(always(ok("")), {.max_tls_version = TLS1_2_VERSION});
  CHECK(good.transport->send(request_for("/"), {}));
}

TEST_CASE("a certificate must name the host or the IP address in its subjectAltName") {
  CHECK(call({.common_name = "x", .names = "IP:127.0.0.1"}, "127.0.0.1"));
  CHECK(call({.common_name = "x", .names = "DNS:localhost"}, "localhost"));
  check_refused(call({.common_name = "x", .names = "DNS:localhost"}, "127.0.0.1"), "not for 127.0.0.1");
  check_refused(call({.common_name = "x", .names = "IP:127.0.0.1"}, "localhost"), "not for localhost");
  check_refused(call({.common_name = "x", .names = "IP:127.0.0.2"}, "127.0.0.1"), "check server and tls-server-name");
}

TEST_CASE("a certificate's common name counts for nothing") {
  check_refused(call({.common_name = "localhost", .names = "DNS:other.example"}, "localhost"), "not for localhost");
  check_refused(call({.common_name = "localhost", .names = ""}, "localhost"), "not for localhost");
  check_refused(call({.common_name = "127.0.0.1", .names = ""}, "127.0.0.1"), "not for 127.0.0.1");
}

TEST_CASE("tls-server-name is verified in place of the host") {
  const CertificateText text{.common_name = "x", .names = "DNS:kubernetes.default.svc"};
  CHECK(call(text, "127.0.0.1", "kubernetes.default.svc"));
  check_refused(call(text, "127.0.0.1", "kubernetes.example"), "not for kubernetes.example");
  check_refused(call({.common_name = "x", .names = "IP:127.0.0.1"}, "127.0.0.1", "kubernetes.default.svc"),
                "not for kubernetes.default.svc");
}

TEST_CASE("SNI holds a name and never an IP address") {
  std::string seen = "none yet";
  const auto note = [&seen](ServerConnection& c) {
    seen = c.server_name();
    c.read_request();
    c.send(ok(""));
  };
  {
    Loopback loopback(note);
    CHECK(transport_to(loopback, loopback.material(), "localhost")->send(request_for("/"), {}));
  }
  CHECK(seen == "localhost");
  {
    Loopback loopback(note);
    CHECK(transport_to(loopback, loopback.material(), "127.0.0.1")->send(request_for("/"), {}));
  }
  CHECK(seen.empty());
}

TEST_CASE("an expired certificate is refused and the clock is named") {
  check_refused(call({.names = "IP:127.0.0.1", .valid_from = std::chrono::hours(-48)}, "127.0.0.1"), "expired");
  check_refused(call({.names = "IP:127.0.0.1", .valid_from = std::chrono::hours(24)}, "127.0.0.1"), "clock");
}

TEST_CASE("insecure-skip-tls-verify takes any certificate") {
  Loopback loopback(always(ok("")), {.identity = CertificateAuthority("other").issue({.names = "DNS:other"})});
  TlsMaterial material;
  material.insecure_skip_verify = true;
  CHECK(transport_to(loopback, material)->send(request_for("/"), {}));
}

TEST_CASE("a client certificate is shown to a server that asks for one") {
  const CertificateAuthority clients("clients");
  std::string seen;
  {
    Loopback loopback(
        [&seen](ServerConnection& c) {
          seen = c.client_name();
          c.read_request();
          c.send(ok(""));
        },
        {.client_ca_pem = clients.pem()});
    const Identity identity = clients.issue({.common_name = "device-health-controller", .names = ""});
    TlsMaterial material = loopback.material();
    material.client_cert_pem = identity.cert_pem;
    material.client_key_pem = identity.key_pem;
    const auto answer = transport_to(loopback, material)->send(request_for("/"), {});
    REQUIRE_MESSAGE(answer, answer.error().message);
  }
  CHECK(seen == "device-health-controller");
}

TEST_CASE("without the client certificate that a server demands the remedy is named") {
  const CertificateAuthority clients("clients");
  Loopback loopback(always(ok("")), {.client_ca_pem = clients.pem()});
  const auto none = loopback.transport->send(request_for("/"), {});
  REQUIRE_FALSE(none);
  CHECK(none.error().kind == ErrorKind::Unavailable);
  check_unless(Limitation::MissingClientCertificateIsNamed,
               none.error().message.find("check client-certificate and client-key") != std::string::npos);

  const Identity stranger = CertificateAuthority("strangers").issue({.common_name = "stranger", .names = ""});
  TlsMaterial material = loopback.material();
  material.client_cert_pem = stranger.cert_pem;
  material.client_key_pem = stranger.key_pem;
  CHECK(error_of(transport_to(loopback, material)->send(request_for("/"), {})) == ErrorKind::Unavailable);
  CHECK(loopback.server.requests().empty());
}

TEST_CASE("material that cannot be read is Unavailable, names its part and repeats nothing of it") {
  Loopback loopback(always(ok("")));
  const Identity one = loopback.authority.issue({});
  const Identity two = loopback.authority.issue({});
  const auto refused = [&](const TlsMaterial& material, std::string_view words) {
    const auto answer = transport_to(loopback, material)->send(request_for("/"), {});
    check_refused(answer, words);
    CHECK(answer.error().message.find("BEGIN") == std::string::npos);
  };
  TlsMaterial material = loopback.material();
  material.ca_pem = "not a certificate";
  refused(material, "check certificate-authority");
  material.ca_pem = loopback.authority.pem() + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  refused(material, "check certificate-authority");
  material = loopback.material();
  material.client_cert_pem = one.cert_pem;
  refused(material, "client-key");
  material.client_key_pem = two.key_pem;
  refused(material, "client-key does not fit client-certificate");
  material.client_cert_pem = "nonsense";
  refused(material, "client-certificate");
  CHECK(loopback.server.requests().empty());
}

TEST_CASE("an error of the material's source is the call's error") {
  Loopback loopback(always(ok("")));
  const auto transport = make_transport_under_test(
      loopback.endpoint(),
      [](const auto&) -> Result<TlsMaterial> { return fail(ErrorKind::Unavailable, "cannot read /ca.crt"); }, {});
  check_refused(transport->send(request_for("/"), {}), "cannot read /ca.crt");
  check_refused(stream(*transport, request_for("/")).response, "cannot read /ca.crt");
  CHECK(loopback.server.connections() == 0);
}

TEST_CASE("a server that speaks no TLS is refused") {
  Loopback plain(always(ok("")), {.tls = false});
  k8s::Endpoint endpoint = plain.endpoint();
  endpoint.tls = true;
  const auto transport = make_transport_under_test(endpoint, [&](const auto&) { return plain.material(); }, {});
  auto request = request_for("/");
  request.timeouts.connect = std::chrono::milliseconds(500);
  request.timeouts.idle = std::chrono::milliseconds(500);
  CHECK_FALSE(transport->send(request, {}));
  CHECK(plain.server.requests().empty());
}
