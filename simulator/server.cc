#include "simulator/server.h"

#include <atomic>
#include <condition_variable>
#include <fcntl.h>
#include <list>
#include <mutex>
#include <stdexcept>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <fmt/format.h>
#include <openssl/evp.h>

#include "simulator/connection.h"
#include "simulator/server_cert.h"

namespace dhc::sim {

namespace net = boost::asio;
using tcp = net::ip::tcp;

namespace {

/// The longest that the clock's thread sleeps.
constexpr Millis kLongestNap{1000};

std::string base64(const std::string& text) {
  std::string out(4 * ((text.size() + 2) / 3) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  out.resize(static_cast<std::size_t>(size));
  return out;
}

}  // namespace

struct Server::Impl {
  Impl(std::uint64_t seed, Clock clock) : shared(seed, std::move(clock)), identity(make_server_identity()) {
    tls.use_certificate_chain(net::buffer(identity.cert_pem));
    tls.use_private_key(net::buffer(identity.key_pem), net::ssl::context::pem);
    SSL_CTX_set_min_proto_version(tls.native_handle(), TLS1_2_VERSION);
    acceptor.open(tcp::v4());
    acceptor.bind({net::ip::address_v4::loopback(), 0});
    acceptor.listen();
    port = acceptor.local_endpoint().port();
    ticker = std::jthread([this](const std::stop_token& stop) { tick(stop); });
    accepter = std::jthread([this](const std::stop_token& stop) { accept(stop); });
  }

  ~Impl() {
    // First everybody is told, then every blocked call is ended, then the threads are joined.
    ticker.request_stop();
    accepter.request_stop();
    shared.stop();
    ::shutdown(acceptor.native_handle(), SHUT_RDWR);
    accepter.join();
    for (auto& connection : connections) connection->end();
    connections.clear();
    ticker.join();
  }

  void tick(const std::stop_token& stop) {
    std::unique_lock lock(shared.mutex);
    while (!stop.stop_requested()) {
      const auto now = shared.clock();
      const auto before = shared.cluster.store().rv();
      shared.cluster.step(now);
      if (shared.cluster.store().rv() != before) shared.changed.notify_all();
      const auto wake = shared.cluster.next_wake();
      auto nap = wake ? *wake - now.mono : kLongestNap;
      nap = std::clamp(nap, Millis(1), kLongestNap);
      shared.changed.wait_for(lock, stop, nap, [&] { return shared.poked; });
      shared.poked = false;
    }
  }

  void accept(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      boost::system::error_code error;
      tcp::socket socket(io);
      acceptor.accept(socket, error);
      if (stop.stop_requested()) return;
      if (error) {
        // Out of descriptors, or a client that left before it was accepted: neither ends the server.
        std::this_thread::sleep_for(Millis(10));
        continue;
      }
      connections.remove_if([](const auto& connection) { return connection->done(); });
      connections.push_back(std::make_unique<Connection>(std::move(socket), tls, shared));
    }
  }

  SharedCluster shared;
  ServerIdentity identity;
  net::io_context io;
  net::ssl::context tls{net::ssl::context::tls_server};
  tcp::acceptor acceptor{io};
  std::uint16_t port = 0;
  std::list<std::unique_ptr<Connection>> connections;  ///< The accepting thread's alone, until it is joined.
  std::jthread ticker;
  std::jthread accepter;
};

Server::Server(std::uint64_t seed, Clock clock) : impl_(std::make_unique<Impl>(seed, std::move(clock))) {}
Server::~Server() = default;

void Server::with_cluster(const std::function<void(Cluster&, const Now&)>& work) {
  const std::scoped_lock lock(impl_->shared.mutex);
  const auto now = impl_->shared.clock();
  impl_->shared.cluster.step(now);
  work(impl_->shared.cluster, now);
  impl_->shared.cluster.step(now);
  impl_->shared.poked = true;
  impl_->shared.changed.notify_all();
}

std::uint16_t Server::port() const { return impl_->port; }

const std::string& Server::ca_pem() const { return impl_->identity.ca_pem; }

std::string Server::kubeconfig(const std::string& token) const {
  return fmt::format(
      "apiVersion: v1\n"
      "kind: Config\n"
      "clusters:\n"
      "- name: simulator\n"
      "  cluster:\n"
      "    server: https://127.0.0.1:{}\n"
      "    certificate-authority-data: {}\n"
      "users:\n"
      "- name: simulator\n"
      "  user:\n"
      "    token: {}\n"
      "contexts:\n"
      "- name: simulator\n"
      "  context:\n"
      "    cluster: simulator\n"
      "    user: simulator\n"
      "current-context: simulator\n",
      port(), base64(ca_pem()), token);
}

Status Server::write_kubeconfig(const std::string& path, const std::string& token) const {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return fail(ErrorKind::Unavailable, fmt::format("cannot write the kubeconfig {}", path));
  const auto content = kubeconfig(token);
  const auto written = ::write(file, content.data(), content.size());
  const bool closed = ::close(file) == 0;
  if (!closed || written != static_cast<ssize_t>(content.size())) {
    return fail(ErrorKind::Unavailable, fmt::format("cannot write the kubeconfig {}", path));
  }
  return {};
}

}  // namespace dhc::sim
