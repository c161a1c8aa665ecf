#include "simulator/connection.h"

#include <optional>
#include <sys/socket.h>

#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <fmt/format.h>

namespace dhc::sim {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = net::ip::tcp;

namespace {

constexpr std::size_t kHeaderLimit = 16UL * 1024;
constexpr std::size_t kBodyLimit = 4UL * 1024 * 1024;
/// How often a quiet watch looks whether its client is still there.
constexpr Millis kLookEvery{200};

std::optional<k8s::Method> method_of(http::verb verb) {
  switch (verb) {
    case http::verb::get:
      return k8s::Method::Get;
    case http::verb::post:
      return k8s::Method::Post;
    case http::verb::put:
      return k8s::Method::Put;
    case http::verb::patch:
      return k8s::Method::Patch;
    case http::verb::delete_:
      return k8s::Method::Delete;
    default:
      return std::nullopt;
  }
}

std::string head_of(const Answer& answer, std::string_view framing) {
  auto head = fmt::format("HTTP/1.1 {} {}\r\n", answer.status, answer.status < 300 ? "OK" : "Error");
  for (const auto& header : answer.headers) head += fmt::format("{}: {}\r\n", header.name, header.value);
  return head + std::string(framing) + "\r\n\r\n";
}

}  // namespace

void SharedCluster::stop() {
  const std::scoped_lock lock(mutex);
  stopped = true;
  poked = true;
  changed.notify_all();
}

struct Connection::Stream {
  Stream(tcp::socket socket, net::ssl::context& context) : tls(std::move(socket), context) {}
  beast::ssl_stream<tcp::socket> tls;
  beast::flat_buffer buffer{64UL * 1024};
};

Connection::Connection(tcp::socket socket, net::ssl::context& tls, SharedCluster& shared)
    : shared_(shared), stream_(std::make_unique<Stream>(std::move(socket), tls)) {
  thread_ = std::jthread([this] { serve(); });
}

Connection::~Connection() {
  end();
  thread_.join();
}

void Connection::end() { ::shutdown(stream_->tls.next_layer().native_handle(), SHUT_RDWR); }

void Connection::serve() {
  beast::error_code error;
  stream_->tls.next_layer().set_option(tcp::no_delay(true), error);
  stream_->tls.handshake(net::ssl::stream_base::server, error);
  while (!error && serve_one()) {
  }
  // The descriptor stays open until this object goes, so that `end` never meets another's.
  end();
  done_ = true;
}

bool Connection::send(std::string_view bytes) {
  beast::error_code error;
  net::write(stream_->tls, net::buffer(bytes.data(), bytes.size()), error);
  return !error;
}

bool Connection::serve_one() {
  http::request_parser<http::string_body> parser;
  parser.header_limit(kHeaderLimit);
  parser.body_limit(kBodyLimit);
  beast::error_code error;
  http::read(stream_->tls, stream_->buffer, parser, error);
  if (error) return false;
  const auto& message = parser.get();
  const auto method = method_of(message.method());
  if (!method) {
    static_cast<void>(send("HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"));
    return false;
  }
  k8s::Request request;
  request.method = *method;
  request.target = std::string(message.target());
  request.body = message.body();
  for (const auto& header : message) {
    request.headers.push_back({std::string(header.name_string()), std::string(header.value())});
  }
  return answer(request, message.keep_alive());
}

bool Connection::answer(const k8s::Request& request, bool keep_alive) {
  Answer answer;
  {
    const std::scoped_lock lock(shared_.mutex);
    answer = shared_.cluster.handle(request, shared_.clock());
    shared_.poked = true;
    shared_.changed.notify_all();
  }
  if (!wait_out(answer.delay)) return false;
  if (answer.watch) {
    auto watch = *std::move(answer.watch);
    answer.watch.reset();
    return stream(std::move(watch), answer) && keep_alive;
  }
  const auto head = head_of(answer, fmt::format("content-length: {}", answer.body.size()));
  const bool cut = answer.cut_after && *answer.cut_after < answer.body.size();
  if (cut) answer.body.resize(*answer.cut_after);
  return send(head + answer.body) && !cut && keep_alive;
}

bool Connection::wait_out(Millis delay) {
  std::unique_lock lock(shared_.mutex);
  if (delay <= Millis::zero()) return !shared_.stopped;
  return !shared_.changed.wait_for(lock, delay, [&] { return shared_.stopped; });
}

bool Connection::client_left() const {
  // While a watch streams, the client has nothing to say but goodbye.
  char byte = 0;
  const auto got = ::recv(stream_->tls.next_layer().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

bool Connection::stream(WatchStream watch, const Answer& head) {
  if (!send(head_of(head, "transfer-encoding: chunked"))) return false;
  while (true) {
    WatchOutput output;
    {
      std::unique_lock lock(shared_.mutex);
      if (shared_.stopped) return false;
      output = watch.poll(shared_.cluster.store(), shared_.clock());
      if (output.bytes.empty() && !output.ended) {
        const auto seen = shared_.cluster.store().rv();
        shared_.changed.wait_for(lock, kLookEvery,
                                 [&] { return shared_.stopped || shared_.cluster.store().rv() != seen; });
      }
    }
    if (!output.bytes.empty() && !send(fmt::format("{:x}\r\n{}\r\n", output.bytes.size(), output.bytes))) return false;
    if (output.cut) return false;
    if (output.ended) return send("0\r\n\r\n");
    if (output.bytes.empty() && client_left()) return false;
  }
}

}  // namespace dhc::sim
