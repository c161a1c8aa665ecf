#include "k8s-client/protocol/api_error.h"

#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "tests/support/core/fixtures.h"

using namespace dhc;
using namespace dhc::k8s;

namespace {

Error of(unsigned status, std::string body, std::vector<Header> headers = {}) {
  return error_from_response(Response{.status = status, .headers = std::move(headers), .body = std::move(body)});
}

std::string status_with_cause(const std::string& cause) {
  return R"({"kind":"Status","message":"m","details":{"causes":[)" + cause + "]}}";
}

}  // namespace

TEST_CASE("recorded refusals of a real server become kinds by their remedy") {
  using test::read_fixture;
  CHECK(of(404, read_fixture("recordings/status/evict-404.json")).kind == ErrorKind::NotFound);
  CHECK(of(409, read_fixture("recordings/status/evict-409-uid.json")).kind == ErrorKind::Conflict);
  CHECK(of(409, read_fixture("recordings/status/node-patch-409.json")).kind == ErrorKind::Conflict);
  CHECK(of(429, read_fixture("recordings/status/evict-429-pdb.json")).kind == ErrorKind::Blocked);
  CHECK(of(403, read_fixture("recordings/status/forbidden-403.json")).kind == ErrorKind::Forbidden);
  CHECK(of(400, read_fixture("recordings/status/list-400-continue.json")).kind == ErrorKind::Invalid);
  CHECK(of(422, read_fixture("recordings/status/rule-422.json")).kind == ErrorKind::Invalid);
  CHECK(of(401, read_fixture("recordings/status/unauthorized-401.json")).kind == ErrorKind::Unauthorized);
}

TEST_CASE("the API server's own 5xx leaves open whether it refused, another's 5xx whether it arrived") {
  for (const unsigned code : {500U, 501U, 502U, 503U, 507U, 599U}) {
    CAPTURE(code);
    CHECK(of(code, R"({"kind":"Status","message":"etcdserver: request timed out"})").kind == ErrorKind::Doubtful);
    CHECK(of(code, "<html>bad gateway</html>").kind == ErrorKind::Unavailable);
    CHECK(of(code, R"({"kind":"Other"})").kind == ErrorKind::Unavailable);
    CHECK(of(code, "").kind == ErrorKind::Unavailable);
  }
  // A 504 without a Status is a gateway's: nobody knows what became of the request behind it.
  CHECK(of(504, R"({"kind":"Status","message":"request did not complete within requested timeout"})").kind ==
        ErrorKind::Doubtful);
  CHECK(of(504, "<html>gateway timeout</html>").kind == ErrorKind::TimedOut);
  CHECK(of(504, "").kind == ErrorKind::TimedOut);
}

TEST_CASE("what a proxy does not find says nothing about what the cluster has") {
  CHECK(of(404, "<html>no such site</html>").kind == ErrorKind::Unavailable);
  CHECK(of(404, "x", {{"content-type", "text/html; charset=utf-8"}}).kind == ErrorKind::Unavailable);
  CHECK(of(404, R"({"message":"no Route matched with those values"})").kind == ErrorKind::Unavailable);
  // The API server's own, of a path that it does not serve.
  CHECK(of(404, "404 page not found\n", {{"content-type", "text/plain; charset=utf-8"}}).kind == ErrorKind::NotFound);
  CHECK(of(404, "").kind == ErrorKind::NotFound);
}

TEST_CASE("a disruption budget's own sentence, which names it, follows the server's message") {
  const auto error = of(429, test::read_fixture("recordings/status/evict-429-pdb.json"));
  CHECK(error.message ==
        "Cannot evict pod as it would violate the pod's disruption budget. The disruption budget infer needs 2 healthy "
        "pods and has 2 currently");
  CHECK_FALSE(error.retry_after.has_value());
}

TEST_CASE("a 429 of priority and fairness is plain text with a Retry-After") {
  const auto error = of(429, "Too many requests, please try again later.\n", {{"retry-after", "7"}});
  CHECK(error.kind == ErrorKind::TooManyRequests);
  CHECK(error.message == "Too many requests, please try again later.");
  CHECK(error.retry_after == Millis(7000));
}

TEST_CASE("a refusal by disruption budget is Blocked as 403, too") {
  CHECK(of(403, status_with_cause(R"({"reason":"DisruptionBudget","message":"x"})")).kind == ErrorKind::Blocked);
}

TEST_CASE("422 is Conflict only if its single cause is the UID") {
  const std::string uid = R"({"reason":"FieldValueInvalid","message":"field is immutable","field":"metadata.uid"})";
  const std::string other = R"({"reason":"FieldValueInvalid","message":"no","field":"spec.x"})";
  CHECK(of(422, status_with_cause(uid)).kind == ErrorKind::Conflict);
  CHECK(of(422, status_with_cause(uid + "," + other)).kind == ErrorKind::Invalid);
  CHECK(of(422, status_with_cause(other)).kind == ErrorKind::Invalid);
  CHECK(of(422, "{}").kind == ErrorKind::Invalid);
}

