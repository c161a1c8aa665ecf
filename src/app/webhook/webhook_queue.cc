#include "app/webhook/webhook_queue.h"

#include <algorithm>
#include <utility>

namespace dhc {

namespace {
constexpr Millis kRateWindow = std::chrono::minutes(1);

Millis pause_after(int failures) {
  constexpr int kMostDoublings = 6;
  const Millis wait = Seconds(1) * (std::int64_t{1} << std::min(failures - 1, kMostDoublings));
  return std::min(wait, WebhookQueue::kLongestPause);
}
}  // namespace

WebhookAnswer::Means meaning_of_status(unsigned status) {
  if (status >= 200 && status < 300) return WebhookAnswer::Means::Delivered;
  const bool passes = status == 408 || status == 425 || status == 429 || status >= 500;
  return passes ? WebhookAnswer::Means::Later : WebhookAnswer::Means::Refused;
}

std::string_view to_string(WebhookEnd end) {
  switch (end) {
    case WebhookEnd::Delivered:
      return "delivered";
    case WebhookEnd::Refused:
      return "refused";
    case WebhookEnd::GivenUp:
      return "gave_up";
    case WebhookEnd::Dropped:
      return "dropped";
  }
  return {};
}

bool WebhookQueue::push(std::string body, MonoTime now) {
  if (waiting_.size() >= kMost) return false;
  waiting_.push_back({.body = std::move(body), .since = now});
  return true;
}

const std::string* WebhookQueue::due(MonoTime now) const {
  const auto at = due_at();
  return at && *at <= now ? &waiting_.front().body : nullptr;
}

std::optional<MonoTime> WebhookQueue::due_at() const {
  if (waiting_.empty()) return std::nullopt;
  const auto rate = static_cast<std::size_t>(per_minute_);
  const auto free_at = sent_.size() < rate ? MonoTime::min() : sent_[sent_.size() - rate] + kRateWindow;
  return std::max(not_before_, free_at);
}

void WebhookQueue::sent(MonoTime now) {
  while (!sent_.empty() && sent_.front() + kRateWindow <= now) sent_.pop_front();
  sent_.push_back(now);
  under_way_ = true;
}

std::optional<WebhookEnd> WebhookQueue::answered(const WebhookAnswer& answer, MonoTime now) {
  using Means = WebhookAnswer::Means;
  if (std::exchange(is_astray_, false)) return std::nullopt;
  const bool fails = answer.means == Means::Later || answer.means == Means::Nothing;
  failures_ = fails ? failures_ + 1 : 0;
  not_before_ = fails ? now + std::max(pause_after(failures_), answer.wait) : now;
  // Those that wait now may be others than when it was sent.
  if (!std::exchange(under_way_, false))
    return answer.means == Means::Delivered ? std::optional(WebhookEnd::Delivered) : std::nullopt;
  auto& first = waiting_.front();
  if (answer.means == Means::Later) ++first.answers;
  if (fails && first.answers < kMostAnswers && now - first.since < kLongest) return std::nullopt;
  waiting_.pop_front();
  if (answer.means == Means::Delivered) return WebhookEnd::Delivered;
  return fails ? WebhookEnd::GivenUp : WebhookEnd::Refused;
}

}  // namespace dhc
