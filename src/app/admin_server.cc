#include "app/admin_server.h"

#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>

#include "app/stream_session.h"

namespace dhc {

namespace {
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::seconds kRequestPatience{5};
constexpr std::size_t kPieceBytes = 64UL * 1024;
constexpr std::size_t kMostShared = 4;
constexpr std::size_t kMostConnections = 64;
constexpr std::uint32_t kHeaderBytes = 8 * 1024;

/// One of the streams, for as long as it lives.
class Counted {
 public:
  explicit Counted(std::size_t& count) : count_(count) { ++count_; }
  ~Counted() { --count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::size_t& count_;
};

class Session;
using PageText = std::shared_ptr<const std::string>;

/// What all connections of one server share.
struct Serving {
  PageMaker pages;
  Audience audience = Audience::Everybody;
  EventStream events;
  std::size_t streams = 0;                                 // that are open
  std::list<std::weak_ptr<Session>> sessions = {};         // oldest first
  std::list<std::weak_ptr<const std::string>> texts = {};  // that answers under way share, oldest first

  void note_shared(const PageText& text);
};

/// One connection, from the request to the end of its answer, or to the stream that it becomes. Lives as long as an
/// operation of its own is under way.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, Serving& serving, std::function<void()> done)
      : stream_(std::move(socket)), serving_(serving), done_(std::move(done)) {}
  ~Session() { done_(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void start() {
    parser_.header_limit(kHeaderBytes);
    stream_.expires_after(kRequestPatience);
    http::async_read_header(stream_, buffer_, parser_,
                            [self = shared_from_this()](error_code ec, std::size_t) { self->asked(ec); });
  }
  void close() { stream_.close(); }
  [[nodiscard]] bool reads(const PageText& text) const { return shared_ == text; }

 private:
  void asked(error_code ec) {
    if (ec == http::error::header_limit || ec == http::error::buffer_overflow) {
      return answer({.status = 431, .body = "the request's headers are larger than 8 KiB\n"});
    }
    const bool left = ec == http::error::end_of_stream || ec == http::error::partial_message;
    if (ec && !left && ec.category() == http::make_error_code(http::error::bad_method).category()) {
      return answer({.status = 400, .body = "this is no HTTP request\n"});
    }
    if (ec) return;
    const auto method = parser_.get().method();
    if (method != http::verb::get && method != http::verb::head) {
      return answer({.status = 405, .body = "only GET and HEAD\n"});
    }
    if (serving_.audience == Audience::Loopback && !names_loopback()) {
      return answer({.status = 421, .body = "served to 127.0.0.1, [::1] and localhost only\n"});
    }
    const auto target = parser_.get().target();
    const auto path = std::string_view(target.data(), target.size()).substr(0, target.find('?'));
    const bool is_stream = serving_.events.open && path == serving_.events.path && method == http::verb::get;
    is_stream ? stream() : answer(serving_.pages(path));
  }

  bool names_loopback() const { return is_loopback_host(header("Host")); }

  std::string_view header(std::string_view name) const {
    const auto value = parser_.get()[beast::string_view(name.data(), name.size())];
    return {value.data(), value.size()};
  }

  void stream() {
    // A page of another origin cannot read a stream, but could hold all of them.
    // **Source:** W3C, "Fetch Metadata Request Headers"; every current browser sends it.
    const auto site = header("Sec-Fetch-Site");
    if (!site.empty() && site != "same-origin" && site != "none") {
      return answer({.status = 403, .body = "a stream is for pages of this origin\n"});
    }
    if (serving_.streams >= EventStream::kMost) {
      return answer({.status = 503, .body = fmt::format("{} streams are open already\n", EventStream::kMost)});
    }
    const auto counted = std::make_shared<Counted>(serving_.streams);
    if (!StreamSession::start(stream_, serving_.events.open, header("Last-Event-ID"), counted)) {
      answer({.status = 503, .body = "the controller is ending\n"});
    }
  }

  void answer(Page page) {
    body_ = std::move(page.body);
    shared_ = std::move(page.shared);
    response_.version(11);
    response_.result(page.status);
    response_.set(http::field::content_type, page.content_type);
    response_.set(http::field::cache_control, "no-store");
    response_.set("X-Content-Type-Options", "nosniff");
    for (const auto& [name, value] : page.headers) response_.set(name, value);
    response_.keep_alive(false);
    response_.content_length(body_.size() + (shared_ ? shared_->size() : 0));
    if (parser_.get().method() == http::verb::head) {
      body_.clear();
      shared_.reset();
    }
    if (shared_) serving_.note_shared(shared_);
    left_ = body_;
    stream_.expires_after(kRequestPatience);
    http::async_write(stream_, response_, [self = shared_from_this()](error_code ec, std::size_t) {
      if (!ec) self->write_piece();
    });
  }

  /// The body, and then what is shared.
  void write_piece() {
    if (left_.empty() && shared_ && !std::exchange(is_last_, true)) left_ = *shared_;
    if (left_.empty()) {
      error_code ignored;
      stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
      return;
    }
    const auto piece = left_.substr(0, kPieceBytes);
    left_.remove_prefix(piece.size());
    stream_.expires_after(kRequestPatience);
    asio::async_write(stream_, asio::buffer(piece.data(), piece.size()),
                      [self = shared_from_this()](error_code ec, std::size_t) {
                        if (!ec) self->write_piece();
                      });
  }

  beast::tcp_stream stream_;
  Serving& serving_;
  std::function<void()> done_;
  beast::flat_buffer buffer_{2UL * kHeaderBytes};
  http::request_parser<http::empty_body> parser_;
  http::response<http::empty_body> response_;
  std::string body_;
  PageText shared_;
  std::string_view left_;  // of the body, or of what is shared
  bool is_last_ = false;   // of what is shared
};

/// Each text may be large, and a slow client keeps its own alive: those of the oldest make room.
void Serving::note_shared(const PageText& text) {
  std::erase_if(texts, [&](const auto& one) { return one.expired() || one.lock() == text; });
  texts.push_back(text);
  if (texts.size() <= kMostShared) return;
  const auto oldest = texts.front().lock();
  std::vector<std::shared_ptr<Session>> readers;  // one that ends leaves the list
  for (const auto& one : sessions) {
    auto session = one.lock();
    if (oldest && session && session->reads(oldest)) readers.push_back(std::move(session));
  }
  for (const auto& reader : readers) reader->close();
  texts.pop_front();
}
}  // namespace

struct AdminServer::Impl {
  // Before `io`: what is still pending when `io` goes down is destroyed by it, and sessions leave their list then.
  Serving serving;
  std::string address;
  asio::io_context io{1};
  tcp::acceptor acceptor{io};
  asio::steady_timer pause{io};
  std::thread thread;

