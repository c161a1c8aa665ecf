#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "app/webhook/webhook_queue.h"

using namespace dhc;

namespace {
using WebhookMeans = WebhookAnswer::Means;
const MonoTime kQueueBegan{Seconds(1000)};
}  // namespace

TEST_CASE("events go in their order, and in no minute more than so many") {
  WebhookQueue queue;
  queue.set_rate(30);
  auto now = kQueueBegan;
  for (int i = 0; i < 200; ++i) REQUIRE(queue.push(std::to_string(i), now));
  std::vector<MonoTime> sent;
  for (int i = 0; i < 200; ++i) {
    REQUIRE(queue.due_at());
    now = std::max(now, *queue.due_at());
    if (*queue.due_at() == now && i >= 30) CHECK(queue.due(now - Millis(1)) == nullptr);
    REQUIRE(queue.due(now) != nullptr);
    CHECK(*queue.due(now) == std::to_string(i));
    queue.sent(now);
    sent.push_back(now);
    CHECK(queue.answered({.means = WebhookMeans::Delivered}, now) == WebhookEnd::Delivered);
    if (i % 7 == 0) now += Seconds(1);
  }
  for (std::size_t i = 30; i < sent.size(); ++i) CHECK(sent[i] - sent[i - 30] >= std::chrono::minutes(1));
  CHECK(sent.back() - sent.front() < std::chrono::minutes(8));
}

TEST_CASE("an event that fails waits twice as long each time up to a minute, and its eighth bad answer is its last") {
  WebhookQueue queue;
  queue.set_rate(600);
  REQUIRE(queue.push("first", kQueueBegan));
  REQUIRE(queue.push("second", kQueueBegan));
  auto now = kQueueBegan;
  for (int failure = 1; failure < WebhookQueue::kMostAnswers; ++failure) {
    queue.sent(now);
    CHECK(queue.answered({.means = WebhookMeans::Later}, now) == std::nullopt);
    const Millis wait = std::min<Millis>(Seconds(1 << (failure - 1)), Seconds(60));
    CHECK(queue.due(now + wait - Millis(1)) == nullptr);
    now += wait;
    REQUIRE(queue.due(now) != nullptr);
    CHECK(*queue.due(now) == "first");
  }
  queue.sent(now);
  CHECK(queue.answered({.means = WebhookMeans::Later}, now) == WebhookEnd::GivenUp);
  // It is the receiver that fails: the next one is no reason to hurry.
  CHECK(queue.due(now + Seconds(60) - Millis(1)) == nullptr);
  now += Seconds(60);
  CHECK(*queue.due(now) == "second");
  queue.sent(now);
  CHECK(queue.answered({.means = WebhookMeans::Refused}, now) == WebhookEnd::Refused);
  CHECK(queue.due_at() == std::nullopt);
}

TEST_CASE("a receiver that is not there is tried again for an hour, whatever the number") {
  WebhookQueue queue;
  queue.set_rate(600);
  REQUIRE(queue.push("news", kQueueBegan));
  auto now = kQueueBegan;
  int tries = 0;
  std::optional<WebhookEnd> end;
  while (!end) {
    now = std::max(now, *queue.due_at());
    REQUIRE(now < kQueueBegan + std::chrono::hours(2));
    queue.sent(now);
    end = queue.answered({.means = WebhookMeans::Nothing}, now);
    ++tries;
  }
  CHECK(end == WebhookEnd::GivenUp);
  CHECK(now >= kQueueBegan + WebhookQueue::kLongest);
  CHECK(now < kQueueBegan + WebhookQueue::kLongest + WebhookQueue::kLongestPause);
  CHECK(tries < 70);
}

TEST_CASE("a receiver's Retry-After is kept, and does not make a pause shorter") {
  WebhookQueue queue;
  REQUIRE(queue.push("news", kQueueBegan));
  queue.sent(kQueueBegan);
  CHECK(queue.answered({.means = WebhookMeans::Later, .wait = Seconds(90)}, kQueueBegan) == std::nullopt);
  CHECK(queue.due_at() == kQueueBegan + Seconds(90));
  queue.sent(kQueueBegan + Seconds(90));
  CHECK(queue.answered({.means = WebhookMeans::Later, .wait = Millis(1)}, kQueueBegan + Seconds(90)) == std::nullopt);
  CHECK(queue.due_at() == kQueueBegan + Seconds(92));
}

TEST_CASE("a full queue drops what comes, and nothing that waits") {
  WebhookQueue queue;
  for (std::size_t i = 0; i < WebhookQueue::kMost; ++i) CHECK(queue.push(std::to_string(i), kQueueBegan));
  CHECK_FALSE(queue.push("late", kQueueBegan));
  CHECK(queue.size() == WebhookQueue::kMost);
  CHECK(*queue.due(kQueueBegan) == "0");
}

TEST_CASE("the answer to what was forgotten meanwhile is not the next event's") {
  WebhookQueue queue;
  REQUIRE(queue.push("old", kQueueBegan));
  queue.sent(kQueueBegan);
  queue.clear();
  REQUIRE(queue.push("new", kQueueBegan));
  CHECK(queue.answered({.means = WebhookMeans::Refused}, kQueueBegan) == std::nullopt);
  REQUIRE(queue.due(kQueueBegan) != nullptr);
  CHECK(*queue.due(kQueueBegan) == "new");
  queue.sent(kQueueBegan);
  CHECK(queue.answered({.means = WebhookMeans::Delivered}, kQueueBegan) == WebhookEnd::Delivered);
}

TEST_CASE("a receiver's answer says whether to try again") {
  for (const unsigned status : {200U, 202U, 204U}) CHECK(meaning_of_status(status) == WebhookMeans::Delivered);
  for (const unsigned status : {408U, 425U, 429U, 500U, 503U}) CHECK(meaning_of_status(status) == WebhookMeans::Later);
  for (const unsigned status : {301U, 304U, 400U, 401U, 404U, 410U})
    CHECK(meaning_of_status(status) == WebhookMeans::Refused);
  CHECK(to_string(WebhookEnd::GivenUp) == "gave_up");
}

TEST_CASE("an answer from the address before says nothing of what waits for another") {
  WebhookQueue queue;
  queue.set_rate(600);
  REQUIRE(queue.push("first", kQueueBegan));
  for (const auto means : {WebhookMeans::Refused, WebhookMeans::Delivered, WebhookMeans::Later}) {
    queue.sent(kQueueBegan);
    queue.begin_anew();
    queue.redirect();
    queue.redirect();  // once more before it answers
    CHECK(queue.answered({.means = means, .wait = std::chrono::minutes(5)}, kQueueBegan) == std::nullopt);
    REQUIRE(queue.due(kQueueBegan) != nullptr);
    CHECK(*queue.due(kQueueBegan) == "first");
  }
  queue.redirect();  // nothing is on its way
  queue.sent(kQueueBegan);
  CHECK(queue.answered({.means = WebhookMeans::Delivered}, kQueueBegan) == WebhookEnd::Delivered);
  CHECK(queue.size() == 0);
}
