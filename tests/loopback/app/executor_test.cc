#include "app/executor.h"

#include <atomic>
#include <mutex>

#include <doctest/doctest.h>

#include "tests/support/shell/loopback.h"
#include "tests/support/shell/no_credentials.h"

namespace {
using dhc::Executor;
using dhc::test::Loopback;

/// Says nothing about who we are.
dhc::k8s::Client client_of(Loopback& loopback) {
  return {std::shared_ptr<dhc::k8s::Transport>(std::move(loopback.transport)),
          std::make_shared<dhc::test::NoCredentials>(), "test"};
}

dhc::eviction::EvictPod eviction_of(const std::string& name) {
  dhc::eviction::EvictPod action;
  action.ns = "a";
  action.name = name;
  action.uid = "u-" + name;
  return action;
}

dhc::notice::EmitEvent event_of(const std::string& name) {
  dhc::notice::EmitEvent action;
  action.regarding = {.kind = "Pod", .ns = "a", .name = "p", .uid = "u"};
  action.name = name;
  return action;
}

dhc::job_retry::PatchJob credit_of(const std::string& name) {
  dhc::job_retry::PatchJob action;
  action.ns = "a";
  action.name = name;
  action.uid = "u-" + name;
  action.resource_version = "1";
  return action;
}

dhc::notice::ApplyCondition condition_of(const std::string& name) {
  dhc::notice::ApplyCondition action;
  action.ns = "a";
  action.name = name;
  action.uid = "u-" + name;
  return action;
}

/// Keeps what was reported.
struct Reports {
  std::mutex mutex;
  std::vector<dhc::Outcome> outcomes;
  Executor::Report taker() {
    return [this](Executor::Done done) {
      const std::lock_guard lock(mutex);
      outcomes.push_back(std::move(done.outcome));
    };
  }
  std::size_t count() {
    const std::lock_guard lock(mutex);
    return outcomes.size();
  }
};

/// What the server says of the pod that `eviction_of` names: it stands. Anything else is created.
std::string answer_to(const std::string& request) {
  if (!request.starts_with("GET ")) return "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}";
  const auto name = request.substr(request.rfind('/', request.find(' ', 4)) + 1,
                                   request.find(' ', 4) - request.rfind('/', request.find(' ', 4)) - 1);
  const auto body = R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":")" + name +
                    R"(","namespace":"a","uid":"u-)" + name + R"(","resourceVersion":"1"}})";
  return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

/// Counts what is asked, and answers it as created once `answer` says so.
void answer_late(dhc::test::ServerConnection& connection, std::atomic<int>& requests, const std::atomic<bool>& answer) {
  while (!connection.read_request().empty()) {
    ++requests;
    (void)dhc::test::eventually([&] { return answer.load(); });
    if (!connection.send("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}")) return;
  }
}

/// Counts what is asked.
void answer_never(dhc::test::ServerConnection& connection, std::atomic<int>& requests) {
  if (!connection.read_request().empty()) ++requests;
  connection.wait_for_client_to_leave();
}

/// Events are never answered, everything else at once.
void hang_events(dhc::test::ServerConnection& connection) {
  for (auto request = connection.read_request(); !request.empty(); request = connection.read_request()) {
    if (request.find("/events") != std::string::npos) return connection.wait_for_client_to_leave();
    if (!connection.send(answer_to(request))) return;
  }
}
}  // namespace

TEST_CASE("an eviction does not wait behind an Event that the server never answers") {
  Loopback loopback(hang_events);
  const auto client = client_of(loopback);
  Reports reports;
  Executor executor(client, "dhc-0", reports.taker());
  for (int i = 0; i < 10; ++i) CHECK(executor.submit(event_of("e" + std::to_string(i)), {}));
  CHECK(executor.submit(eviction_of("p"), {}));
  REQUIRE(dhc::test::eventually([&] { return reports.count() == 1; }));
  CHECK(reports.outcomes[0].status.has_value());
  CHECK(std::get<dhc::eviction::EvictPod>(reports.outcomes[0].action).name == "p");
}

