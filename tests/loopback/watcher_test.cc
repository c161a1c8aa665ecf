#include "k8s-client/watcher.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/core/fixtures.h"
#include "tests/support/core/watch_driver.h"
#include "tests/support/shell/loopback.h"
#include "tests/support/shell/no_credentials.h"

using namespace dhc;
using namespace dhc::k8s;
using namespace dhc::test;

namespace {

Now read_both() {
  return {.mono = MonoTime(std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now().time_since_epoch())),
          .wall = {}};
}

std::string chunk(const std::string& text) { return fmt::format("{:x}\r\n{}\r\n", text.size(), text); }

constexpr auto kStreamHead = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

std::string refusal_with(int code, const std::string& headers, const std::string& body) {
  return fmt::format("HTTP/1.1 {} No\r\n{}Content-Length: {}\r\n\r\n{}", code, headers, body.size(), body);
}

std::string slice_line(const std::string& type, const std::string& name, int version) {
  return fmt::format(
      R"({{"type":"{}","object":{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{{"name":"{}",)"
      R"("uid":"u-{}","resourceVersion":"{}"}},"spec":{{"driver":"d","pool":{{"name":"p","generation":1,)"
      R"("resourceSliceCount":1}},"nodeName":"n","devices":[]}}}}}})"
      "\n",
      type, name, name, version);
}

std::string end_marker(int version) {
  return fmt::format(
      R"({{"type":"BOOKMARK","object":{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":)"
      R"({{"resourceVersion":"{}","annotations":{{"k8s.io/initial-events-end":"true"}}}}}}}})"
      "\n",
      version);
}

/// A server, and a watcher of slices with what it delivered.
struct Watched {
  explicit Watched(HttpsServer::Script script, ServerOptions options = {}, WireFormat wire = WireFormat::Json)
      : loopback(std::move(script), std::move(options)) {
    watcher = std::make_unique<Watcher>(
        WatchTarget{.kind = Kind::ResourceSlice, .ns = {}, .name = {}, .kept = {}, .wire = wire},
        std::make_shared<Client>(std::move(loopback.transport), std::make_shared<NoCredentials>(), "test"),
        WatcherCalls{.clock = read_both,
                     .deliver =
                         [this](const Delivery& delivery) {
                           const std::lock_guard lock(mutex);
                           if (const auto word = word_of(delivery); !word.empty()) words.push_back(word);
                         },
                     .show =
                         [this](const WatchStatus& status) {
                           const std::lock_guard lock(mutex);
                           states.push_back(status.state);
                         }});
  }

  std::vector<std::string> delivered() {
    const std::lock_guard lock(mutex);
    return words;
  }
  bool asked(std::string_view what) {
    return std::ranges::any_of(loopback.server.requests(),
                               [&](const std::string& request) { return request.find(what) != std::string::npos; });
  }
  Millis time_to_stop() {
    return time_of([this] { watcher.reset(); });
  }

  Loopback loopback;
  std::mutex mutex;
  std::vector<std::string> words;
  std::vector<WatchState> states;
  std::unique_ptr<Watcher> watcher;
};

using Words = std::vector<std::string>;
/// The promise is 100 ms; the rest is for a busy machine.
constexpr Millis kSoon = Millis(600);

}  // namespace

TEST_CASE("a watcher delivers the WatchList whole, then what happens, and goes on after a cut from where it was") {
  Watched watched([](ServerConnection& c) {
    auto request = c.read_request();
    if (request.find("limit=1") != std::string::npos) {
      c.send(ok(R"({"kind":"ResourceSliceList","apiVersion":"resource.k8s.io/v1","metadata":{"resourceVersion":"9"},)"
                R"("items":[]})"));
      request = c.read_request();
    }
    if (request.empty()) return;
    c.send(kStreamHead);
    if (request.find("sendInitialEvents=true") != std::string::npos) {
      c.send(chunk(slice_line("ADDED", "a", 5) + end_marker(7)));
      c.send(chunk(slice_line("ADDED", "b", 8) + slice_line("MODIFIED", "cut", 9).substr(0, 40)));
      return c.cut();
    }
    c.send(chunk(slice_line("MODIFIED", "cut", 9)));
    c.wait_for_client_to_leave();
  });
  CHECK(eventually([&] { return watched.delivered() == Words{"Snapshot(a)", "+b", "+cut"}; }));
  CHECK(watched.asked("resourceslices?limit=1 "));
  CHECK(watched.asked("resourceVersion=8&"));
  const auto status = watched.watcher->status();
  CHECK(status.state == WatchState::Watching);
  CHECK(status.relists == 0);
  CHECK(status.json_bytes > 500);
  CHECK(status.endings[static_cast<std::size_t>(WatchEnding::Unavailable)] == 1);
  CHECK(watched.time_to_stop() < kSoon);
  CHECK(watched.states.back() == WatchState::Stopped);
  CHECK(std::ranges::count(watched.states, WatchState::BackingOff) >= 1);
}

