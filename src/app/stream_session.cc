#include "app/stream_session.h"

#include <chrono>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

namespace dhc {

namespace {
namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::chrono::seconds kPiecePatience{20};
/// How often a reader is asked although no bell has rung: it may have to say that there is nothing.
constexpr std::chrono::seconds kAsk{1};

constexpr std::string_view kHeader =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nX-Content-Type-Options: "
    "nosniff\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\nX-Accel-Buffering: no\r\nConnection: close\r\n\r\n";
}  // namespace

StreamSession::StreamSession(boost::beast::tcp_stream::executor_type executor, std::shared_ptr<void> held)
    : held_(std::move(held)), stream_(executor), timer_(executor), text_(kHeader) {}

bool StreamSession::start(boost::beast::tcp_stream& stream, const StreamMaker& open, std::string_view place,
                          std::shared_ptr<void> held) {
  const auto executor = stream.get_executor();
  const auto session = std::make_shared<StreamSession>(executor, std::move(held));
  auto reader = open(place, [executor, weak = std::weak_ptr(session)] {
    asio::post(executor, [weak] {
      if (const auto self = weak.lock()) self->pump();
    });
  });
  if (!reader) return false;
  session->run(stream, *std::move(reader));
  return true;
}

void StreamSession::run(boost::beast::tcp_stream& stream, StreamReader reader) {
  stream_.socket() = stream.release_socket();
  reader_ = std::move(reader);
  watch_client();
  write();
  wait();
}

/// It has nothing more to say: whatever comes, or the end, is the end.
void StreamSession::watch_client() {
  stream_.expires_never();
  stream_.async_read_some(asio::buffer(ignored_),
                          [self = shared_from_this()](error_code, std::size_t) { self->end(); });
}

void StreamSession::wait() {
  timer_.expires_after(kAsk);
  timer_.async_wait([self = shared_from_this()](error_code ec) {
    if (ec || !self->reader_) return;
    self->pump();
    self->wait();
  });
}

void StreamSession::pump() {
  if (writing_ || !reader_) return;
  auto piece = (*reader_)();
  last_ = piece.last;
  text_ = std::move(piece.text);
  if (!text_.empty()) return write();
  if (last_) end();
}

void StreamSession::write() {
  writing_ = true;
  stream_.expires_after(kPiecePatience);
  asio::async_write(stream_, asio::buffer(text_), [self = shared_from_this()](error_code ec, std::size_t) {
    self->writing_ = false;
    if (ec || self->last_) return self->end();
    self->pump();
  });
}

void StreamSession::end() {
  reader_.reset();
  timer_.cancel();
  stream_.close();
}

}  // namespace dhc
