#include "k8s-client/cpprest_transport.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "k8s-client/boot_clock.h"
#include "k8s-client/cpprest_call.h"
#include "k8s-client/protocol/ascii.h"
#include "k8s-client/protocol/http_request_text.h"
#include "k8s-client/resolver.h"
#include "k8s-client/tls_context.h"

namespace dhc::k8s {
namespace {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;
using web::http::http_request;
using web::http::http_response;
using web::http::client::http_client;
using web::http::client::http_client_config;

/// Of a body that is not 2xx where a stream was asked for.
constexpr std::size_t kRefusalBytes = 1024 * 1024;

/// Forty threads by default, and races between them inside cpprestsdk; one thread showed none.
void use_one_thread() {
  static std::once_flag once;
  std::call_once(once, [] {
    try {
      crossplat::threadpool::initialize_with_threads(1);
    } catch (const std::exception&) {  // somebody was faster: it cannot be changed any more
    }
  });
}

Response head_of(const http_response& response) {
  Response out{.status = response.status_code(), .headers = {}, .body = {}};
  for (const auto& [name, value] : response.headers()) out.headers.push_back({to_lower_ascii(name), value});
  return out;
}

/// Our own limits, on a header that cpprestsdk has already read in full.
Status check_head(const Response& head, const TransportLimits& limits) {
  std::size_t size = 0;
  for (const Header& each : head.headers) size += each.name.size() + each.value.size() + 4;
  if (size > limits.header_bytes) {
    return fail(ErrorKind::Malformed, fmt::format("response header is over {} bytes", limits.header_bytes));
  }
  const auto encoding = header(head, "content-encoding");
  if (encoding && to_lower_ascii(*encoding) != "identity") {
    return fail(ErrorKind::Malformed, "response refused: it has a Content-Encoding that was not asked for");
  }
  return {};
}

/// Runs on cpprestsdk's thread when a task is over; throws nothing.
template <class Task>
Status status_of(Task& task) {
  try {
    task.get();
    return {};
  } catch (const std::exception& e) {
    return fail(ErrorKind::Unavailable, e.what());
  }
}

class CpprestTransport final : public Transport {
 public:
  CpprestTransport(Endpoint endpoint, TlsSource tls, TransportLimits limits)
      : endpoint_(std::move(endpoint)), tls_(std::move(tls)), limits_(limits) {
    use_one_thread();
  }

  Result<Response> send(const Request& request, std::stop_token stop) override {
    std::string body;
    auto response = call(request, stop, [&](const Response&, std::string_view piece) -> Status {
      if (body.size() + piece.size() > limits_.body_bytes) {
        return fail(ErrorKind::Malformed, fmt::format("response body is over {} bytes", limits_.body_bytes));
      }
      body.append(piece);
      return {};
    });
    if (response) response->body = std::move(body);
    return response;
  }

  Result<Response> stream(const Request& request, const BodySink& sink, std::stop_token stop) override {
    std::string refusal;
    std::optional<Response> refused;
    auto response = call(request, stop, [&](const Response& head, std::string_view piece) -> Status {
      if (head.status / 100 == 2) {
        if (sink(piece)) return {};
        return fail(ErrorKind::Cancelled, "reading was stopped");
      }
      refusal.append(piece.substr(0, kRefusalBytes - refusal.size()));
      if (refusal.size() < kRefusalBytes) return {};
      refused = head;
      return fail(ErrorKind::Cancelled, "enough of the refusal was read");
    });
    if (!response && refused) response = std::move(*refused);
    if (response) response->body = std::move(refusal);
    return response;
  }

 private:
  using OnPiece = std::function<Status(const Response& head, std::string_view piece)>;

  Result<Response> call(const Request& request, const std::stop_token& stop, const OnPiece& on_piece) {
    if (auto sendable = check_sendable(request); !sendable) return std::unexpected(sendable.error());
    if (stop.stop_requested()) return fail(ErrorKind::Cancelled, "stopped before the call");
    auto total = request.timeouts.total ? Clock::now() + *request.timeouts.total : Deadline::max();
    if (const auto& end_by = request.timeouts.end_by) {
      const auto now = Clock::now();
      total = std::min(total, Deadline(now + (*end_by - boot_now())));
      if (now >= total) return fail(ErrorKind::TimedOut, "no time left to send");
    }
    const auto material = endpoint_.tls ? tls_(stop) : TlsMaterial{};
    if (!material) return std::unexpected(material.error());
    if (endpoint_.tls) {
      // Inside cpprestsdk's callback an error could not be told.
      if (const auto context = make_tls_context(*material); !context) return std::unexpected(context.error());
    }
    const std::string name = material->server_name.empty() ? endpoint_.host : material->server_name;
    const auto ours = std::make_shared<CpprestCall>(name);
    pplx::cancellation_token_source cancel;
    try {
      start(request, *material, name, ours, cancel.get_token());
    } catch (const std::exception& e) {
      return fail(ErrorKind::Unavailable, fmt::format("cannot call {}: {}", endpoint_.host, e.what()));
    }
    auto answer = supervise(*ours, request.timeouts, total, stop, on_piece);
    ours->abandon();
    // Only from its own thread: a cancel from another one races with its reads.
    crossplat::threadpool::shared_instance().service().post([cancel] { cancel.cancel(); });
    return answer;
  }

