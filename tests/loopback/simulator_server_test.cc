#include <atomic>
#include <chrono>
#include <thread>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "app/clock.h"
#include "simulator/server.h"
#include "tests/support/shell/loopback.h"
#include "tests/support/shell/transport_under_test.h"

using namespace dhc;
using namespace std::chrono_literals;

namespace {

std::unique_ptr<k8s::Transport> transport_to(const sim::Server& server) {
  const k8s::Endpoint endpoint{.tls = true, .host = "127.0.0.1", .port = server.port(), .path_prefix = {}};
  k8s::TlsMaterial material;
  material.ca_pem = server.ca_pem();
  return test::make_transport_under_test(
      endpoint, [material](std::stop_token) -> Result<k8s::TlsMaterial> { return material; }, {});
}

}  // namespace

TEST_CASE("the simulator's server answers over TLS that its own authority vouches for") {
  const sim::Server server(1, read_now);
  const auto transport = transport_to(server);
  const auto answer = transport->send(test::request_for("/version"), {});
  REQUIRE(answer);
  CHECK(answer->status == 200);
  CHECK(answer->body.find("v1.37.1") != std::string::npos);
  const auto again = transport->send(test::request_for("/api/v1/namespaces"), {});
  REQUIRE(again);
  CHECK(again->body.find("kube-system") != std::string::npos);
  CHECK(server.kubeconfig().find("https://127.0.0.1:" + std::to_string(server.port())) != std::string::npos);
}

TEST_CASE("a watch over the simulator's server sees pods start as real time goes by") {
  sim::Server server(1, read_now);
  const auto transport = transport_to(server);
  std::atomic<bool> seen = false;
  std::jthread watcher([&](const std::stop_token& stop) {
    std::string body;
    static_cast<void>(transport->stream(
        test::request_for("/api/v1/pods?watch=true&resourceVersion=0"),
        [&](std::string_view piece) {
          body += piece;
          if (body.find("\"phase\":\"Running\"") != std::string::npos) seen = true;
          return true;
        },
        stop));
  });
  server.with_cluster([](sim::Cluster& cluster, const Now&) {
    cluster.add_node({"node-a", {{"example.com/gpu", 1}}, {}, {}});
    sim::PodShape shape;
    shape.resource = "example.com/gpu";
    cluster.create_pod("default", "p", shape);
  });
  CHECK(test::eventually([&] { return seen.load(); }));
}

TEST_CASE("the simulator's server stops within a second while watches are open and answers are delayed") {
  auto server = std::make_unique<sim::Server>(1, read_now);
  server->with_cluster([](sim::Cluster& cluster, const Now&) {
    cluster.faults().add({.path_contains = "/nodes", .count = -1, .delay = 20s});
  });
  const auto transport = transport_to(*server);
  std::atomic<int> ended = 0;
  std::atomic<bool> streaming = false;
  std::jthread watcher([&] {
    static_cast<void>(transport->stream(test::request_for("/api/v1/namespaces?watch=true&resourceVersion=0"),
                                        [&](std::string_view) {
                                          streaming = true;
                                          return true;
                                        },
                                        {}));
    ++ended;
  });
  std::jthread asker([&] {
    static_cast<void>(transport->send(test::request_for("/api/v1/nodes"), {}));
    ++ended;
  });
  REQUIRE(test::eventually([&] { return streaming.load(); }));
  CHECK(test::time_of([&] { server.reset(); }) < 1000ms);
  CHECK(test::eventually([&] { return ended == 2; }));
}

TEST_CASE("a scripted cut reaches the client as a broken stream") {
  sim::Server server(1, read_now);
  server.with_cluster(
      [](sim::Cluster& cluster, const Now&) { cluster.faults().add({.path_contains = "watch=", .cut_after = 25}); });
  const auto transport = transport_to(server);
  const auto streamed = test::stream(*transport, test::request_for("/api/v1/namespaces?watch=true&resourceVersion=0"));
  CHECK(streamed.body.size() == 25);
  CHECK(test::error_of(streamed.response) == ErrorKind::Unavailable);
}
