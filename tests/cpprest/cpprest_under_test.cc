#include <cstdlib>
#include <utility>

#include "k8s-client/cpprest_transport.h"
#include "tests/support/shell/transport_under_test.h"

namespace dhc::test {
namespace {

/// cpprestsdk reads the system's roots for every connection, 25 ms each, before our callback throws them away.
const bool no_system_roots = ::setenv("SSL_CERT_FILE", "/dev/null", 1) == 0;

}  // namespace

std::unique_ptr<k8s::Transport> make_transport_under_test(k8s::Endpoint endpoint, k8s::TlsSource tls,
                                                          k8s::TransportLimits limits) {
  return k8s::make_cpprest_transport(std::move(endpoint), std::move(tls), limits);
}

bool lacks(Limitation limitation) {
  switch (limitation) {
    case Limitation::BadLength:
    case Limitation::BothLengthAndChunks:
    case Limitation::ChunkLineLimit:
    case Limitation::HeaderLimit:
    case Limitation::InterimAnswers:
    case Limitation::KeptConnections:
    case Limitation::MissingClientCertificateIsNamed:
    case Limitation::NegativeChunk:
    case Limitation::NotHttp:
    case Limitation::PartsOfChunks:
    case Limitation::TlsVersionIsNamed:
      return true;
    case Limitation::None:
      return false;
  }
  return false;
}

}  // namespace dhc::test