  error_code listen(const BindAddress& where);
  void accept();
  void add(tcp::socket socket);
};

error_code AdminServer::Impl::listen(const BindAddress& where) {
  error_code ec;
  auto ip = asio::ip::make_address(where.host.empty() ? "::" : where.host, ec);
  if (ec) return ec;
  const auto open = [&](const asio::ip::address& at) {
    const tcp::endpoint endpoint(at, where.port);
    acceptor.open(endpoint.protocol(), ec);
    if (!ec) acceptor.set_option(tcp::acceptor::reuse_address(true), ec);
    if (!ec && where.host.empty() && at.is_v6()) acceptor.set_option(asio::ip::v6_only(false), ec);
    if (!ec) acceptor.bind(endpoint, ec);
    if (!ec) acceptor.listen(asio::socket_base::max_listen_connections, ec);
  };
  open(ip);
  if (ec && where.host.empty() && ec != asio::error::address_in_use) {  // a machine without IPv6
    error_code ignored;
    acceptor.close(ignored);
    ec = {};
    open(asio::ip::address_v4::any());
  }
  if (ec) return ec;
  const auto bound = acceptor.local_endpoint(ec);
  const auto host = bound.address().to_string();
  address = fmt::format("{}:{}", bound.address().is_v6() ? fmt::format("[{}]", host) : host, bound.port());
  return ec;
}

void AdminServer::Impl::accept() {
  acceptor.async_accept([this](error_code ec, tcp::socket socket) {
    if (ec == asio::error::operation_aborted) return;
    if (!ec) {
      add(std::move(socket));
      return accept();
    }
    // Out of descriptors, say: try again soon instead of spinning.
    pause.expires_after(std::chrono::milliseconds(100));
    pause.async_wait([this](error_code stopped) {
      if (!stopped) accept();
    });
  });
}

void AdminServer::Impl::add(tcp::socket socket) {
  if (serving.sessions.size() >= kMostConnections) {
    if (const auto oldest = serving.sessions.front().lock()) oldest->close();
    serving.sessions.pop_front();
  }
  const auto forget = [this] { serving.sessions.remove_if([](const auto& session) { return session.expired(); }); };
  const auto session = std::make_shared<Session>(std::move(socket), serving, forget);
  serving.sessions.push_back(session);
  session->start();
}

AdminServer::AdminServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<AdminServer>> AdminServer::start(const BindAddress& address, PageMaker pages, Audience audience,
                                                        EventStream events) {
  auto impl = std::make_unique<Impl>();
  impl->serving = {.pages = std::move(pages), .audience = audience, .events = std::move(events)};
  if (const auto ec = impl->listen(address)) {
    return fail(ErrorKind::Unavailable,
                fmt::format("cannot listen on {}:{}: {}", address.host, address.port, ec.message()));
  }
  impl->accept();
  impl->thread = std::thread([io = &impl->io] { io->run(); });
  return std::unique_ptr<AdminServer>(new AdminServer(std::move(impl)));
}

AdminServer::~AdminServer() {
  impl_->io.stop();
  impl_->thread.join();
}

const std::string& AdminServer::address() const { return impl_->address; }

}  // namespace dhc
