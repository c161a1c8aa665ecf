#include "k8s-client/beast_transport.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "k8s-client/boot_clock.h"
#include "k8s-client/connection_pool.h"
#include "k8s-client/protocol/http_reader.h"
#include "k8s-client/protocol/http_request_text.h"
#include "k8s-client/tls_connection.h"

namespace dhc::k8s {
namespace {

using Clock = std::chrono::steady_clock;
using Deadline = TlsConnection::Deadline;
using Connection = std::unique_ptr<TlsConnection>;

/// Of a body that is not 2xx where a stream was asked for; the rest is left unread.
constexpr std::size_t kRefusalBytes = 1024 * 1024;

/// When each part of one call must be over.
class Clockwork {
 public:
  explicit Clockwork(const Timeouts& timeouts)
      : timeouts_(timeouts), end_(timeouts.total ? Clock::now() + *timeouts.total : Deadline::max()) {}

  Deadline connect() const { return std::min(Clock::now() + timeouts_.connect, end()); }
  Deadline idle() const { return std::min(Clock::now() + timeouts_.idle, end()); }

  /// Says which limit it was.
  Error named(Error error, std::string_view part, Millis limit) const {
    if (error.kind != ErrorKind::TimedOut) return error;
    if (timeouts_.end_by && boot_now() >= *timeouts_.end_by) {
      error.message += " (the moment has passed until which it might be sent)";
    } else if (Clock::now() >= end_) {
      error.message += fmt::format(" (the whole call may take {} ms)", timeouts_.total->count());
    } else {
      error.message += fmt::format(" ({} may take {} ms)", part, limit.count());
    }
    return error;
  }
  Error connecting(Error error) const { return named(std::move(error), "connecting", timeouts_.connect); }
  Error waiting(Error error) const { return named(std::move(error), "silence", timeouts_.idle); }

 private:
  /// Looked up anew each time: a process that was frozen, or a machine that slept, must find its time gone.
  Deadline end() const {
    if (!timeouts_.end_by) return end_;
    const auto now = Clock::now();  // before the other clock: a freeze in between makes the rest shorter
    return std::min(end_, now + (*timeouts_.end_by - boot_now()));
  }

  Timeouts timeouts_;
  Deadline end_;
};

/// How a call over one connection ended.
struct Ending {
  Status status;
  bool answered = false;  ///< At least one byte came back.
};

Ending exchange(TlsConnection& connection, std::string_view text, HttpReader& reader, const Clockwork& clockwork) {
  // A server that refuses early has closed before we were done: its answer, or its TLS alert, is still to be read.
  const auto written = connection.write(text, clockwork.idle());
  if (!written && written.error().kind != ErrorKind::Unavailable) {
    return {.status = std::unexpected(clockwork.waiting(written.error()))};
  }
  Ending ending;
  while (!reader.done()) {
    const auto bytes = connection.read_some(clockwork.idle());
    if (!bytes) {
      ending.status = std::unexpected(clockwork.waiting(bytes.error()));
      return ending;
    }
    ending.answered = ending.answered || !bytes->empty();
    ending.status = bytes->empty() ? reader.end_of_stream() : reader.feed(*bytes);
    if (!ending.status) return ending;
  }
  return ending;
}

class BeastTransport final : public Transport {
 public:
  BeastTransport(Endpoint endpoint, TlsSource tls, TransportLimits limits)
      : endpoint_(std::move(endpoint)),
        tls_(std::move(tls)),
        limits_(limits),
        authority_(build_authority(endpoint_.host, endpoint_.port, endpoint_.tls)) {}

  Result<Response> send(const Request& request, std::stop_token stop) override {
    const auto text = build_request_text(request, authority_, endpoint_.path_prefix);
    if (!text) return std::unexpected(text.error());
    const Clockwork clockwork(request.timeouts);
    const auto material = read_material(stop);
    if (!material) return std::unexpected(material.error());
    if (Connection kept = pool_.take(*material)) {
      kept->attach(stop);
      bool closed_unanswered = false;
      auto response = send_over(std::move(kept), *material, *text, clockwork, request.status_only, closed_unanswered);
      // Only a GET: the server may have read the request before it closed.
      if (!closed_unanswered || request.method != Method::Get) return response;
    }
    auto fresh = open(*material, clockwork, stop);
    if (!fresh) return std::unexpected(fresh.error());
    bool closed_unanswered = false;
    return send_over(std::move(*fresh), *material, *text, clockwork, request.status_only, closed_unanswered);
  }

  Result<Response> stream(const Request& request, const BodySink& sink, std::stop_token stop) override {
    const auto text = build_request_text(request, authority_, endpoint_.path_prefix);
    if (!text) return std::unexpected(text.error());
    const Clockwork clockwork(request.timeouts);
    const auto material = read_material(stop);
    if (!material) return std::unexpected(material.error());
    auto connection = open(*material, clockwork, stop);
    if (!connection) return std::unexpected(connection.error());

    const HttpReader* head = nullptr;
    std::string refusal;
    HttpReader reader({.header_bytes = limits_.header_bytes}, [&](std::string_view piece) {
      if (head->status() / 100 == 2) return sink(piece);
      refusal.append(piece.substr(0, kRefusalBytes - refusal.size()));
      return refusal.size() < kRefusalBytes;
    });
    head = &reader;
    const Ending ending = exchange(**connection, *text, reader, clockwork);
    if (!ending.status && refusal.size() < kRefusalBytes) return std::unexpected(ending.status.error());
    Response response = reader.head();
    response.body = std::move(refusal);
    return response;
  }

 private:
  Result<TlsMaterial> read_material(const std::stop_token& stop) const {
    if (stop.stop_requested()) return fail(ErrorKind::Cancelled, "stopped before the call");
    return endpoint_.tls ? tls_(stop) : TlsMaterial{};
  }

  Result<Connection> open(const TlsMaterial& material, const Clockwork& clockwork, std::stop_token stop) const {
    auto connection = TlsConnection::open(endpoint_, material, clockwork.connect(), std::move(stop));
    if (!connection) return std::unexpected(clockwork.connecting(connection.error()));
    return connection;
  }

  Result<Response> send_over(Connection connection, const TlsMaterial& material, std::string_view text,
                             const Clockwork& clockwork, bool status_only, bool& closed_unanswered) {
    std::string body;
    HttpReader reader(
        {.header_bytes = limits_.header_bytes, .body_bytes = limits_.body_bytes, .status_only = status_only},
        [&](std::string_view piece) {
          if (!status_only) body.append(piece);
          return true;
        });
    const Ending ending = exchange(*connection, text, reader, clockwork);
    if (!ending.status) {
      closed_unanswered = !ending.answered && ending.status.error().kind == ErrorKind::Unavailable;
      return std::unexpected(ending.status.error());
    }
    if (reader.reusable()) {
      connection->detach();
      pool_.keep(std::move(connection), material);
    }
    Response response = reader.head();
    response.body = std::move(body);
    return response;
  }

  const Endpoint endpoint_;
  const TlsSource tls_;
  const TransportLimits limits_;
  const std::string authority_;
  ConnectionPool pool_;
};

}  // namespace

std::unique_ptr<Transport> make_beast_transport(Endpoint endpoint, TlsSource tls, TransportLimits limits) {
  return std::make_unique<BeastTransport>(std::move(endpoint), std::move(tls), limits);
}

}  // namespace dhc::k8s
