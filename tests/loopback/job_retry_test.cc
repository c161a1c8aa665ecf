// What the API server's answers, and its silence, make of the writes on Jobs.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "reconcilers/job_retry/execute.h"
#include "tests/support/shell/loopback.h"
#include "tests/support/shell/no_credentials.h"

namespace {
using dhc::ErrorKind;
using dhc::test::error_of;
using dhc::test::Loopback;

/// Says nothing about who we are.
/// The real transport, which waits less for an answer.
class Impatient final : public dhc::k8s::Transport {
 public:
  explicit Impatient(std::unique_ptr<dhc::k8s::Transport> inner) : inner_(std::move(inner)) {}
  dhc::Result<dhc::k8s::Response> send(const dhc::k8s::Request& request, std::stop_token stop) override {
    auto hurried = request;
    hurried.timeouts.total = dhc::Millis(200);
    return inner_->send(hurried, std::move(stop));
  }
  dhc::Result<dhc::k8s::Response> stream(const dhc::k8s::Request& request, const dhc::k8s::BodySink& sink,
                                         std::stop_token stop) override {
    return inner_->stream(request, sink, std::move(stop));
  }

 private:
  std::unique_ptr<dhc::k8s::Transport> inner_;
};

std::string answer(int code, const std::string& body) {
  return fmt::format("HTTP/1.1 {} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", code,
                     body.size(), body);
}

std::string refusal(int code, const std::string& reason, const std::string& message = "no") {
  return answer(code, fmt::format(R"({{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"{}",)"
                                  R"("message":"{}","code":{}}})",
                                  reason, message, code));
}

/// Answers each method in its own way.
dhc::test::HttpsServer::Script by_method(std::string to_get, std::string to_post) {
  return [to_get = std::move(to_get), to_post = std::move(to_post)](dhc::test::ServerConnection& connection) {
    for (auto request = connection.read_request(); !request.empty(); request = connection.read_request()) {
      if (!connection.send(request.starts_with("GET") ? to_get : to_post)) return;
    }
  };
}

dhc::k8s::Client client_of(Loopback& loopback) {
  return {std::shared_ptr<dhc::k8s::Transport>(std::move(loopback.transport)),
          std::make_shared<dhc::test::NoCredentials>(), "test"};
}

dhc::job_retry::PatchJob credit(bool by_test = false) {
  return {.ns = "a",
          .name = "train",
          .uid = "u-1",
          .resource_version = "7",
          .limit_before = 0,
          .limit = 1,
          .notes = {{.annotation = "device-health.io/retry-credits", .before = {}, .text = "{}"}},
          .has_annotations = true,
          .by_test = by_test,
          .device = "node-a/example.com/gpu/gpu-0"};
}

const dhc::job_retry::RecreateJob kAgain{.ns = "a", .name = "train", .uid = "u-1", .device = "gpu-0"};
constexpr auto kDead = R"({"metadata":{"name":"train","namespace":"a","uid":"u-1"},"spec":{"backoffLimit":0}})";

dhc::Status outcome_of(const std::string& said, bool by_test = false) {
  Loopback loopback(dhc::test::always(said));
  return execute(credit(by_test), client_of(loopback), {});
}
}  // namespace

TEST_CASE("a credit is one PATCH of the Job, and 200 means that it stands") {
  Loopback loopback(dhc::test::always(answer(200, "{}")));
  const auto client = client_of(loopback);
  CHECK(execute(credit(), client, {}).has_value());
  const auto sent = loopback.server.requests();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].starts_with("PATCH /apis/batch/v1/namespaces/a/jobs/train?fieldManager=device-health-controller "));
  CHECK(sent[0].find("application/merge-patch+json") != std::string::npos);
  CHECK(sent[0].find(R"("resourceVersion":"7")") != std::string::npos);
  CHECK(sent[0].find(R"("backoffLimit":1)") != std::string::npos);
}

TEST_CASE("each refusal of a credit has its remedy, and none is repeated by itself") {
  CHECK(error_of(outcome_of(refusal(409, "Conflict"))) == ErrorKind::Conflict);
  CHECK(error_of(outcome_of(refusal(422, "Invalid"))) == ErrorKind::Invalid);
  CHECK(error_of(outcome_of(refusal(404, "NotFound"))) == ErrorKind::NotFound);
  CHECK(error_of(outcome_of(refusal(503, "ServiceUnavailable"))) == ErrorKind::Doubtful);
  const auto forbidden = outcome_of(refusal(403, "Forbidden", "jobs.batch is forbidden"));
  REQUIRE(error_of(forbidden) == ErrorKind::Forbidden);
  CHECK(forbidden.error().message.find("jobs.batch is forbidden") != std::string::npos);

  Loopback loopback(dhc::test::always(refusal(409, "Conflict")));
  const auto client = client_of(loopback);
  CHECK(!execute(credit(), client, {}));
  CHECK(loopback.server.requests().size() == 1);
}