TEST_CASE("every action has exactly one outcome, or is given back") {
  Loopback loopback(hang_events);
  const auto client = client_of(loopback);
  Reports reports;
  Executor executor(client, "dhc-0", reports.taker());
  for (int i = 0; i < 50; ++i) CHECK(executor.submit(eviction_of("p" + std::to_string(i)), {}));
  std::size_t given_back = 0;  // on a slow machine some wait for too long
  REQUIRE(dhc::test::eventually([&] {
    given_back += executor.withdraw_old_orders().size();
    return reports.count() + given_back >= 50;
  }));
  CHECK(executor.drain(dhc::Seconds(60)));
  CHECK(reports.count() + given_back == 50);
}

TEST_CASE("an eviction that the fence stops between its fresh read and its request was not sent") {
  std::atomic<int> requests = 0;
  std::atomic<bool> open = true;
  Loopback loopback([&](dhc::test::ServerConnection& connection) {
    for (auto request = connection.read_request(); !request.empty(); request = connection.read_request()) {
      ++requests;
      open = false;
      if (!connection.send(answer_to(request))) return;
    }
  });
  const auto client = client_of(loopback).admitted_by([&](dhc::k8s::Request&) -> dhc::Status {
    if (!open) return dhc::fail(dhc::ErrorKind::Cancelled, "closed");
    return {};
  });
  Reports reports;
  Executor executor(client, "dhc-0", reports.taker());
  CHECK(executor.submit(eviction_of("a"), {}));
  REQUIRE(dhc::test::eventually([&] { return reports.count() == 1; }));
  CHECK(requests == 1);
  CHECK(dhc::test::error_of(reports.outcomes[0].status) == dhc::ErrorKind::Cancelled);
}

TEST_CASE("a read of an owner says what it found, and one whose API does not answer holds up no eviction") {
  Loopback loopback([](dhc::test::ServerConnection& connection) {
    for (auto request = connection.read_request(); !request.empty(); request = connection.read_request()) {
      if (request.starts_with("GET /apis/silent")) return connection.wait_for_client_to_leave();
      std::string body = R"({"metadata":{"uid":"u","annotations":{"device-health.io/opt-out":"true"}}})";
      if (request.starts_with("GET /apis/ray.io/v1 ")) {
        body = R"({"resources":[{"name":"rayclusters","kind":"RayCluster","namespaced":true}]})";
      }
      const auto answer =
          "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
          "\r\n\r\n" + body;
      const bool is_owner = request.starts_with("GET /apis/ray.io");
      if (!connection.send(is_owner ? answer : answer_to(request))) return;
    }
  });
  const auto client = client_of(loopback);
  Reports reports;
  Executor executor(client, "dhc-0", reports.taker());
  CHECK(executor.submit(dhc::owners::ReadOwner{"a", {"silent.example.com/v1", "Kind", "x", "u"}, {}}, {}));
  CHECK(executor.submit(dhc::owners::ReadOwner{"b", {"ray.io/v1", "RayCluster", "big", "u"}, {}}, {}));
  REQUIRE(dhc::test::eventually([&] { return reports.count() == 1; }));
  REQUIRE(reports.outcomes[0].sight);
  CHECK(reports.outcomes[0].sight->state == dhc::OwnerSight::State::Found);
  CHECK(reports.outcomes[0].sight->meta.annotations.size() == 1);
  CHECK(executor.submit(eviction_of("p"), {}));
  REQUIRE(dhc::test::eventually([&] { return reports.count() == 2; }));
  CHECK(reports.outcomes[1].status.has_value());
}

TEST_CASE("an Event that exists already counts as written") {
  Loopback loopback(dhc::test::always(
      "HTTP/1.1 409 Conflict\r\nContent-Type: application/json\r\nContent-Length: 89\r\n\r\n"
      R"({"kind":"Status","apiVersion":"v1","status":"Failure","reason":"AlreadyExists","code":409})"));
  const auto client = client_of(loopback);
  Reports reports;
  Executor executor(client, "dhc-0", reports.taker());
  CHECK(executor.submit(event_of("e"), {}));
  REQUIRE(dhc::test::eventually([&] { return reports.count() == 1; }));
  CHECK(reports.outcomes[0].status.has_value());
}

