#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/bind_address.h"
#include "app/stream.h"
#include "base/error.h"

namespace dhc {

/// What a page answers.
struct Page {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};  ///< Beside those that every answer has.
  /// Follows the body: the same text for all who ask meanwhile, however many and slow they are.
  std::shared_ptr<const std::string> shared = {};
};

/// Makes the page of a path (without the query). Called on the server's own thread: it must not wait.
using PageMaker = std::function<Page(std::string_view path)>;

/// Who may ask. Loopback: only with a Host header that names the loopback, so that no page of another name in a browser
/// on this machine can read the answers.
enum class Audience : std::uint8_t { Everybody, Loopback };

/// Server-sent events beside the pages; without a maker there are none.
struct EventStream {
  std::string path = {};
  StreamMaker open = {};
  static constexpr std::size_t kMost = 8;  ///< Streams at once; one more is refused with 503.
};

/// A plain HTTP server for probes, metrics and detail, each on a listener and a thread of its own: a flood of one keeps
/// nobody from the others. GET and HEAD, one request a connection. A client gets 5 s to ask and 5 s for each 64 KiB of
/// its answer, 8 KiB of headers, and at most 64 may be connected (the one that waits longest makes room), so
/// that slow or hostile clients block nobody. Of texts that pages share four are held at once, and whoever still reads
/// the oldest then is cut off. Streams are counted apart, and end with a reader that does not take a piece in 20 s.
class AdminServer {
 public:
  /// Listens and serves on a thread of its own. Unavailable, naming the address, if it cannot listen there.
  [[nodiscard]] static Result<std::unique_ptr<AdminServer>> start(const BindAddress& address, PageMaker pages,
                                                                  Audience audience = Audience::Everybody,
                                                                  EventStream events = {});

  /// Stops at once, whatever clients do.
  ~AdminServer();
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  /// The address that it really listens on, such as `127.0.0.1:41234`.
  [[nodiscard]] const std::string& address() const;

 private:
  struct Impl;
  explicit AdminServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace dhc
