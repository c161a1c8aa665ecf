#include "app/admin_server.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <unistd.h>
#include <vector>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <doctest/doctest.h>

#include "app/clock.h"

namespace {
namespace asio = boost::asio;
using asio::ip::tcp;
using dhc::AdminServer;
using dhc::Page;

std::unique_ptr<AdminServer> serve(dhc::PageMaker pages) {
  auto server = AdminServer::start({.host = "127.0.0.1", .port = 0}, std::move(pages));
  REQUIRE(server);
  return std::move(*server);
}

std::unique_ptr<AdminServer> serve_path() {
  return serve([](std::string_view path) { return Page{.status = 200, .body = "path " + std::string(path) + "\n"}; });
}

/// One connection of a client that says exactly what it is told.
class Caller {
 public:
  explicit Caller(const AdminServer& server) {
    const auto& address = server.address();
    const auto port = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
    socket_.connect({asio::ip::make_address("127.0.0.1"), port});
  }
  void say(std::string_view text) {
    boost::system::error_code ignored;
    asio::write(socket_, asio::buffer(text.data(), text.size()), ignored);
  }
  /// What comes next, at most so much; empty: the end.
  std::string some(std::size_t most) {
    std::string text(most, '\0');
    boost::system::error_code end;
    text.resize(socket_.read_some(asio::buffer(text), end));
    return text;
  }
  /// Everything until the server closes.
  std::string rest() {
    std::string all;
    boost::system::error_code end;
    asio::read(socket_, asio::dynamic_buffer(all), end);
    return all;
  }

 private:
  asio::io_context io_;
  tcp::socket socket_{io_};
};

std::string ask(const AdminServer& server, std::string_view text) {
  Caller caller(server);
  caller.say(text);
  return caller.rest();
}
}  // namespace

