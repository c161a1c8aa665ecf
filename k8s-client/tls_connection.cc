#include "k8s-client/tls_connection.h"

#include <array>
#include <cerrno>
#include <netinet/tcp.h>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include "k8s-client/resolver.h"
#include "k8s-client/tls_context.h"

namespace dhc::k8s {
namespace {

namespace net = boost::asio;
using tcp = net::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

/// A peer that vanished without a word (node lost, NAT forgot us) is found by the kernel within about 30 s, also when
/// the caller's idle limit is longer.
void find_half_open_peers(int fd) {
  const auto set = [fd](int level, int name, int value) { ::setsockopt(fd, level, name, &value, sizeof value); };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);
}

}  // namespace

struct TlsConnection::Impl {
  net::io_context io{1};
  tcp::socket socket{io};
  std::optional<net::ssl::stream<tcp::socket&>> tls;
  std::string peer;           ///< For messages: host:port.
  std::string verified_name;  ///< For messages.
  std::array<char, 64 * 1024> buffer{};
  bool timed_out = false;
  std::stop_token stop;

  struct OnStop {
    Impl* impl;
    void operator()() const {
      net::post(impl->io, [i = impl] { i->close(); });
    }
  };
  // Last member: gone before what its call touches.
  std::optional<std::stop_callback<OnStop>> on_stop;

  /// Closing, not cancelling: a cancel that meets a composed operation between two of its steps is lost, while each
  /// later step on a closed socket fails.
  void close() {
    error_code ignored;
    socket.close(ignored);
  }

  /// Runs one asynchronous operation to its end on this thread; a passed deadline or a stop closes the socket.
  template <class Start>
  error_code wait(Deadline deadline, Start start) {
    // The stop's post may have run before this operation: it would find an open socket.
    if (stop.stop_requested()) return net::error::operation_aborted;
    std::optional<error_code> result;
    start([&result](error_code ec, auto&&...) { result = ec; });
    io.restart();
    while (!result && !timed_out) {
      if (io.run_one_until(deadline) > 0 || result) continue;
      timed_out = true;
      close();
    }
    while (!result) io.run_one();
    return *result;
  }

  std::unexpected<Error> why(error_code ec) {
    if (stop.stop_requested()) return fail(ErrorKind::Cancelled, "stopped while speaking to " + peer);
    if (timed_out) return fail(ErrorKind::TimedOut, "no answer in time from " + peer);
    if (ec == net::ssl::error::stream_truncated || ec == net::error::eof) {
      return fail(ErrorKind::Unavailable, fmt::format("{}: connection was cut", peer));
    }
    if (tls && ec.category() == net::error::get_ssl_category()) {
      const long verified = SSL_get_verify_result(tls->native_handle());
      return fail(ErrorKind::Unavailable,
                  fmt::format("{}: {}", peer,
                              explain_tls_failure(verified, ERR_GET_REASON(static_cast<unsigned long>(ec.value())),
                                                  ec.message(), verified_name)));
    }
    return fail(ErrorKind::Unavailable, fmt::format("{}: {}", peer, ec.message()));
  }

  Status connect(const std::vector<std::string>& addresses, std::uint16_t port, Deadline deadline) {
    error_code ec = net::error::host_not_found;
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      const auto address = net::ip::make_address(addresses[i], ec);
      if (ec) continue;
      // An address that swallows packets leaves the others their share of the time.
      const auto left = deadline - Clock::now();
      const auto share = Clock::now() + left / static_cast<int>(addresses.size() - i);
      timed_out = false;
      ec = wait(share, [&](auto done) { socket.async_connect(tcp::endpoint(address, port), done); });
      if (!ec) {
        find_half_open_peers(socket.native_handle());
        return {};
      }
      if (stop.stop_requested()) break;
      close();
    }
    return why(ec);
  }

  Status shake_hands(const TlsMaterial& material, Deadline deadline) {
    const auto context = make_tls_context(material);
    if (!context) return std::unexpected(context.error());
    SSL_CTX_up_ref(context->get());
    net::ssl::context shared(context->get());  // frees the reference taken above
    tls.emplace(socket, shared);
    if (!material.insecure_skip_verify) {
      if (auto expected = expect_peer(*tls->native_handle(), verified_name); !expected) return expected;
    }
    const auto ec = wait(deadline, [&](auto done) { tls->async_handshake(net::ssl::stream_base::client, done); });
    if (ec) return why(ec);
    return {};
  }
};

