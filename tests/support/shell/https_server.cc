#include "tests/support/shell/https_server.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <condition_variable>
#include <list>
#include <mutex>
#include <netinet/in.h>
#include <optional>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>

namespace dhc::test {
namespace {

namespace net = boost::asio;
using tcp = net::ip::tcp;
using boost::system::error_code;
using TlsStream = net::ssl::stream<tcp::socket&>;

/// The length of the body that a request's header announces.
std::size_t body_length(std::string_view head) {
  static constexpr std::string_view kName = "\r\nContent-Length:";
  const auto at = head.find(kName);
  std::size_t length = 0;
  if (at != std::string_view::npos) {
    auto digits = head.substr(at + kName.size());
    if (digits.starts_with(' ')) digits.remove_prefix(1);
    std::from_chars(digits.data(), digits.data() + digits.size(), length);
  }
  return length;
}

}  // namespace

struct HttpsServer::Impl {
  class Connection final : public ServerConnection {
   public:
    Connection(Impl& server, tcp::socket socket) : server_(server), socket_(std::move(socket)) {}

    void run() {
      error_code ec;
      socket_.set_option(tcp::no_delay(true), ec);
      if (!server_.options.shakes_hands) return wait_for_client_to_leave();
      if (server_.options.tls) {
        tls_.emplace(socket_, server_.context);
        tls_->handshake(net::ssl::stream_base::server, ec);
        if (ec) return cut();
      }
      server_.script(*this);
      cut();
    }

    /// From the server's destructor: wakes whatever the script waits for.
    void interrupt() {
      const std::lock_guard lock(mutex_);
      if (!closed_) ::shutdown(socket_.native_handle(), SHUT_RDWR);
    }

    std::string read_request() override {
      for (;;) {
        const auto end = received_.find("\r\n\r\n");
        if (end != std::string::npos) {
          const std::size_t size = end + 4 + body_length(std::string_view(received_).substr(0, end + 2));
          if (received_.size() >= size) return server_.note(take(size));
        }
        if (!receive()) return {};
      }
    }

    bool send(std::string_view bytes) override {
      error_code ec;
      const auto buffer = net::buffer(bytes.data(), bytes.size());
      if (tls_) {
        net::write(*tls_, buffer, ec);
      } else {
        net::write(socket_, buffer, ec);
      }
      return !ec;
    }

    void pause(std::chrono::milliseconds time) override {
      std::unique_lock lock(server_.mutex);
      server_.stopped.wait_for(lock, server_.stop.get_token(), time, [] { return false; });
    }

    void wait_for_client_to_leave() override {
      pollfd watched{.fd = socket_.native_handle(), .events = POLLRDHUP, .revents = 0};
      ::poll(&watched, 1, 60'000);
    }

    void close() override {
      error_code ec;
      // Returns when the client has left: ours reads the close_notify and goes.
      if (tls_) tls_->shutdown(ec);
      socket_.shutdown(tcp::socket::shutdown_send, ec);
    }

    void cut() override {
      error_code ec;
      socket_.shutdown(tcp::socket::shutdown_both, ec);
    }

    void reset() override {
      const std::lock_guard lock(mutex_);
      error_code ec;
      socket_.set_option(net::socket_base::linger(true, 0), ec);
      socket_.close(ec);
      closed_ = true;
    }

    std::string server_name() const override {
      const char* name = tls_ ? SSL_get_servername(native(), TLSEXT_NAMETYPE_host_name) : nullptr;
      return name == nullptr ? "" : name;
    }

    std::string client_name() const override {
      X509* certificate = tls_ ? SSL_get0_peer_certificate(native()) : nullptr;
      std::array<char, 256> name{};
      if (certificate == nullptr) return {};
      X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name.data(), name.size());
      return name.data();
    }

   private:
    SSL* native() const { return const_cast<TlsStream&>(*tls_).native_handle(); }

    std::string take(std::size_t size) {
      std::string out = received_.substr(0, size);
      received_.erase(0, size);
      return out;
    }

