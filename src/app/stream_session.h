#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/tcp_stream.hpp>

#include "app/stream.h"

namespace dhc {

/// One stream of server-sent events, from its response's header to the end of the reader, of the client or of the
/// server. One piece is under way at a time: a slow client has one, never a queue.
class StreamSession : public std::enable_shared_from_this<StreamSession> {
 public:
  /// Takes the connection over. False, and the connection is as it was, if no reader is taken now. `held` is kept as
  /// long as the stream.
  [[nodiscard]] static bool start(boost::beast::tcp_stream& stream, const StreamMaker& open, std::string_view place,
                                  std::shared_ptr<void> held);

  StreamSession(boost::beast::tcp_stream::executor_type executor, std::shared_ptr<void> held);

 private:
  void run(boost::beast::tcp_stream& stream, StreamReader reader);
  void watch_client();
  void wait();
  void pump();
  void write();
  void end();

  std::shared_ptr<void> held_;
  boost::beast::tcp_stream stream_;
  boost::asio::steady_timer timer_;
  std::optional<StreamReader> reader_;  // none: it has ended
  std::string text_;                    // under way
  bool writing_ = false;
  bool last_ = false;
  std::array<char, 64> ignored_{};
};

}  // namespace dhc