TlsConnection::TlsConnection() : impl_(std::make_unique<Impl>()) {}
TlsConnection::~TlsConnection() = default;

Result<std::unique_ptr<TlsConnection>> TlsConnection::open(const Endpoint& endpoint, const TlsMaterial& material,
                                                           Deadline deadline, std::stop_token stop) {
  try {
    std::unique_ptr<TlsConnection> connection(new TlsConnection);
    Impl& i = *connection->impl_;
    i.peer = fmt::format("{}:{}", endpoint.host, endpoint.port);
    i.verified_name = material.server_name.empty() ? endpoint.host : material.server_name;
    connection->attach(stop);
    const auto addresses = resolve(endpoint.host, deadline, stop);
    if (!addresses) return std::unexpected(addresses.error());
    if (auto connected = i.connect(*addresses, endpoint.port, deadline); !connected) {
      return std::unexpected(connected.error());
    }
    if (endpoint.tls) {
      if (auto shaken = i.shake_hands(material, deadline); !shaken) return std::unexpected(shaken.error());
    }
    return connection;
  } catch (const std::exception& e) {  // no file descriptor left for the io_context, for one
    return fail(ErrorKind::Unavailable, fmt::format("cannot open a connection to {}: {}", endpoint.host, e.what()));
  }
}

Status TlsConnection::write(std::string_view bytes, Deadline deadline) {
  Impl& i = *impl_;
  // The socket would take the bytes at once, and a process that was stopped on the way here would send what nobody
  // wants any more.
  if (Clock::now() >= deadline) return fail(ErrorKind::TimedOut, "no time left to send to " + i.peer);
  const auto buffer = net::buffer(bytes.data(), bytes.size());
  const auto ec = i.wait(deadline, [&](auto done) {
    if (i.tls) {
      net::async_write(*i.tls, buffer, done);
    } else {
      net::async_write(i.socket, buffer, done);
    }
  });
  if (ec) return i.why(ec);
  return {};
}

Result<std::string_view> TlsConnection::read_some(Deadline deadline) {
  Impl& i = *impl_;
  std::size_t count = 0;
  const auto ec = i.wait(deadline, [&](auto done) {
    auto counted = [&count, done](error_code result, std::size_t n) mutable {
      count = n;
      done(result);
    };
    if (i.tls) {
      i.tls->async_read_some(net::buffer(i.buffer), counted);
    } else {
      i.socket.async_read_some(net::buffer(i.buffer), counted);
    }
  });
  if (ec == net::error::eof) return std::string_view{};
  if (ec) return i.why(ec);
  return std::string_view(i.buffer.data(), count);
}

void TlsConnection::attach(std::stop_token stop) {
  Impl& i = *impl_;
  i.stop = std::move(stop);
  i.on_stop.emplace(i.stop, Impl::OnStop{&i});
}

void TlsConnection::detach() {
  Impl& i = *impl_;
  i.on_stop.reset();
  i.stop = {};
  // A stop that came after the last operation has left its post: it closes the socket now, not under the next caller.
  i.io.restart();
  i.io.poll();
}

bool TlsConnection::quiet() const {
  Impl& i = *impl_;
  if (!i.socket.is_open()) return false;
  if (i.tls) {
    SSL* ssl = i.tls->native_handle();
    if (SSL_has_pending(ssl) != 0 || BIO_pending(SSL_get_rbio(ssl)) > 0) return false;
  }
  char byte = 0;
  const auto got = ::recv(i.socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

}  // namespace dhc::k8s
