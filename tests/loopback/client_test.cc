#include "k8s-client/client.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

using namespace dhc;
using namespace dhc::k8s;

namespace {

Request get(const std::string& target) {
  Request request;
  request.target = target;
  return request;
}

/// A transport whose other end is a function in this process; keeps what it was given to send.
class InProcessTransport final : public Transport {
 public:
  std::function<Result<Response>(const Request&)> server;
  std::vector<Request> sent;

  Result<Response> send(const Request& request, std::stop_token /*stop*/) override {
    sent.push_back(request);
    return server(request);
  }
  Result<Response> stream(const Request& request, const BodySink& sink, std::stop_token stop) override {
    auto response = send(request, stop);
    if (response && response->status < 300) sink(std::exchange(response->body, {}));
    return response;
  }
};

/// Credentials that count how often the server refused them.
class NumberedToken final : public Credentials {
 public:
  int number = 1;
  Result<std::vector<Header>> headers(std::stop_token /*stop*/) override {
    if (number > 2) return fail(ErrorKind::Invalid, "no more tokens");
    return std::vector<Header>{{"Authorization", "Bearer t" + std::to_string(number)}};
  }
  void unauthorized() override { ++number; }
  Result<TlsMaterial> tls(std::stop_token /*stop*/) override { return TlsMaterial{}; }
  std::string remedy() const override { return "get a new one"; }
};

struct Setup {
  std::shared_ptr<InProcessTransport> transport = std::make_shared<InProcessTransport>();
  std::shared_ptr<NumberedToken> credentials = std::make_shared<NumberedToken>();
  Client client{transport, credentials, "dhc/1"};

  void answer(unsigned status, const std::string& body) {
    transport->server = [=](const Request&) { return Response{status, {}, body}; };
  }
};

}  // namespace

TEST_CASE("the client says who it is and what it reads, and leaves the request's own Accept alone") {
  Setup setup;
  setup.answer(200, "{}");
  const auto answer = setup.client.call(get("/api"), {});
  REQUIRE(answer);
  CHECK(answer->body == "{}");
  CHECK(setup.transport->sent.back().headers ==
        std::vector<Header>{{"Accept", "application/json"}, {"User-Agent", "dhc/1"}, {"Authorization", "Bearer t1"}});
  Request own = get("/api");
  own.headers = {{"aCCept", "x/y"}};
  REQUIRE(setup.client.call(own, {}));
  CHECK(setup.transport->sent.back().headers ==
        std::vector<Header>{{"aCCept", "x/y"}, {"User-Agent", "dhc/1"}, {"Authorization", "Bearer t1"}});
}

TEST_CASE("a 401 makes the next request read the credentials again, and its message carries their remedy") {
  Setup setup;
  setup.answer(
      401,
      R"({"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401})");
  const auto refused = setup.client.call(get("/"), {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::Unauthorized);
  CHECK(refused.error().message.ends_with("; get a new one"));
  CHECK(setup.transport->sent.size() == 1);
  setup.answer(200, "");
  CHECK(setup.client.call(get("/"), {}).has_value());
  CHECK(setup.transport->sent.back().headers.back().value == "Bearer t2");
}

TEST_CASE("an answer that is not 2xx is an error by its remedy, in calls and in streams") {
  Setup setup;
  std::string streamed;
  const auto sink = [&](std::string_view piece) {
    streamed += piece;
    return true;
  };
  setup.answer(
      404,
      R"({"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods \"x\" not found","reason":"NotFound","code":404})");
  CHECK(setup.client.call(get("/"), {}).error().kind == ErrorKind::NotFound);
  CHECK(setup.client.stream(get("/"), sink, {}).error().kind == ErrorKind::NotFound);
  CHECK(streamed.empty());
  setup.answer(302, "");
  CHECK_FALSE(setup.client.call(get("/"), {}).has_value());
  setup.answer(200, "line\n");
  CHECK(setup.client.stream(get("/"), sink, {}).has_value());
  CHECK(streamed == "line\n");
}

TEST_CASE("without credentials nothing is sent, and a transport's error passes through") {
  Setup setup;
  setup.answer(200, "");
  setup.credentials->number = 3;
  CHECK(setup.client.call(get("/"), {}).error() == Error{ErrorKind::Unauthorized, "no more tokens", {}});
  CHECK(setup.client.stream(get("/"), [](std::string_view) { return true; }, {}).error().message == "no more tokens");
  CHECK(setup.transport->sent.empty());
  setup.credentials->number = 1;
  setup.transport->server = [](const Request&) { return Result<Response>(fail(ErrorKind::TimedOut, "slow")); };
  CHECK(setup.client.call(get("/"), {}).error() == Error{ErrorKind::TimedOut, "slow", {}});
}

TEST_CASE("a write whose answer cannot be read may have been carried out, and a read has shown nothing") {
  for (const auto method : {Method::Get, Method::Post, Method::Put, Method::Patch, Method::Delete}) {
    Setup setup;
    setup.transport->server = [](const Request&) {
      return fail(ErrorKind::Malformed, "response body is over 1 bytes");
    };
    auto request = get("/x");
    request.method = method;
    const auto answer = setup.client.call(request, {});
    REQUIRE_FALSE(answer);
    CHECK(answer.error().kind == (method == Method::Get ? ErrorKind::Malformed : ErrorKind::Unavailable));
  }
}