TEST_CASE("a page is served by its path, without the query, and the connection is closed") {
  const auto server = serve_path();
  const auto answer = ask(*server, "GET /readyz?verbose=1 HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(answer.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(answer.find("Connection: close\r\n") != std::string::npos);
  CHECK(answer.ends_with("\r\n\r\npath /readyz\n"));
}

TEST_CASE("a HEAD request gets the length of the page and not the page") {
  const auto server = serve_path();
  const auto answer = ask(*server, "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(answer.find("Content-Length: 7\r\n") != std::string::npos);
  CHECK(answer.ends_with("\r\n\r\n"));
}

TEST_CASE("whatever is not GET or HEAD is refused") {
  const auto server = serve_path();
  CHECK(ask(*server, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").starts_with("HTTP/1.1 405 "));
  CHECK(ask(*server, "DELETE / HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 405 "));
}

TEST_CASE("what is no HTTP is answered with 400") {
  const auto server = serve_path();
  CHECK(ask(*server, "\x16\x03\x01\x02\r\n\r\n").starts_with("HTTP/1.1 400 "));
}

TEST_CASE("headers beyond 8 KiB are refused while they arrive") {
  const auto server = serve_path();
  CHECK(ask(*server, "GET / HTTP/1.1\r\nX: " + std::string(9000, 'a')).starts_with("HTTP/1.1 431 "));
}

TEST_CASE("two hundred silent clients do not keep the next one from its page") {
  const auto server = serve_path();
  std::vector<std::unique_ptr<Caller>> silent;
  for (int i = 0; i < 200; ++i) {
    silent.push_back(std::make_unique<Caller>(*server));
    silent.back()->say("GET / HT");
  }
  const auto before = dhc::mono_now();
  CHECK(ask(*server, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 200 "));
  CHECK(dhc::mono_now() - before < dhc::Seconds(2));
}

TEST_CASE("a client that never finishes its request is cut off after five seconds") {
  const auto server = serve_path();
  Caller slow(*server);
  slow.say("GET / HTTP/1.1\r\nX: ");
  const auto before = dhc::mono_now();
  CHECK(slow.rest().empty());
  CHECK(dhc::mono_now() - before < dhc::Seconds(8));
}

TEST_CASE("a server stops at once while clients are silent and while one does not take a big page") {
  auto server = serve([](std::string_view) { return Page{.status = 200, .body = std::string(64UL << 20, 'x')}; });
  Caller silent(*server);
  Caller greedy(*server);
  greedy.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto before = dhc::mono_now();
  server.reset();
  CHECK(dhc::mono_now() - before < dhc::Seconds(1));
}

TEST_CASE("what pages share follows their own body, and a HEAD request gets the length of both") {
  const auto server = serve([text = std::make_shared<const std::string>(200'000, 'y')](std::string_view) {
    return Page{.body = std::string(70'000, 'x'), .shared = text};
  });
  const auto answer = ask(*server, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(answer.find("Content-Length: 270000\r\n") != std::string::npos);
  CHECK(answer.ends_with("\r\n\r\n" + std::string(70'000, 'x') + std::string(200'000, 'y')));
  const auto head = ask(*server, "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(head.find("Content-Length: 270000\r\n") != std::string::npos);
  CHECK(head.ends_with("\r\n\r\n"));
}

TEST_CASE("of texts that pages share four are held, and whoever still reads the oldest is cut off") {
  // More than the sockets hold.
  constexpr std::size_t kSize = 32UL << 20U;
  std::vector<std::weak_ptr<const std::string>> made;
  std::mutex mutex;
  auto server = serve([&](std::string_view) {
    const std::lock_guard lock(mutex);
    const auto text = std::make_shared<const std::string>(kSize, static_cast<char>('a' + made.size()));
    made.push_back(text);
    return Page{.body = {}, .shared = text};
  });
  std::vector<std::unique_ptr<Caller>> slow;
  for (int i = 0; i < 6; ++i) {
    slow.push_back(std::make_unique<Caller>(*server));
    slow.back()->say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK(slow.back()->some(10) == "HTTP/1.1 2");
  }
  const auto held = [&] {
    const std::lock_guard lock(mutex);
    return std::ranges::count_if(made, [](const auto& text) { return !text.expired(); });
  };
  const auto before = dhc::mono_now();
  while (held() > 4 && dhc::mono_now() - before < dhc::Seconds(2)) ::usleep(1000);
  CHECK(held() == 4);
  CHECK(slow[0]->rest().size() < kSize);
  CHECK(slow[1]->rest().size() < kSize);
  CHECK(slow[5]->rest().ends_with(std::string(kSize, 'f')));
}

TEST_CASE("who takes a big page slowly gets all of it, and who takes nothing for five seconds is cut off") {
  constexpr std::size_t kSize = 64UL << 20U;
  const auto server = serve([](std::string_view) { return Page{.body = std::string(kSize, 'x')}; });
  Caller slow(*server);
  Caller dead(*server);
  const auto asked = dhc::mono_now();
  for (auto* caller : {&slow, &dead}) caller->say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  std::size_t got = 0;
  while (dhc::mono_now() - asked < dhc::Millis(6500)) {
    got += slow.some(64 * 1024).size();
    ::usleep(10'000);
  }
  got += slow.rest().size();
  CHECK(got > kSize);
  CHECK(dead.rest().size() < kSize);
}

TEST_CASE("an address that is taken is an error that names it") {
  const auto server = serve_path();
  const auto& address = server->address();
  const auto port = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  const auto second = AdminServer::start({.host = "127.0.0.1", .port = port}, [](std::string_view) { return Page{}; });
  REQUIRE_FALSE(second);
  CHECK(second.error().message.find(address) != std::string::npos);
}

TEST_CASE("without a host the server listens on every address of the machine") {
  const auto server = AdminServer::start({.host = "", .port = 0}, [](std::string_view) { return Page{.body = "x"}; });
  REQUIRE(server);
  CHECK(ask(**server, "GET / HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 200 "));
}

TEST_CASE("what is for the loopback is not told to a page that came by another name") {
  const auto server = AdminServer::start(
      {.host = "127.0.0.1", .port = 0}, [](std::string_view) { return Page{.body = "x"}; }, dhc::Audience::Loopback);
  REQUIRE(server);
  for (const char* host : {"localhost:8082", "127.0.0.1", "[::1]:8082"}) {
    CAPTURE(host);
    CHECK(ask(**server, std::string("GET / HTTP/1.1\r\nHost: ") + host + "\r\n\r\n").starts_with("HTTP/1.1 200 "));
  }
  CHECK(ask(**server, "GET / HTTP/1.1\r\nHost: rebound.example.com:8082\r\n\r\n").starts_with("HTTP/1.1 421 "));
  CHECK(ask(**server, "GET / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 421 "));
}

TEST_CASE("a flood of one listener keeps nobody from another's pages") {
  const auto probes = serve_path();
  const auto detail = serve_path();
  std::vector<std::unique_ptr<Caller>> flood;
  for (int i = 0; i < 300; ++i) {
    flood.push_back(std::make_unique<Caller>(*detail));
    if (i % 2 == 0) flood.back()->say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    if (i % 50 != 0) continue;
    const auto before = dhc::mono_now();
    CHECK(ask(*probes, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 200 "));
    CHECK(dhc::mono_now() - before < dhc::Seconds(2));
  }
}
