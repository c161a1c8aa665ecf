#pragma once
// clang-format off
#include <utility>  // asio/awaitable.hpp of Boost 1.74 needs it and does not say so
// clang-format on
// Else cpprestsdk defines a macro U, and fmt's templates have a parameter of that name.
#define _TURN_OFF_PLATFORM_STRING
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <pplx/threadpool.h>
#include <stop_token>
#include <string>
#include <string_view>

#include <cpprest/http_client.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include "base/error.h"
#include "k8s-client/endpoint.h"
#include "k8s-client/protocol/request.h"

namespace dhc::k8s {

/// What cpprestsdk's one thread and the calling thread say to each other during one call. The calling thread may leave
/// first: then nothing of it is touched any more.
class CpprestCall {
 public:
  /// What the calling thread finds when it wakes up.
  struct News {
    bool connected = false;  ///< TLS is up; never said without TLS.
    std::optional<Response> head;
    std::string_view piece;  ///< Valid until `take_piece` or `abandon`.
    std::optional<Status> ended;
  };

  explicit CpprestCall(std::string verified_name) : verified_name_(std::move(verified_name)) {}

  // cpprestsdk's thread.
  void connected();
  void got_head(Response head);
  /// Done when the calling thread has taken the piece.
  [[nodiscard]] pplx::task<std::size_t> got_piece(const unsigned char* bytes, std::size_t count);
  void ended(Status status);
  void certificate_refused(long verify_result);

  // The calling thread.
  /// Waits until something is new since `seen`, the deadline or the stop; false if nothing came.
  [[nodiscard]] bool wait(News& seen, std::chrono::steady_clock::time_point deadline, const std::stop_token& stop);
  void take_piece();
  void abandon();

 private:
  const std::string verified_name_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  News news_;
  std::string refused_;  ///< Why the certificate was not accepted.
  std::optional<pplx::task_completion_event<std::size_t>> taken_;
  bool abandoned_ = false;
};

/// Puts our TLS settings on cpprestsdk's context: only the material's authority, the name verified without a fall back
/// to the common name, TLS 1.2 or later. Tells `call` when TLS is up or why a certificate was refused.
void configure_cpprest_tls(SSL_CTX& context, const TlsMaterial& material, const std::string& verified_name,
                           CpprestCall& call);

/// A response body that goes to the call, piece by piece, each only when the last one has been taken.
[[nodiscard]] concurrency::streams::ostream make_cpprest_body(std::shared_ptr<CpprestCall> call);

}  // namespace dhc::k8s