  void start(const Request& request, const TlsMaterial& material, const std::string& name,
             const std::shared_ptr<CpprestCall>& ours, const pplx::cancellation_token& token) const {
    http_client_config config;
    config.set_max_redirects(0);
    config.set_timeout(std::chrono::hours(24 * 365));  // we watch the time ourselves; 0 would mean at once
    config.set_validate_certificates(!material.insecure_skip_verify);
    config.set_tlsext_sni_enabled(!is_ip_address(name));
    config.set_ssl_context_callback([material, name, ours](boost::asio::ssl::context& context) {
      configure_cpprest_tls(*context.native_handle(), material, name, *ours);
    });

    http_request message(std::string(to_string(request.method)));
    for (const Header& each : request.headers) message.headers().add(each.name, each.value);
    // cpprestsdk takes the name for SNI and for its own check from here.
    if (!material.server_name.empty()) message.headers().add("Host", material.server_name);
    message.set_request_uri(web::uri(endpoint_.path_prefix + request.target));
    if (!request.body.empty()) {
      const auto type =
          std::ranges::find(request.headers, "content-type", [](const Header& h) { return to_lower_ascii(h.name); });
      message.set_body(request.body, type == request.headers.end() ? "application/json" : type->value);
    }
    message.set_response_stream(make_cpprest_body(ours));

    http_client client(web::uri(fmt::format("{}://{}", endpoint_.tls ? "https" : "http",
                                            build_authority(endpoint_.host, endpoint_.port, endpoint_.tls))),
                       config);
    client.request(message, token).then([ours](pplx::task<http_response> task) {
      const Status status = status_of(task);
      if (!status) return ours->ended(status);
      http_response response = task.get();
      ours->got_head(head_of(response));
      response.content_ready().then([ours](pplx::task<http_response> whole) { ours->ended(status_of(whole)); });
    });
  }

  Result<Response> supervise(CpprestCall& ours, const Timeouts& timeouts, Deadline total, const std::stop_token& stop,
                             const OnPiece& on_piece) const {
    CpprestCall::News news;
    bool head_checked = false;
    for (;;) {
      const bool connecting = endpoint_.tls && !news.connected && !news.head;
      const Millis limit = connecting ? timeouts.connect : timeouts.idle;
      if (!ours.wait(news, std::min(Clock::now() + limit, total), stop)) {
        return gave_up(stop, total, connecting ? "connecting" : "silence", timeouts, limit);
      }
      if (stop.stop_requested()) return gave_up(stop, total, "", timeouts, limit);
      if (Clock::now() >= total) return gave_up(stop, total, "", timeouts, limit);
      if (news.head && !head_checked) {
        head_checked = true;
        if (auto good = check_head(*news.head, limits_); !good) return std::unexpected(good.error());
      }
      if (news.head && !news.piece.empty()) {
        if (auto taken = on_piece(*news.head, news.piece); !taken) return std::unexpected(taken.error());
        ours.take_piece();
      } else if (news.ended) {
        if (!*news.ended) return named(news.ended->error());
        return std::move(*news.head);
      }
    }
  }

  std::unexpected<Error> named(const Error& error) const {
    return fail(error.kind, fmt::format("{}:{}: {}", endpoint_.host, endpoint_.port, error.message));
  }

  std::unexpected<Error> gave_up(const std::stop_token& stop, Deadline total, std::string_view part,
                                 const Timeouts& timeouts, Millis limit) const {
    const std::string peer = fmt::format("{}:{}", endpoint_.host, endpoint_.port);
    if (stop.stop_requested()) return fail(ErrorKind::Cancelled, "stopped while speaking to " + peer);
    if (Clock::now() >= total) {
      return fail(ErrorKind::TimedOut, fmt::format("no answer in time from {} (the whole call may take {} ms)", peer,
                                                   timeouts.total->count()));
    }
    return fail(ErrorKind::TimedOut,
                fmt::format("no answer in time from {} ({} may take {} ms)", peer, part, limit.count()));
  }

  const Endpoint endpoint_;
  const TlsSource tls_;
  const TransportLimits limits_;
};

}  // namespace

std::unique_ptr<Transport> make_cpprest_transport(Endpoint endpoint, TlsSource tls, TransportLimits limits) {
  return std::make_unique<CpprestTransport>(std::move(endpoint), std::move(tls), limits);
}

}  // namespace dhc::k8s