TEST_CASE("an action that cannot be sent has an outcome, too") {
  Loopback loopback(hang_events);
  const auto client = client_of(loopback);
  Reports reports;
  Executor executor(client, "dhc-0", reports.taker());
  CHECK(executor.submit(eviction_of("a/b"), {}));
  REQUIRE(dhc::test::eventually([&] { return reports.count() == 1; }));
  CHECK(dhc::test::error_of(reports.outcomes[0].status) == dhc::ErrorKind::Invalid);
}

TEST_CASE("a full lane refuses the action and leaves the other lanes open") {
  Loopback loopback(hang_events);
  const auto client = client_of(loopback);
  Reports reports;
  Executor executor(client, "dhc-0", reports.taker());
  int accepted = 0;
  while (accepted < 5000 && executor.submit(event_of("e"), {})) ++accepted;
  CHECK(accepted < 5000);
  CHECK(executor.submit(eviction_of("p"), {}));
}

TEST_CASE("an executor stops within a second while every thread waits for an answer that never comes") {
  Loopback loopback([](dhc::test::ServerConnection& connection) {
    (void)connection.read_request();
    connection.wait_for_client_to_leave();
  });
  const auto client = client_of(loopback);
  Reports reports;
  const auto took = dhc::test::time_of([&] {
    Executor executor(client, "dhc-0", reports.taker());
    for (int i = 0; i < 20; ++i) {
      CHECK(executor.submit(eviction_of("p" + std::to_string(i)), {}));
      CHECK(executor.submit(event_of("e" + std::to_string(i)), {}));
    }
    CHECK(dhc::test::eventually([&] { return loopback.server.requests().size() >= 5; }));
  });
  CHECK(took < std::chrono::seconds(6));
}

TEST_CASE("nothing that the fence refuses reaches the server, and its outcome says that it was not sent") {
  std::atomic<int> requests = 0;
  Loopback loopback([&](dhc::test::ServerConnection& connection) {
    for (auto request = connection.read_request(); !request.empty(); request = connection.read_request()) {
      ++requests;
      if (!connection.send(answer_to(request))) return;
    }
  });
  std::atomic<bool> open = true;
  const auto client = client_of(loopback).admitted_by([&](dhc::k8s::Request&) -> dhc::Status {
    if (!open) return dhc::fail(dhc::ErrorKind::Cancelled, "closed");
    return {};
  });
  Reports reports;
  Executor executor(client, "dhc-0", reports.taker());
  CHECK(executor.submit(eviction_of("a"), {}));
  REQUIRE(dhc::test::eventually([&] { return reports.count() == 1; }));
  open = false;
  CHECK(executor.submit(eviction_of("b"), {}));
  CHECK(executor.submit(event_of("e"), {}));
  REQUIRE(dhc::test::eventually([&] { return reports.count() == 3; }));
  CHECK(requests == 2);  // the fresh read of the first pod, and its eviction
  CHECK(reports.outcomes[0].status.has_value());
  for (const std::size_t i : {1U, 2U}) CHECK(reports.outcomes[i].status.error().kind == dhc::ErrorKind::Cancelled);
}

TEST_CASE("a drain waits for the call under way and begins none of those that were queued") {
  std::atomic<int> requests = 0;
  std::atomic<bool> answer = false;
  Loopback loopback([&](auto& connection) { answer_late(connection, requests, answer); });
  const auto client = client_of(loopback);
  Reports reports;
  Executor executor(client, "dhc-0", reports.taker());
  for (const char* name : {"e1", "e2", "e3"}) CHECK(executor.submit(event_of(name), {}));
  REQUIRE(dhc::test::eventually([&] { return requests == 1; }));
  CHECK_FALSE(executor.drain(dhc::Millis(1)));
  CHECK(reports.count() == 0);
  answer = true;
  CHECK(executor.drain(dhc::Seconds(60)));
  CHECK(reports.count() == 1);
  CHECK(requests == 1);
  CHECK(executor.submit(event_of("e4"), {}));
  CHECK(executor.drain(dhc::Seconds(60)));
  CHECK(requests == 1);
}

