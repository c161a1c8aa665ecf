#include "k8s-client/protocol/http_reader.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/optional.hpp>
#include <fmt/format.h>

#include "k8s-client/protocol/ascii.h"

namespace dhc::k8s {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;

constexpr std::size_t kPendingBytes = 32 * 1024;
constexpr int kInterimResponses = 8;

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

constexpr std::string_view kBadStatus = "its status is not one of 100 to 599";

/// Of a first line; 0 if it is none.
unsigned status_in_line(std::string_view line) {
  constexpr std::string_view kBegin = "HTTP/1.";
  constexpr std::size_t kStatusAt = 9;
  if (!line.starts_with(kBegin) || line.size() < kStatusAt + 4 || line[kStatusAt - 1] != ' ') return 0;
  unsigned status = 0;
  for (const char c : line.substr(kStatusAt, 3)) {
    if (c < '0' || c > '9') return 0;
    status = status * 10 + static_cast<unsigned>(c - '0');
  }
  return status;
}

bool is_status(unsigned status) { return status >= 100 && status <= 599; }

/// Hands the body to a function and counts it: Beast 1.74 does not hold its own body limit against a Content-Length.
struct SinkBody {
  struct value_type {
    HttpReader::Body* sink = nullptr;
    std::uint64_t left = 0;
    const http::response_header<>* head = nullptr;
    std::string_view refused;  ///< Why the header does not let us read the body.
  };

  class reader {
   public:
    template <bool IsRequest, class Fields>
    reader(http::header<IsRequest, Fields>& /*head*/, value_type& value) : value_(value) {}

    void init(const boost::optional<std::uint64_t>& length, beast::error_code& ec) {
      ec = {};
      const http::response_header<>& head = *value_.head;
      if (!is_status(head.result_int())) {
        value_.refused = kBadStatus;
      } else if (const auto encoding = head[http::field::content_encoding];
                 !encoding.empty() && to_lower_ascii(view(encoding)) != "identity") {
        value_.refused = "it has a Content-Encoding that was not asked for";
      } else if (const auto transfer = head[http::field::transfer_encoding];
                 !transfer.empty() && to_lower_ascii(view(transfer)) != "chunked") {
        value_.refused = "its Transfer-Encoding is not chunked";
      }
      if (!value_.refused.empty()) {
        ec = http::error::bad_value;
      } else if (length && *length > value_.left) {
        ec = http::error::body_limit;
      }
    }

    template <class Buffers>
    std::size_t put(const Buffers& buffers, beast::error_code& ec) {
      ec = {};
      std::size_t taken = 0;
      for (auto it = boost::asio::buffer_sequence_begin(buffers); it != boost::asio::buffer_sequence_end(buffers);
           ++it) {
        const boost::asio::const_buffer piece = *it;
        if (piece.size() > value_.left) {
          ec = http::error::body_limit;
          return taken;
        }
        value_.left -= piece.size();
        if (piece.size() > 0 && !(*value_.sink)({static_cast<const char*>(piece.data()), piece.size()})) {
          ec = boost::system::errc::make_error_code(boost::system::errc::operation_canceled);
          return taken;
        }
        taken += piece.size();
      }
      return taken;
    }

    void finish(beast::error_code& ec) { ec = {}; }

   private:
    value_type& value_;
  };
};

using Parser = http::response_parser<SinkBody>;

}  // namespace

struct HttpReader::Impl {
  HttpLimits limits;
  Body body;
  std::optional<Parser> parser;
  std::string pending;  ///< Bytes that the parser wants to see again with more behind them.
  int interim = 0;
  bool surplus = false;
  bool answered = false;  ///< The status is all that is wanted, and it is known.

  Impl(HttpLimits l, Body b) : limits(l), body(std::move(b)) { start(); }

  void start() {
    parser.emplace();
    parser->eager(true);
    parser->header_limit(static_cast<std::uint32_t>(
        std::min<std::size_t>(limits.header_bytes, std::numeric_limits<std::uint32_t>::max())));
    // "No limit" as boost::none is broken with Content-Length in 1.74; SinkBody counts.
    parser->body_limit(std::numeric_limits<std::uint64_t>::max());
    parser->get().body().sink = &body;
    parser->get().body().head = &parser->get().base();
    parser->get().body().left = limits.body_bytes;
    parser->get().result(0U);  // until the first line has been read
  }

  /// Whether no more is wanted: not after a 1xx, which is no answer.
  bool is_enough() const {
    const auto status = parser->get().result_int();
    return limits.status_only && is_status(status) && status / 100 != 1;
  }

  std::size_t pending_limit() const { return std::max(kPendingBytes, limits.header_bytes + 1); }

