#pragma once
#include <cstdint>
#include <memory>

#include "k8s-client/transport.h"

namespace dhc::test {

/// What an adapter may be excused from, by name. Each must still fail: an excuse that is no longer needed is removed.
enum class Limitation : std::uint8_t {
  None,
  BadLength,                        ///< Refuses two Content-Length headers.
  BothLengthAndChunks,              ///< Refuses Content-Length beside Transfer-Encoding.
  ChunkLineLimit,                   ///< Bounds the line that says how long a chunk is.
  HeaderLimit,                      ///< Bounds the header while it is read.
  InterimAnswers,                   ///< Skips 1xx answers.
  KeptConnections,                  ///< Uses a connection for the next request.
  MissingClientCertificateIsNamed,  ///< Says that the server wanted a client certificate.
  NegativeChunk,                    ///< Refuses a chunk of negative length.
  NotHttp,                          ///< Calls bytes that are no HTTP Malformed.
  PartsOfChunks,                    ///< Gives the bytes of a chunk before the chunk is whole.
  TlsVersionIsNamed,                ///< Says that the server's TLS is too old.
};

/// The adapter that this executable holds to the conformance suite.
[[nodiscard]] std::unique_ptr<k8s::Transport> make_transport_under_test(k8s::Endpoint endpoint, k8s::TlsSource tls,
                                                                        k8s::TransportLimits limits);

/// Whether this adapter is known to lack it; k8s-client/README.md names each.
[[nodiscard]] bool lacks(Limitation limitation);

/// Checks that `held`, or that it did not if the adapter is excused.
void check_unless(Limitation limitation, bool held);

}  // namespace dhc::test
