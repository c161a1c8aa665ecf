#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "k8s-client/protocol/request.h"

namespace dhc::k8s {

/// Bounds on one HTTP response.
struct HttpLimits {
  std::size_t header_bytes = 16 * 1024;  ///< Of the header's fields; the first line has 32 KiB of its own at most.
  std::uint64_t body_bytes = UINT64_MAX;
  /// The status alone is wanted: once it is known, nothing that follows is an error, and the rest may stay unread.
  bool status_only = false;
};

/// Turns the bytes of one HTTP/1.x response, cut anywhere, into status, headers and pieces of the body. Holds at most
/// the header and 32 KiB. Skips 1xx responses (at most 8). Used by one thread.
///
/// Errors: Malformed (not HTTP, or beyond a limit, or encoded though we never ask for it), Unavailable (the bytes ended
/// too early), Cancelled (the receiver of the body said stop). After an error the reader is of no further use.
class HttpReader {
 public:
  /// Takes a piece of the body, when `head` is known; false ends reading with Cancelled.
  using Body = std::function<bool(std::string_view)>;

  HttpReader(HttpLimits limits, Body body);
  ~HttpReader();
  HttpReader(const HttpReader&) = delete;
  HttpReader& operator=(const HttpReader&) = delete;

  /// The next bytes from the server.
  [[nodiscard]] Status feed(std::string_view bytes);

  /// The server closed its side cleanly: the end of a body without a length, a cut for all others.
  [[nodiscard]] Status end_of_stream();

  /// The final response's header has been read.
  [[nodiscard]] bool header_done() const;

  /// The whole response has been read, or as much of it as is wanted.
  [[nodiscard]] bool done() const;

  /// Done, and the connection may carry another request: not if bytes follow that nobody asked for.
  [[nodiscard]] bool reusable() const;

  /// 0 until the header is done.
  [[nodiscard]] unsigned status() const;

  /// Status and headers (names in lower case); needs `header_done()`. Of the status alone: those that came with it.
  [[nodiscard]] Response head() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dhc::k8s