TEST_CASE("an order that has waited too long is not begun when a thread is free at last, and is decided anew") {
  std::atomic<int> requests = 0;
  std::atomic<bool> answer = false;
  Loopback loopback([&](auto& connection) { answer_late(connection, requests, answer); });
  const auto client = client_of(loopback);
  Reports reports;
  Executor executor(client, "dhc-0", reports.taker());
  for (const char* name : {"j1", "j2"}) CHECK(executor.submit(credit_of(name), {}));
  REQUIRE(dhc::test::eventually([&] { return requests == 2; }));
  CHECK(executor.submit(credit_of("late"), {}));
  const auto too_late = std::chrono::steady_clock::now() + Executor::kLongestOrder + dhc::Millis(1);
  REQUIRE(dhc::test::eventually([&] { return std::chrono::steady_clock::now() > too_late; }));
  answer = true;
  REQUIRE(dhc::test::eventually([&] { return reports.count() == 2; }));
  CHECK(executor.has_orders());
  std::vector<dhc::Action> old;
  REQUIRE(dhc::test::eventually([&] {
    old = executor.withdraw_old_orders();  // not while a thread has it in its hand
    return !old.empty();
  }));
  REQUIRE(old.size() == 1);
  CHECK(std::get<dhc::job_retry::PatchJob>(old[0]).name == "late");
  CHECK_FALSE(executor.has_orders());
  CHECK(executor.drain(dhc::Seconds(60)));
  CHECK(requests == 2);
}

TEST_CASE("an object by which a node is handed over waits for no condition, and none that waits outlives a brake") {
  std::atomic<int> requests = 0;
  Loopback loopback([&](dhc::test::ServerConnection& connection) { answer_never(connection, requests); });
  const auto client = client_of(loopback);
  Reports reports;
  Executor executor(client, "dhc-0", reports.taker());
  const auto object_of = [](const std::string& name) {
    dhc::hand_over::MakeObject action;
    action.object.slot = action.object.name = name;
    action.object.api_version = "a.b/v1";
    action.object.kind = "Reset";
    action.object.incident = "0123456789abcdef";
    action.text = "{}";
    return action;
  };
  for (int i = 0; i <= Executor::kConditionThreads; ++i) {
    CHECK(executor.submit(condition_of("c" + std::to_string(i)), {}));
  }
  // Its servers may be slow: no more than two at once.
  for (const char* name : {"o1", "o2", "o3"}) CHECK(executor.submit(object_of(name), {}));
  REQUIRE(dhc::test::eventually([&] { return requests == 2 + Executor::kConditionThreads; }));
  const auto orders = executor.withdraw_orders();
  REQUIRE(orders.size() == 1);
  CHECK(std::get<dhc::hand_over::MakeObject>(orders[0]).object.name == "o3");
}

TEST_CASE("a credit that no thread has begun is taken back with the evictions, a condition only with the term") {
  std::atomic<int> requests = 0;
  Loopback loopback([&](dhc::test::ServerConnection& connection) { answer_never(connection, requests); });
  const auto client = client_of(loopback);
  Reports reports;
  Executor executor(client, "dhc-0", reports.taker());
  // As many as there are threads for, so that the next ones wait.
  for (const char* name : {"j1", "j2"}) CHECK(executor.submit(credit_of(name), {}));
  for (int i = 0; i < Executor::kConditionThreads; ++i) {
    CHECK(executor.submit(condition_of("c" + std::to_string(i)), {}));
  }
  REQUIRE(dhc::test::eventually([&] { return requests == 2 + Executor::kConditionThreads; }));
  CHECK(executor.submit(credit_of("j3"), {}));
  CHECK(executor.submit(condition_of("waits"), {}));
  CHECK(executor.has_orders());
  const auto orders = executor.withdraw_orders();
  REQUIRE(orders.size() == 1);
  CHECK(std::get<dhc::job_retry::PatchJob>(orders[0]).name == "j3");
  CHECK_FALSE(executor.has_orders());
  const auto rest = executor.withdraw_all();
  REQUIRE(rest.size() == 1);
  CHECK(std::get<dhc::notice::ApplyCondition>(rest[0]).name == "waits");
}