TEST_CASE("a server without WatchList is listed by pages, then watched") {
  const auto list = read_fixture("recordings/list/slices.json");
  Watched watched([&](ServerConnection& c) {
    while (true) {
      const auto request = c.read_request();
      if (request.empty()) return;
      if (request.find("sendInitialEvents") != std::string::npos) {
        c.send(refusal_with(422, "", R"({"kind":"Status","reason":"Invalid","code":422})"));
      } else if (request.find("limit=500") != std::string::npos) {
        c.send(ok(list));
      } else {
        c.send(kStreamHead);
        c.send(chunk(slice_line("ADDED", "new", 9999)));
        return c.wait_for_client_to_leave();
      }
    }
  });
  CHECK(eventually([&] { return watched.delivered().size() == 2; }));
  CHECK(watched.delivered().front().starts_with("Snapshot("));
  CHECK(watched.delivered().back() == "+new");
}

TEST_CASE("a kind that is not served is asked for in every version, delivered once, and waited for") {
  Watched watched(always(refusal_with(404, "", "404 page not found\n")));
  CHECK(eventually([&] { return watched.delivered() == Words{"NotServed"}; }));
  CHECK(watched.asked("/apis/resource.k8s.io/v1/resourceslices"));
  CHECK(watched.asked("/apis/resource.k8s.io/v1beta2/resourceslices"));
  CHECK(watched.asked("/apis/resource.k8s.io/v1beta1/resourceslices"));
  CHECK(eventually([&] { return watched.watcher->status().state == WatchState::NotServed; }));
  CHECK(watched.time_to_stop() < kSoon);
}

TEST_CASE("a watcher stops at once while it waits as Retry-After says") {
  Watched watched(always(refusal_with(429, "Retry-After: 200\r\n", "Too many requests, please try again later.\n")));
  CHECK(eventually([&] { return watched.watcher->status().state == WatchState::BackingOff; }));
  CHECK(watched.time_to_stop() < kSoon);
  CHECK(watched.loopback.server.requests().size() == 1);
}

TEST_CASE("a watcher stops at once while the server says nothing") {
  Watched hands([](ServerConnection& c) { c.wait_for_client_to_leave(); }, {.shakes_hands = false});
  CHECK(eventually([&] { return hands.loopback.server.connections() == 1; }));
  CHECK(hands.time_to_stop() < kSoon);

  Watched head([](ServerConnection& c) {
    c.read_request();
    c.wait_for_client_to_leave();
  });
  CHECK(eventually([&] { return head.loopback.server.requests().size() == 1; }));
  CHECK(head.time_to_stop() < kSoon);

  Watched quiet([](ServerConnection& c) {
    c.read_request();
    c.send(kStreamHead);
    c.send(chunk(end_marker(7)));
    c.wait_for_client_to_leave();
  });
  CHECK(eventually([&] { return quiet.delivered() == Words{"Snapshot()"}; }));
  CHECK(quiet.time_to_stop() < kSoon);
}

TEST_CASE("a watcher stops at once in the middle of a flood") {
  Watched watched([](ServerConnection& c) {
    c.read_request();
    c.send(kStreamHead);
    c.send(chunk(end_marker(7)));
    const auto line = slice_line("MODIFIED", "a", 8);
    std::string many;
    for (int i = 0; i < 100; ++i) many += line;
    while (c.send(chunk(many))) {
    }
  });
  CHECK(eventually([&] { return watched.delivered().size() > 1000; }));
  CHECK(watched.time_to_stop() < kSoon);
}

TEST_CASE("a doubt about what was delivered ends the stream and lists afresh, and the watch goes on") {
  std::atomic<int> lists = 0;
  Watched watched([&](ServerConnection& c) {
    const auto request = c.read_request();
    if (request.find("sendInitialEvents=true") == std::string::npos) return;
    c.send(kStreamHead);
    c.send(chunk(slice_line("ADDED", ++lists == 1 ? "a" : "b", 5) + end_marker(7)));
    c.wait_for_client_to_leave();
  });
  CHECK(eventually([&] { return watched.delivered() == Words{"Snapshot(a)"}; }));
  watched.watcher->doubt("a read of pod default/web-1");
  CHECK(eventually([&] { return watched.delivered().back() == "Snapshot(b)"; }));
  const auto status = watched.watcher->status();
  CHECK(status.went_back == 1);
  CHECK(status.went_back_how == "a read of pod default/web-1");
  CHECK(eventually([&] { return watched.watcher->status().state == WatchState::Watching; }));
  CHECK(watched.time_to_stop() < kSoon);
}

