#include "app/access_desk.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "app/access_check.h"
#include "tests/support/core/fixtures.h"
#include "tests/support/shell/loopback.h"
#include "tests/support/shell/no_credentials.h"

using namespace dhc;
using namespace dhc::test;

namespace {

/// A server that knows one kind of orders and forbids to delete them, and to patch the status of nodes.
void answer(ServerConnection& connection) {
  while (true) {
    const auto request = connection.read_request();
    if (request.empty()) return;
    if (request.contains("GET /apis/repair.example.com/v1 ")) {
      connection.send(ok(R"({"resources":[{"name":"orders","kind":"Order","namespaced":true}]})"));
    } else if (request.contains("selfsubjectaccessreviews")) {
      const bool refused = request.contains(R"("verb":"delete")") || request.contains(R"("subresource":"status")");
      connection.send(ok(refused ? R"({"status":{"allowed":false}})" : R"({"status":{"allowed":true}})"));
    } else {
      connection.send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    }
  }
}

std::shared_ptr<Policy> handing_over(const std::string& kind) {
  auto policy = std::make_shared<Policy>();
  policy->mode_cap = Mode::Enforce;
  DevicePolicy one;
  one.mode = Mode::Enforce;
  one.hand_over = HandOverRules{};
  one.hand_over->condition = HandOverCondition{.type = "NeedsRepair"};
  one.hand_over->resource = HandOverResource{
      .api_version = "repair.example.com/v1", .kind = kind, .ns = "repair", .name = "{node}-{incident}", .text = {}};
  policy->policies.push_back(std::move(one));
  return policy;
}

}  // namespace

TEST_CASE("a check of permissions that a slow server does not let end says what is left") {
  Loopback loopback(answer);
  const k8s::Client client(std::move(loopback.transport), std::make_shared<NoCredentials>(), "test");
  std::string said;
  Log log(LogFormat::Text, LogLevel::Warn, [&](std::string_view line) { said += line; });
  const std::vector<NeededVerb> verbs = {{"", "pods", "", "get", "watch", "", ""}};
  SUBCASE("in time") {
    CHECK(check_access(verbs, client, log, {}));
    CHECK(said.empty());
  }
  SUBCASE("not in time") {
    CHECK_FALSE(check_access(verbs, client, log, {}, Millis(0)));
    CHECK(said.contains("permissions are not all checked"));
    CHECK(said.contains("pods"));
  }
}

TEST_CASE("what a configuration's hand-over may not do is said when it comes into force, and once") {
  Loopback loopback(answer);
  const k8s::Client client(std::move(loopback.transport), std::make_shared<NoCredentials>(), "test");
  std::mutex mutex;
  std::vector<std::string> lines;
  Log log(LogFormat::Text, LogLevel::Debug, [&](std::string_view line) {
    const std::lock_guard lock(mutex);
    lines.emplace_back(line);
  });
  const auto said = [&](std::string_view words) {
    const std::lock_guard lock(mutex);
    return std::ranges::count_if(lines, [&](const std::string& line) { return line.contains(words); });
  };
  AccessDesk desk(client, Mode::Enforce, {}, log);
  const auto policy = handing_over("Order");
  desk.look_at(policy);
  REQUIRE(eventually(
      [&] { return said("forbidden: orders.repair.example.com delete (needed by: handOver.resource)") == 1; }));
  CHECK(said("forbidden: nodes/status patch (needed by: handOver.nodeCondition)") == 1);
  CHECK(said("forbidden") == 2);

  auto paused = std::make_shared<Policy>(*policy);
  paused->pause_until = "2031-01-01T00:00:00Z";
  desk.look_at(paused);
  REQUIRE(eventually([&] { return said("asks for no other permissions") == 1; }));
  CHECK(said("forbidden") == 2);
  auto other = handing_over("Ticket");
  desk.look_at(other);
  REQUIRE(eventually([&] { return said("kind Ticket of repair.example.com/v1 is not served") == 1; }));
  CHECK(said("orders.repair.example.com") == 1);

  auto ticket = std::make_shared<Policy>(*other);
  ticket->pause_until = "2031-01-01T00:00:00Z";
  desk.look_at(ticket);
  REQUIRE(eventually([&] { return said("asks for no other permissions") == 2; }));
  CHECK(said("kind Ticket of repair.example.com/v1 is not served") == 1);
}

TEST_CASE("an access desk ends at once while the server says nothing") {
  Loopback loopback([](ServerConnection& connection) {
    (void)connection.read_request();
    (void)connection.read_request();  // until it is closed
  });
  const k8s::Client client(std::move(loopback.transport), std::make_shared<NoCredentials>(), "test");
  Log log(LogFormat::Text, LogLevel::Error, [](std::string_view) {});
  CHECK(time_of([&] {
          const AccessDesk desk(client, Mode::Enforce, needed_verbs(Mode::Enforce, true, nullptr, "", false), log);
        }) < std::chrono::seconds(1));
}