TEST_CASE("a test that fails is 422 and means that the Job has changed") {
  CHECK(error_of(outcome_of(refusal(422, "Invalid"), true)) == ErrorKind::Conflict);
  CHECK(error_of(outcome_of(refusal(409, "Conflict"), true)) == ErrorKind::Conflict);
  CHECK(error_of(outcome_of(refusal(403, "Forbidden"), true)) == ErrorKind::Forbidden);
}

TEST_CASE("a credit without an answer has timed out, and may have happened") {
  Loopback loopback([](dhc::test::ServerConnection& connection) {
    if (!connection.read_request().empty()) connection.wait_for_client_to_leave();
  });
  const dhc::k8s::Client client(std::make_shared<Impatient>(std::move(loopback.transport)),
                                std::make_shared<dhc::test::NoCredentials>(), "test");
  CHECK(error_of(execute(credit(), client, {})) == ErrorKind::TimedOut);
  CHECK(loopback.server.requests().size() == 1);
}

TEST_CASE("a dead Job is read and made once") {
  {
    Loopback loopback(by_method(answer(200, kDead), answer(201, "{}")));
    const auto client = client_of(loopback);
    CHECK(execute(kAgain, client, {}).has_value());
    const auto sent = loopback.server.requests();
    REQUIRE(sent.size() == 2);
    CHECK(sent[0].starts_with("GET /apis/batch/v1/namespaces/a/jobs/train "));
    CHECK(sent[1].starts_with("POST /apis/batch/v1/namespaces/a/jobs?"));
    CHECK(sent[1].find(R"("device-health.io/recreated-from":"u-1")") != std::string::npos);
  }
}

TEST_CASE("a replacement that is there already counts as made, and what a quota's conflict has refused does not") {
  constexpr auto kMade = R"({"metadata":{"labels":{"device-health.io/recreated-from":"u-1"}}})";
  constexpr auto kOther = R"({"metadata":{"labels":{"device-health.io/recreated-from":"u-9"}}})";
  const std::vector<std::tuple<std::string, std::string, bool>> cases = {
      {refusal(409, "AlreadyExists"), answer(200, kMade), true},
      {refusal(409, "Conflict", "Operation cannot be fulfilled on resourcequotas"), refusal(404, "NotFound"), false},
      {refusal(409, "AlreadyExists"), answer(200, kOther), false},
      {refusal(409, "AlreadyExists"), refusal(403, "Forbidden"), false}};
  for (const auto& [said, look, is_made] : cases) {
    Loopback loopback([&](dhc::test::ServerConnection& connection) {
      for (auto request = connection.read_request(); !request.empty(); request = connection.read_request()) {
        const bool reads_dead = request.starts_with("GET /apis/batch/v1/namespaces/a/jobs/train ");
        if (!connection.send(reads_dead ? answer(200, kDead) : request.starts_with("GET ") ? look : said)) return;
      }
    });
    const auto client = client_of(loopback);
    const auto status = execute(kAgain, client, {});
    CHECK(status.has_value() == is_made);
    if (!is_made) CHECK(error_of(status) == ErrorKind::Conflict);
    CHECK(loopback.server.requests().size() == 3);
  }
}

TEST_CASE("a Job that may not be read, is gone, or is another one by now is not made") {
  constexpr auto kOther = R"({"metadata":{"name":"train","namespace":"a","uid":"u-2"},"spec":{}})";
  const std::vector<std::pair<std::string, ErrorKind>> cases = {
      {refusal(403, "Forbidden"), ErrorKind::Forbidden},
      {refusal(404, "NotFound"), ErrorKind::NotFound},
      {answer(200, kOther), ErrorKind::Conflict},
      {answer(200, "{"), ErrorKind::Malformed},
  };
  for (const auto& [said, kind] : cases) {
    Loopback loopback(by_method(said, answer(201, "{}")));
    const auto client = client_of(loopback);
    CHECK(error_of(execute(kAgain, client, {})) == kind);
    CHECK(loopback.server.requests().size() == 1);
  }
}

TEST_CASE("a Job that may be read and not made is an error that says so") {
  Loopback loopback(by_method(answer(200, kDead), refusal(403, "Forbidden")));
  const auto client = client_of(loopback);
  CHECK(error_of(execute(kAgain, client, {})) == ErrorKind::Forbidden);
}
