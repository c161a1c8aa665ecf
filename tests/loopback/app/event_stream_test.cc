#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <doctest/doctest.h>

#include "app/admin_server.h"
#include "app/clock.h"
#include "app/live/live_feed.h"
#include "app/pages.h"

namespace {
namespace asio = boost::asio;
using asio::ip::tcp;
using dhc::AdminServer;
using dhc::LiveFeed;
using Part = dhc::OverviewLog::Part;

/// A feed behind a server, as the application has it.
struct Live {
  dhc::StatusStore store{{dhc::k8s::Kind::Pod}};
  LiveFeed feed{store};
  int first_readers = 0;  // on the server's thread, read after an answer
  std::unique_ptr<AdminServer> server;

  Live() {
    feed.on_first_reader([this] { ++first_readers; });
    auto started = AdminServer::start(
        {.host = "127.0.0.1", .port = 0}, [this](std::string_view path) { return dhc::detail_page(store, path); },
        dhc::Audience::Loopback,
        {.path = std::string(dhc::kEventsPath), .open = [this](std::string_view place, std::function<void()> bell) {
           return feed.open(place, std::move(bell));
         }});
    REQUIRE(started);
    server = std::move(*started);
  }
  void show(const std::string& key, std::string text) { feed.show(Part::Cluster, {{key, std::move(text)}}); }
  void begin() {
    feed.show(Part::Facts, {});
    show("node/a", "1");
  }
};

/// A client of the stream.
class Viewer {
 public:
  explicit Viewer(const AdminServer& server, const std::string& headers = {}, const std::string& path = "/events") {
    const auto& address = server.address();
    const auto port = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
    socket_.connect({asio::ip::make_address("127.0.0.1"), port});
    const std::string text = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n";
    asio::write(socket_, asio::buffer(text));
  }
  /// The status line and headers.
  std::string head() { return until("\r\n\r\n"); }
  /// The next event; empty: the stream has ended.
  std::string event() { return until("\n\n"); }
  /// Until the server closes.
  std::string rest() {
    boost::system::error_code end;
    asio::read(socket_, asio::dynamic_buffer(buffer_), end);
    return std::move(buffer_);
  }

 private:
  std::string until(const char* mark) {
    boost::system::error_code end;
    const auto size = asio::read_until(socket_, asio::dynamic_buffer(buffer_), mark, end);
    if (end) return {};
    auto text = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return text;
  }
  asio::io_context io_;
  tcp::socket socket_{io_};
  std::string buffer_;
};

std::string id_of(const std::string& event) {
  const auto at = event.find("\nid: ") + 5;
  return event.substr(at, event.find('\n', at) - at);
}

template <class Holds>
bool soon(Holds holds) {
  const auto until = dhc::mono_now() + dhc::Seconds(5);
  while (!holds() && dhc::mono_now() < until) std::this_thread::yield();
  return holds();
}
}  // namespace