TEST_CASE("409 by another field manager is Contested") {
  CHECK(of(409, status_with_cause(R"({"reason":"FieldManagerConflict","message":"x","field":".spec"})")).kind ==
        ErrorKind::Contested);
}

TEST_CASE("410, and 504 of a replica that lags behind our version, ask for a new list") {
  CHECK(of(410, "{}").kind == ErrorKind::Gone);
  CHECK(of(504, status_with_cause(R"({"reason":"ResourceVersionTooLarge","message":"x"})")).kind == ErrorKind::Gone);
  CHECK(of(504, "{}").kind == ErrorKind::TimedOut);
}

TEST_CASE("codes without a rule of their own fall by their class") {
  CHECK(of(500, "").kind == ErrorKind::Unavailable);
  CHECK(of(503, "").kind == ErrorKind::Unavailable);
  CHECK(of(418, "").kind == ErrorKind::Invalid);
  CHECK(of(302, "").kind == ErrorKind::Invalid);
  CHECK(of(0, "").kind == ErrorKind::Unavailable);
  CHECK(of(999, "").kind == ErrorKind::Unavailable);
}

TEST_CASE("bodies that are no Status give a readable message") {
  CHECK(of(502, "<html><body>Bad Gateway</body></html>").message ==
        "HTTP 502 with an HTML page: a proxy, not the API server, answered");
  CHECK(of(502, "x", {{"content-type", "text/html; charset=utf-8"}}).message ==
        "HTTP 502 with an HTML page: a proxy, not the API server, answered");
  CHECK(of(503, "").message == "HTTP 503 without a body");
  CHECK(of(503, " \n").message == "HTTP 503 without a body");
  CHECK(of(500, "{\"kind\":").message == "HTTP 500 with a body that is no Status");
  CHECK(of(500,
           "a\x01"
           "b\xff\n")
            .message == "a b?");
}

TEST_CASE("a Status of wrong types is read as far as it goes") {
  const auto error = of(429, R"({"kind":"Status","message":7,"code":"x","details":{"causes":[1,{"reason":2}]}})");
  CHECK(error.kind == ErrorKind::TooManyRequests);
  CHECK(error.message == "HTTP 429");
  CHECK(of(500, R"({"kind":"Status","details":{"causes":{}}})").kind == ErrorKind::Doubtful);
  CHECK(of(500, R"({"kind":"Status","details":[]})").kind == ErrorKind::Doubtful);
}

TEST_CASE("a long message is cut at 1,024 bytes between characters") {
  const auto ascii = of(500, R"({"kind":"Status","message":")" + std::string(5000, 'a') + "\"}");
  CHECK(ascii.message.size() == 1024);
  std::string wide = "a";
  for (int i = 0; i < 2000; ++i) wide += "\xc3\xa4";
  const auto cut = of(500, R"({"kind":"Status","message":")" + wide + "\"}");
  CHECK(cut.message.size() == 1023);
  CHECK(cut.message == wide.substr(0, 1023));
}

TEST_CASE("the header's wait goes before that of the Status, and both are bounded") {
  const std::string body = R"({"kind":"Status","message":"m","details":{"retryAfterSeconds":9}})";
  CHECK(of(503, body).retry_after == Millis(9000));
  CHECK(of(503, body, {{"retry-after", "3"}}).retry_after == Millis(3000));
  CHECK(of(503, R"({"kind":"Status","details":{"retryAfterSeconds":999999999999}})").retry_after ==
        std::chrono::minutes(5));
  CHECK_FALSE(of(503, R"({"kind":"Status","details":{"retryAfterSeconds":-1}})").retry_after.has_value());
}

TEST_CASE("the Status inside an ERROR event is judged by its code, or by its reason if it has none") {
  CHECK(error_from_status_object(
            R"_({"kind":"Status","message":"too old resource version: 1 (1089)","reason":"Expired","code":410})_") ==
        Error{.kind = ErrorKind::Gone, .message = "too old resource version: 1 (1089)", .retry_after = std::nullopt});
  CHECK(error_from_status_object(R"({"kind":"Status","reason":"Expired"})").kind == ErrorKind::Gone);
  CHECK(error_from_status_object(R"({"kind":"Status","reason":"TooManyRequests"})").kind == ErrorKind::TooManyRequests);
  CHECK(error_from_status_object(R"({"kind":"Status","reason":"Unheard"})").kind == ErrorKind::Doubtful);
  CHECK(error_from_status_object(R"({"kind":"Status","code":500})").kind == ErrorKind::Doubtful);
  CHECK(error_from_status_object(R"({"kind":"Pod"})").kind == ErrorKind::Unavailable);
  CHECK(error_from_status_object("").kind == ErrorKind::Unavailable);
}