    bool receive() {
      std::array<char, 16 * 1024> bytes{};
      error_code ec;
      const std::size_t size =
          tls_ ? tls_->read_some(net::buffer(bytes), ec) : socket_.read_some(net::buffer(bytes), ec);
      received_.append(bytes.data(), size);
      return !ec;
    }

    Impl& server_;
    std::mutex mutex_;
    bool closed_ = false;
    tcp::socket socket_;
    std::optional<TlsStream> tls_;
    std::string received_;
  };

  struct Running {
    std::unique_ptr<Connection> connection;
    std::jthread thread;
  };

  ServerOptions options;
  Script script;
  net::io_context io;
  net::ssl::context context{net::ssl::context::tls_server};
  tcp::acceptor acceptor{io};
  std::uint16_t port = 0;

  std::stop_source stop;
  mutable std::mutex mutex;  // the four below
  std::condition_variable_any stopped;
  int accepted = 0;
  std::vector<std::string> seen;
  std::list<Running> running;

  std::jthread accepter;

  Impl(ServerOptions o, Script s) : options(std::move(o)), script(std::move(s)) {
    if (options.tls && options.shakes_hands) prepare_tls();
    acceptor.open(tcp::v4());
    acceptor.bind({net::ip::address_v4::loopback(), 0});
    acceptor.listen();
    port = acceptor.local_endpoint().port();
    accepter = std::jthread([this] { accept(); });
  }

  void prepare_tls() {
    context.use_certificate_chain(net::buffer(options.identity.cert_pem));
    context.use_private_key(net::buffer(options.identity.key_pem), net::ssl::context::pem);
    if (!options.client_ca_pem.empty()) {
      context.set_verify_mode(net::ssl::verify_peer | net::ssl::verify_fail_if_no_peer_cert);
      context.add_certificate_authority(net::buffer(options.client_ca_pem));
    }
    if (options.max_tls_version != 0) {
      // Debian's OpenSSL refuses TLS 1.1 at its default security level.
      SSL_CTX_set_security_level(context.native_handle(), 0);
      SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_VERSION);
      SSL_CTX_set_max_proto_version(context.native_handle(), options.max_tls_version);
    }
  }

  std::string note(std::string request) {
    const std::lock_guard lock(mutex);
    seen.push_back(request);
    return request;
  }

  void accept() {
    for (;;) {
      error_code ec;
      tcp::socket socket{io};
      acceptor.accept(socket, ec);
      if (ec || stop.stop_requested()) return;
      const std::lock_guard lock(mutex);
      ++accepted;
      Running& started = running.emplace_back();
      started.connection = std::make_unique<Connection>(*this, std::move(socket));
      started.thread = std::jthread([connection = started.connection.get()] { connection->run(); });
    }
  }

  ~Impl() {
    stop.request_stop();
    ::shutdown(acceptor.native_handle(), SHUT_RDWR);
    accepter.join();
    for (Running& each : running) each.connection->interrupt();
    for (Running& each : running) each.thread.join();
  }
};

HttpsServer::HttpsServer(ServerOptions options, Script script)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(script))) {}
HttpsServer::~HttpsServer() = default;

std::uint16_t HttpsServer::port() const { return impl_->port; }

int HttpsServer::connections() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->accepted;
}

std::vector<std::string> HttpsServer::requests() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->seen;
}

SilentPort::SilentPort() {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener, raw, size) != 0 || ::listen(listener, 0) != 0 || ::getsockname(listener, raw, &size) != 0) {
    throw std::runtime_error("no free loopback port");
  }
  fds_.push_back(listener);
  port_ = ntohs(address.sin_port);
  // Nobody accepts: the queue of one is soon full, and Linux drops further SYNs.
  for (int i = 0; i < 4; ++i) {
    const int filler = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    ::connect(filler, raw, size);
    fds_.push_back(filler);
  }
}

SilentPort::~SilentPort() {
  for (const int fd : fds_) ::close(fd);
}

}  // namespace dhc::test