TEST_CASE("a stream begins with everything, goes on with what changes, and asks the loop for it") {
  Live live;
  CHECK_FALSE(live.feed.wanted());
  Viewer viewer(*live.server);
  const auto head = viewer.head();
  CHECK(head.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(head.find("Content-Type: text/event-stream\r\n") != std::string::npos);
  CHECK(head.find("Access-Control") == std::string::npos);
  CHECK(live.first_readers == 1);
  CHECK(live.feed.wanted());
  live.begin();
  CHECK(viewer.event().find(R"("set":{"node/a":1})") != std::string::npos);
  live.show("node/a", "2");
  const auto change = viewer.event();
  CHECK(change.starts_with("event: change\n"));
  CHECK(change.find(R"("set":{"node/a":2})") != std::string::npos);
  Viewer second(*live.server);
  CHECK(second.head().starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(second.event().starts_with("event: whole\n"));
  CHECK(live.first_readers == 1);
}

TEST_CASE("a reader that comes back with its last event's id gets only what it missed") {
  Live live;
  Viewer stays(*live.server);
  CHECK_FALSE(stays.head().empty());
  live.begin();
  const auto id = id_of(stays.event());
  live.show("node/b", "1");
  CHECK(stays.event().find(R"("gone":["node/a"])") != std::string::npos);
  Viewer back(*live.server, "Last-Event-ID: " + id + "\r\n");
  CHECK_FALSE(back.head().empty());
  const auto missed = back.event();
  CHECK(missed.starts_with("event: change\n"));
  CHECK(missed.find(R"("set":{"node/b":1},"gone":["node/a"])") != std::string::npos);
}

TEST_CASE("a reader that does not read gets what it missed in one piece, and others wait for nothing") {
  Live live;
  Viewer slow(*live.server);
  Viewer quick(*live.server);
  CHECK_FALSE(slow.head().empty());
  CHECK_FALSE(quick.head().empty());
  live.feed.show(Part::Facts, {});
  constexpr int kChanges = 40;
  const std::string filler(1UL << 20, 'x');
  for (int i = 1; i <= kChanges; ++i) {
    live.show("node/a", "\"" + std::to_string(i) + filler + "\"");
    CHECK_FALSE(quick.event().empty());
  }
  int events = 0;
  std::string last;
  while (last.find("\"node/a\":\"40x") == std::string::npos && events < kChanges) {
    last = slow.event();
    ++events;
  }
  CHECK(events < kChanges / 2);  // what fits into the sockets' buffers, and the rest in one
}

TEST_CASE("no more than eight streams are open, pages are served beside them, and one that leaves makes room") {
  Live live;
  std::vector<std::unique_ptr<Viewer>> viewers;
  for (std::size_t i = 0; i < dhc::EventStream::kMost; ++i) {
    viewers.push_back(std::make_unique<Viewer>(*live.server));
    CHECK(viewers.back()->head().starts_with("HTTP/1.1 200 "));
  }
  CHECK(Viewer(*live.server).rest().starts_with("HTTP/1.1 503 "));
  CHECK(Viewer(*live.server, {}, "/healthz").rest().starts_with("HTTP/1.1 200 "));
  viewers.pop_back();
  CHECK(soon([&] { return Viewer(*live.server).head().starts_with("HTTP/1.1 200 "); }));
}

TEST_CASE("a flood of clients that ask for nothing ends no stream") {
  Live live;
  Viewer viewer(*live.server);
  CHECK_FALSE(viewer.head().empty());
  live.begin();
  CHECK_FALSE(viewer.event().empty());
  std::vector<std::unique_ptr<Viewer>> flood;
  for (int i = 0; i < 200; ++i) flood.push_back(std::make_unique<Viewer>(*live.server, "X: y", "/healthz"));
  live.show("node/a", "2");
  CHECK(viewer.event().find(R"("node/a":2)") != std::string::npos);
}

TEST_CASE("a page of another origin, or of another name for this machine, gets no stream") {
  Live live;
  for (const char* site : {"cross-site", "same-site"}) {
    CAPTURE(site);
    CHECK(Viewer(*live.server, std::string("Sec-Fetch-Site: ") + site + "\r\n").rest().starts_with("HTTP/1.1 403 "));
  }
  CHECK(live.first_readers == 0);
  CHECK(Viewer(*live.server, "Sec-Fetch-Site: same-origin\r\n").head().starts_with("HTTP/1.1 200 "));
}

TEST_CASE("when the process ends every stream is told so and ends at once, and no more begin") {
  Live live;
  Viewer viewer(*live.server);
  CHECK_FALSE(viewer.head().empty());
  live.begin();
  CHECK_FALSE(viewer.event().empty());
  const auto before = dhc::mono_now();
  live.feed.close();
  CHECK(viewer.event().starts_with("event: end\n"));
  CHECK(viewer.rest().empty());
  CHECK(dhc::mono_now() - before < dhc::Millis(500));
  CHECK(Viewer(*live.server).rest().starts_with("HTTP/1.1 503 "));
}

TEST_CASE("a server stops at once while streams are open, one of them not read") {
  Live live;
  Viewer viewer(*live.server);
  Viewer greedy(*live.server);
  CHECK_FALSE(viewer.head().empty());
  live.feed.show(Part::Facts, {});
  live.show("node/a", "\"" + std::string(16UL << 20, 'x') + "\"");
  const auto before = dhc::mono_now();
  live.server.reset();
  CHECK(dhc::mono_now() - before < dhc::Seconds(1));
  live.show("node/a", "1");  // rings nobody's bell
}

TEST_CASE("while nothing happens a reader hears that the process lives, and when its loop last turned") {
  Live live;
  Viewer viewer(*live.server);
  CHECK_FALSE(viewer.head().empty());
  live.begin();
  CHECK_FALSE(viewer.event().empty());
  const auto beat = viewer.event();
  CHECK(beat.starts_with("event: beat\n"));
  CHECK(beat.find("\"lastTurnSeconds\":") != std::string::npos);
  CHECK(beat.find("\nid: ") == std::string::npos);
}

TEST_CASE(
    "the live page's files say what they are, may load only from their origin, and stand in no other page's frame") {
  dhc::StatusStore store({});
  for (const auto& [path, type] : {std::pair("/", "text/html; charset=utf-8"),
                                   {"/page.css", "text/css; charset=utf-8"},
                                   {"/page.js", "text/javascript; charset=utf-8"},
                                   {"/model.js", "text/javascript; charset=utf-8"},
                                   {"/parts.js", "text/javascript; charset=utf-8"},
                                   {"/icon.svg", "image/svg+xml"}}) {
    CAPTURE(path);
    const auto page = dhc::detail_page(store, path);
    CHECK(page.status == 200);
    CHECK(page.content_type == type);
    CHECK(page.body.size() > 100);
    REQUIRE_FALSE(page.headers.empty());
    CHECK(page.headers.front().first == "Content-Security-Policy");
    const auto& policy = page.headers.front().second;
    for (const char* rule :
         {"default-src 'none'", "script-src 'self';", "connect-src 'self'", "frame-ancestors 'none'"}) {
      CHECK(policy.find(rule) != std::string::npos);
    }
    CHECK(policy.find("unsafe") == std::string::npos);
  }
  CHECK(dhc::health_page(store, "/").status == 404);
}