  std::unexpected<Error> why(beast::error_code ec) const {
    if (ec == http::error::header_limit) return header_too_long();
    if (ec == http::error::body_limit) {
      return fail(ErrorKind::Malformed, fmt::format("response body is over {} bytes", limits.body_bytes));
    }
    if (ec == http::error::partial_message) {
      return fail(ErrorKind::Unavailable, "connection ended inside the response");
    }
    if (ec == boost::system::errc::operation_canceled) return fail(ErrorKind::Cancelled, "reading was stopped");
    const std::string_view refused = parser->get().body().refused;
    return fail(ErrorKind::Malformed,
                refused.empty() ? "bad HTTP response: " + ec.message() : fmt::format("response refused: {}", refused));
  }

  std::unexpected<Error> header_too_long() const {
    return fail(ErrorKind::Malformed, fmt::format("response header is over {} bytes", limits.header_bytes));
  }

  bool interim_done() const { return parser->is_done() && parser->get().result_int() / 100 == 1; }

  /// A 1xx response ends a message for Beast: the final one needs a new parser.
  Status skip_interim() {
    if (parser->get().result_int() == 101 || ++interim > kInterimResponses) {
      return fail(ErrorKind::Malformed, "bad HTTP response: too many 1xx, or 101, which was not asked for");
    }
    start();
    return {};
  }

  /// Parses what it can and leaves the rest in `in`.
  Status parse(std::string_view& in) {
    while (!in.empty() && !parser->is_done()) {
      beast::error_code ec;
      const auto response = in;
      const std::size_t taken = parser->put(boost::asio::const_buffer(in.data(), in.size()), ec);
      in.remove_prefix(taken);
      if (ec == http::error::need_more) break;
      // A first line that came in pieces is read with all that follows it, which may never end.
      if (ec == http::error::header_limit && parser->get().result_int() == 0)
        parser->get().result(status_in_line(response));
      answered = is_enough() && (ec || parser->is_header_done());
      if (answered) return {};
      if (ec) return why(ec);
      if (parser->is_header_done() && !is_status(parser->get().result_int())) {
        return fail(ErrorKind::Malformed, fmt::format("response refused: {}", kBadStatus));
      }
      if (interim_done()) {
        if (auto skipped = skip_interim(); !skipped) return skipped;
      } else if (taken == 0) {
        break;
      }
    }
    return {};
  }
};

HttpReader::HttpReader(HttpLimits limits, Body body) : impl_(std::make_unique<Impl>(limits, std::move(body))) {}
HttpReader::~HttpReader() = default;

Status HttpReader::feed(std::string_view bytes) {
  Impl& s = *impl_;
  const bool again = !s.pending.empty();
  if (again) s.pending.append(bytes);
  std::string_view in = again ? std::string_view(s.pending) : bytes;
  if (auto parsed = s.parse(in); !parsed) return parsed;
  if (s.answered && !s.parser->is_done()) {
    s.pending.clear();
    return {};
  }
  if (s.parser->is_done()) {
    s.surplus = s.surplus || !in.empty();
    s.pending.clear();
    return {};
  }
  if (in.size() > s.pending_limit()) {
    if (!s.parser->is_header_done()) return s.header_too_long();
    return fail(ErrorKind::Malformed, "bad HTTP response: endless chunk-size line or trailer");
  }
  if (again) {
    s.pending.erase(0, s.pending.size() - in.size());
  } else {
    s.pending.assign(in);
  }
  return {};
}

Status HttpReader::end_of_stream() {
  Impl& s = *impl_;
  if (s.answered || s.parser->is_done()) return {};
  // put_eof asserts if no byte came before.
  if (!s.parser->got_some()) {
    return fail(ErrorKind::Unavailable, "connection ended before a response");
  }
  beast::error_code ec;
  s.parser->put_eof(ec);
  if (ec) return s.why(ec);
  return {};
}

bool HttpReader::header_done() const { return impl_->parser->is_header_done(); }
bool HttpReader::done() const { return impl_->answered || impl_->parser->is_done(); }
bool HttpReader::reusable() const { return impl_->parser->is_done() && !impl_->surplus && impl_->parser->keep_alive(); }
unsigned HttpReader::status() const { return header_done() || impl_->answered ? impl_->parser->get().result_int() : 0; }

Response HttpReader::head() const {
  Response out{.status = status(), .headers = {}, .body = {}};
  for (const auto& field : impl_->parser->get()) {
    out.headers.push_back(
        {.name = to_lower_ascii(view(field.name_string())), .value = std::string(view(field.value()))});
  }
  return out;
}

}  // namespace dhc::k8s