TEST_CASE("a list that is under way is not ended by the wish for one") {
  std::atomic<int> lists = 0;
  std::atomic<bool> answers = false;
  const auto list = read_fixture("recordings/list/slices.json");
  Watched watched([&](ServerConnection& c) {
    while (true) {
      const auto request = c.read_request();
      if (request.empty()) return;
      if (request.find("sendInitialEvents") != std::string::npos) {
        c.send(refusal_with(422, "", R"({"kind":"Status","reason":"Invalid","code":422})"));
      } else if (request.find("limit=500") != std::string::npos) {
        ++lists;
        (void)eventually([&] { return answers.load(); });
        c.send(ok(list));
      } else {
        c.send(kStreamHead);
        return c.wait_for_client_to_leave();
      }
    }
  });
  REQUIRE(eventually([&] { return lists == 1; }));
  SUBCASE("by a reload") { watched.watcher->list_afresh(); }
  SUBCASE("by a doubt") { watched.watcher->doubt("a read of pod default/web-1"); }
  answers = true;
  CHECK(eventually([&] { return watched.watcher->status().state == WatchState::Watching; }));
  CHECK(watched.delivered().size() == 1);
  CHECK(lists == 1);
  watched.watcher.reset();
  CHECK(std::ranges::count(watched.states, WatchState::BackingOff) == 0);
}

TEST_CASE("after an ERROR event of 410 the stream is left and the kind listed again") {
  std::atomic<int> lists = 0;
  Watched watched([&](ServerConnection& c) {
    const auto request = c.read_request();
    if (request.empty()) return;
    c.send(kStreamHead);
    c.send(chunk(slice_line("ADDED", fmt::format("list-{}", ++lists), 5) + end_marker(7)));
    if (lists == 1) c.send(chunk(read_fixture("recordings/status/watch-410.json")));
    c.wait_for_client_to_leave();
  });
  CHECK(eventually([&] { return watched.delivered() == Words{"Snapshot(list-1)", "Snapshot(list-2)"}; }));
  CHECK(watched.asked("&resourceVersion=7"));
  CHECK(watched.watcher->status().relists == 1);
}

TEST_CASE("a watcher that asks for protobuf delivers from its frames what it delivers from lines") {
  const auto serve = [](const std::string& type, const std::string& body) {
    return [type, body](ServerConnection& c) {
      if (c.read_request().empty()) return;
      c.send("HTTP/1.1 200 OK\r\nContent-Type: " + type + "\r\nTransfer-Encoding: chunked\r\n\r\n");
      for (std::size_t at = 0; at < body.size(); at += 700) c.send(chunk(body.substr(at, 700)));
      c.wait_for_client_to_leave();
    };
  };
  Watched in_json(serve("application/json", read_fixture("recordings/watch/slices-driver-dies.ndjson")));
  Watched in_protobuf(
      serve("application/vnd.kubernetes.protobuf;stream=watch", read_fixture("protobuf/watch/slices-driver-dies.pb")),
      {}, WireFormat::Protobuf);
  CHECK(eventually([&] { return in_json.delivered().size() > 1 && in_protobuf.delivered() == in_json.delivered(); }));
  CHECK(in_protobuf.asked("Accept: application/vnd.kubernetes.protobuf,application/json\r\n"));
  CHECK(in_protobuf.watcher->status().protobuf_bytes > 500);
  CHECK(in_protobuf.watcher->status().json_bytes == 0);
  CHECK(in_json.watcher->status().protobuf_bytes == 0);
}

TEST_CASE("a watcher whose protobuf is refused with 406 goes on in JSON") {
  Watched watched(
      [](ServerConnection& c) {
        while (true) {
          const auto request = c.read_request();
          if (request.empty()) return;
          if (request.find("protobuf") != std::string::npos) {
            c.send(refusal_with(406, "", "only application/json"));
          } else {
            c.send(kStreamHead);
            c.send(chunk(slice_line("ADDED", "a", 5) + end_marker(7)));
            return c.wait_for_client_to_leave();
          }
        }
      },
      {}, WireFormat::Protobuf);
  CHECK(eventually([&] { return watched.delivered() == Words{"Snapshot(a)"}; }));
  CHECK(watched.asked("Accept: application/json\r\n"));
  CHECK(watched.watcher->status().endings[static_cast<std::size_t>(WatchEnding::OtherFormat)] == 1);
}
