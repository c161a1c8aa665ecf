#include "app/webhook/webhook.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "app/webhook/webhook_secret.h"
#include "tests/support/shell/loopback.h"
#include "tests/support/shell/program.h"

namespace {

using dhc::test::eventually;
using dhc::test::HttpsServer;
using dhc::test::Loopback;

const std::string kKey = "a key of sixteen or more bytes";

dhc::News news_of(const std::string& id) {
  return {.id = id, .type = "io.device-health.test", .subject = "Pod/ml/p", .at = {}, .data = "{}"};
}

std::vector<dhc::News> one_of(const std::string& id) { return {news_of(id)}; }

std::string answer_of(const std::string& status) { return "HTTP/1.1 " + status + "\r\nContent-Length: 0\r\n\r\n"; }

/// Answers with these, one after the other, then with the last one for ever.
HttpsServer::Script in_turn(std::vector<std::string> answers) {
  auto next = std::make_shared<std::atomic<std::size_t>>(0);
  return [answers = std::move(answers), next](dhc::test::ServerConnection& connection) {
    while (!connection.read_request().empty()) {
      if (!connection.send(answer_of(answers[std::min(next->fetch_add(1), answers.size() - 1)]))) return;
    }
  };
}

/// What a webhook says of itself, and what it logs.
struct Hearer {
  std::mutex mutex;
  std::string ends;
  std::vector<std::string> problems;
  std::string lines;
  std::atomic<bool> leads = true;
  dhc::Log log{dhc::LogFormat::Text, dhc::LogLevel::Debug, [this](std::string_view line) {
                 const std::lock_guard lock(mutex);
                 lines.append(line).append("\n");
               }};

  dhc::WebhookCalls calls() {
    return {.ended =
                [this](dhc::WebhookEnd end) {
                  const std::lock_guard lock(mutex);
                  ends += (ends.empty() ? "" : " ") + std::string(to_string(end));
                },
            .problem =
                [this](const std::string& words) {
                  const std::lock_guard lock(mutex);
                  problems.push_back(words);
                },
            .admit = [this](dhc::k8s::Request&) -> dhc::Status {
              if (leads) return {};
              return dhc::fail(dhc::ErrorKind::Cancelled, "another leads");
            }};
  }
  std::string ended() {
    const std::lock_guard lock(mutex);
    return ends;
  }
  std::string problem() {
    const std::lock_guard lock(mutex);
    return problems.empty() ? std::string() : problems.back();
  }
  std::string all() {
    const std::lock_guard lock(mutex);
    std::string text = lines;
    for (const auto& words : problems) text += words + "\n";
    return text;
  }
};

dhc::WebhookRules rules_for(const Loopback& loopback, const dhc::test::Folder& folder) {
  const auto endpoint = loopback.endpoint();
  return {.url = {.tls = endpoint.tls, .host = endpoint.host, .port = endpoint.port, .target = "/t0ken-in-path?x=1"},
          .secret_file = folder.write("secret", kKey + "\n"),
          .ca_file = folder.write("ca.pem", loopback.material().ca_pem),
          .per_minute = 600,
          .source = "/here"};
}

std::string header_of(const std::string& request, const std::string& name) {
  const auto at = request.find("\r\n" + name + ": ");
  if (at == std::string::npos) return {};
  const auto from = at + name.size() + 4;
  return request.substr(from, request.find("\r\n", from) - from);
}

std::string body_of(const std::string& request) { return request.substr(request.find("\r\n\r\n") + 4); }

bool is_signed(const std::string& request, const std::string& key) {
  return header_of(request, "X-Device-Health-Signature") ==
         dhc::webhook_signature(key, header_of(request, "X-Device-Health-Timestamp"), body_of(request));
}

}  // namespace

TEST_CASE("an event is sent over TLS, signed, and tried again until it is taken, and neither path nor key is logged") {
  const dhc::test::Folder folder;
  Loopback loopback(in_turn({"500 Internal Server Error", "200 OK"}));
  Hearer hearer;
  const auto rules = rules_for(loopback, folder);
  {
    dhc::Webhook webhook("dhc", hearer.calls(), hearer.log);
    webhook.tell(&rules, one_of("first"));
    REQUIRE(eventually([&] { return hearer.ended() == "delivered"; }));
  }
  const auto requests = loopback.server.requests();
  REQUIRE(requests.size() == 2);
  for (const auto& request : requests) {
    CHECK(request.starts_with("POST /t0ken-in-path?x=1 HTTP/1.1\r\n"));
    CHECK(header_of(request, "Content-Type") == "application/cloudevents+json; charset=utf-8");
    CHECK(is_signed(request, kKey));
    CHECK_FALSE(is_signed(request, kKey + "x"));
    CHECK(body_of(request).contains("\"id\":\"first\""));
    CHECK(body_of(request).contains("\"source\":\"/here\""));
  }
  CHECK(body_of(requests[0]) == body_of(requests[1]));
  CHECK_FALSE(hearer.all().contains("t0ken"));
  CHECK_FALSE(hearer.all().contains(kKey));
}

