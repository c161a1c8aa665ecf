#include "k8s-client/protocol/server_clock.h"

#include <algorithm>

#include "k8s-client/protocol/retry_after.h"

namespace dhc::k8s {

void ServerClock::answered(std::string_view date, WallTime sent, WallTime received) {
  const auto written = parse_http_date(date);
  // A clock of ours that was set back in between measures nothing.
  if (!written || received < sent) return;
  const Range seen{.least = *written - received, .most = *written + Seconds(1) - sent};
  if (!range_) {
    range_ = seen;
    return;
  }
  const Range both{.least = std::max(range_->least, seen.least), .most = std::min(range_->most, seen.most)};
  range_ = both.least <= both.most ? both : seen;
}

std::optional<Millis> ServerClock::ahead() const {
  if (!range_) return std::nullopt;
  return std::chrono::duration_cast<Millis>((range_->least + range_->most) / 2);
}

std::optional<Millis> ServerClock::news() const {
  const auto now = ahead();
  if (!now || std::chrono::abs(*now - taken_) < Seconds(1)) return std::nullopt;
  return relevant_ahead(*now);
}

}  // namespace dhc::k8s