TEST_CASE("a 2xx whose body cannot be read is delivered, once") {
  const std::vector<std::string> answers = {
      "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b\x08",
      "HTTP/1.1 200 OK\r\nContent-Length: 71680\r\n\r\n" + std::string(71680, 'x'),
      "HTTP/1.1 204 No Content\r\nX-Trace: " + std::string(17000, 'y') + "\r\n\r\n"};
  for (const auto& answer : answers) {
    CAPTURE(answer.substr(0, 60));
    const dhc::test::Folder folder;
    Loopback loopback(dhc::test::always(answer));
    Hearer hearer;
    const auto rules = rules_for(loopback, folder);
    dhc::Webhook webhook("dhc", hearer.calls(), hearer.log);
    webhook.tell(&rules, {news_of("first"), news_of("second")});
    CHECK(eventually([&] { return hearer.ended() == "delivered delivered"; }));
    CHECK(loopback.server.requests().size() == 2);
  }
}

TEST_CASE("the signature is HMAC-SHA-256 of timestamp, full stop and body") {
  // printf '%s' '1764105000.{"a":1}' | openssl dgst -sha256 -hmac 'a key of sixteen or more bytes'
  CHECK(dhc::webhook_signature(kKey, "1764105000", R"({"a":1})") ==
        "sha256=3290167855e04fed177bae92397441e905fd29757e0500dee22530bcdd97f840");
}

TEST_CASE("what is refused is not sent again, redirects are not followed, and the next event goes on") {
  const dhc::test::Folder folder;
  Loopback loopback(in_turn({"400 Bad Request", "302 Found\r\nLocation: https://127.0.0.1/elsewhere", "200 OK"}));
  Hearer hearer;
  const auto rules = rules_for(loopback, folder);
  dhc::Webhook webhook("dhc", hearer.calls(), hearer.log);
  webhook.tell(&rules, {news_of("one"), news_of("two"), news_of("three")});
  REQUIRE(eventually([&] { return hearer.ended() == "refused refused delivered"; }));
  CHECK(loopback.server.requests().size() == 3);
  CHECK(hearer.all().contains("it answered 400, and is not asked again"));
  CHECK(hearer.problem().empty());
}

TEST_CASE("a receiver that never answers delays nobody and no end, and the queue drops what it cannot hold") {
  const dhc::test::Folder folder;
  Loopback loopback([](dhc::test::ServerConnection& connection) {
    (void)connection.read_request();
    connection.wait_for_client_to_leave();
  });
  Hearer hearer;
  const auto rules = rules_for(loopback, folder);
  std::optional<dhc::Webhook> webhook;
  webhook.emplace("dhc", hearer.calls(), hearer.log);
  std::vector<dhc::News> news;
  for (std::size_t i = 0; i < dhc::WebhookQueue::kMost + 2; ++i) news.push_back(news_of(std::to_string(i)));
  CHECK(dhc::test::time_of([&] { webhook->tell(&rules, news); }) < std::chrono::milliseconds(1000));
  CHECK(hearer.ended() == "dropped dropped");
  REQUIRE(eventually([&] { return loopback.server.requests().size() == 1; }));
  CHECK(dhc::test::time_of([&] { webhook->tell(&rules, one_of("late")); }) < std::chrono::milliseconds(1000));
  CHECK(dhc::test::time_of([&] { webhook.reset(); }) < std::chrono::milliseconds(1000));
  CHECK(hearer.ended() == "dropped dropped dropped");
}

TEST_CASE("a receiver that is slow, or not there, is waited for, and told once it answers") {
  const dhc::test::Folder folder;
  Loopback loopback([](dhc::test::ServerConnection& connection) {
    (void)connection.read_request();
    connection.pause(std::chrono::milliseconds(300));
    (void)connection.send(answer_of("200 OK"));
  });
  Hearer hearer;
  const auto rules = rules_for(loopback, folder);
  dhc::Webhook webhook("dhc", hearer.calls(), hearer.log);
  webhook.tell(&rules, one_of("one"));
  CHECK(eventually([&] { return hearer.ended() == "delivered"; }));
}

TEST_CASE("a receiver whose certificate nobody vouches for is told nothing") {
  const dhc::test::Folder folder;
  Loopback loopback(in_turn({"200 OK"}));
  const Loopback other(in_turn({"200 OK"}));
  Hearer hearer;
  auto rules = rules_for(loopback, folder);
  rules.ca_file = folder.write("other.pem", other.material().ca_pem);
  dhc::Webhook webhook("dhc", hearer.calls(), hearer.log);
  webhook.tell(&rules, one_of("one"));
  REQUIRE(eventually([&] { return hearer.problem().starts_with("spec.webhook: 127.0.0.1 port "); }));
  CHECK(loopback.server.requests().empty());
  CHECK(hearer.ended().empty());
}

TEST_CASE(
    "without its key nothing is sent, which is said at once, with place and remedy, and over once the key is there") {
  const dhc::test::Folder folder;
  Loopback loopback(in_turn({"200 OK"}));
  Hearer hearer;
  auto rules = rules_for(loopback, folder);
  rules.secret_file = folder.path() + "/later";
  dhc::Webhook webhook("dhc", hearer.calls(), hearer.log);
  SUBCASE("it is missing") {
    webhook.tell(&rules, {});
    REQUIRE(eventually([&] { return hearer.problem().starts_with("spec.webhook.secretFile: "); }));
    CHECK(hearer.problem().contains(rules.secret_file));
    CHECK(hearer.problem().contains("mount a Secret there"));
  }
  SUBCASE("it is too short") {
    (void)folder.write("later", "s3cret");
    webhook.tell(&rules, {});
    REQUIRE(eventually([&] { return hearer.problem().contains("fewer than 16 bytes"); }));
    CHECK_FALSE(hearer.all().contains("s3cret"));
  }
  SUBCASE("the certificate authority is missing") {
    (void)folder.write("later", kKey);
    rules.ca_file = folder.path() + "/no-ca";
    webhook.tell(&rules, {});
    REQUIRE(eventually([&] { return hearer.problem().starts_with("spec.webhook.caFile: "); }));
    rules.ca_file = folder.write("ca2.pem", loopback.material().ca_pem);
  }
  CHECK(loopback.server.requests().empty());
  (void)folder.write("later", kKey);
  rules.source = "/anew";
  webhook.tell(&rules, one_of("one"));
  REQUIRE(eventually([&] { return hearer.ended() == "delivered"; }));
  CHECK(hearer.problem().empty());
}

TEST_CASE("a key that is exchanged is used from the next request on") {
  const dhc::test::Folder folder;
  Loopback loopback(in_turn({"200 OK"}));
  Hearer hearer;
  const auto rules = rules_for(loopback, folder);
  dhc::Webhook webhook("dhc", hearer.calls(), hearer.log);
  webhook.tell(&rules, one_of("one"));
  REQUIRE(eventually([&] { return hearer.ended() == "delivered"; }));
  (void)folder.write("secret", "another key of enough bytes");
  webhook.tell(&rules, one_of("two"));
  REQUIRE(eventually([&] { return hearer.ended() == "delivered delivered"; }));
  CHECK(is_signed(loopback.server.requests()[0], kKey));
  CHECK(is_signed(loopback.server.requests()[1], "another key of enough bytes"));
}

TEST_CASE("who does not lead sends nothing, and what waits is forgotten when nobody is to be told any more") {
  const dhc::test::Folder folder;
  Loopback loopback(in_turn({"200 OK"}));
  Hearer hearer;
  hearer.leads = false;
  const auto rules = rules_for(loopback, folder);
  dhc::Webhook webhook("dhc", hearer.calls(), hearer.log);
  webhook.tell(&rules, one_of("one"));
  webhook.tell(nullptr, {});
  hearer.leads = true;
  webhook.tell(&rules, one_of("two"));
  REQUIRE(eventually([&] { return hearer.ended() == "delivered"; }));
  REQUIRE(loopback.server.requests().size() == 1);
  CHECK(body_of(loopback.server.requests()[0]).contains("\"id\":\"two\""));
}

TEST_CASE("another URL gets what waits") {
  const dhc::test::Folder folder;
  Loopback silent([](dhc::test::ServerConnection& connection) {
    (void)connection.read_request();
    (void)connection.send(answer_of("503 Service Unavailable"));
  });
  Loopback loopback(in_turn({"200 OK"}));
  Hearer hearer;
  auto rules = rules_for(silent, folder);
  dhc::Webhook webhook("dhc", hearer.calls(), hearer.log);
  webhook.tell(&rules, one_of("one"));
  REQUIRE(eventually([&] { return silent.server.requests().size() == 1; }));
  rules = rules_for(loopback, folder);
  webhook.tell(&rules, {});
  REQUIRE(eventually([&] { return hearer.ended() == "delivered"; }));
  CHECK(body_of(loopback.server.requests()[0]).contains("\"id\":\"one\""));
}
