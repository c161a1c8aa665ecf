#include "domain/limits/notice_book.h"

#include <chrono>

namespace dhc {

void NoticeBook::note_sent(const std::string& pod_uid, std::optional<WallTime> at, const Now& now) {
  if (!at) return (void)sent_.erase(pod_uid);
  const auto found = sent_.find(pod_uid);
  if (found != sent_.end() && found->second.at == *at) return;
  sent_.insert_or_assign(pod_uid, Sent{.at = *at, .first = moment_of(now)});
}

Millis NoticeBook::clock_jump(const std::string& pod_uid, const Now& now) const {
  constexpr Millis kLeastJump = Seconds(5);
  const auto found = sent_.find(pod_uid);
  if (found == sent_.end()) return Millis::zero();
  const auto& first = found->second.first;
  const auto moved = std::chrono::floor<Millis>(now.wall - first.wall) - (now.mono - first.mono);
  return std::chrono::abs(moved) < kLeastJump ? Millis::zero() : moved;
}

void NoticeBook::note_contested(const std::string& pod_uid, std::string_view seen) {
  contested_.insert_or_assign(pod_uid, std::string(seen));
}

void NoticeBook::note_taken_back(const std::string& pod_uid, std::string_view seen) {
  taken_back_.insert_or_assign(pod_uid, std::string(seen));
}

bool NoticeBook::was_taken_back(const std::string& pod_uid, std::string_view seen) const {
  const auto found = taken_back_.find(pod_uid);
  return found != taken_back_.end() && found->second == seen;
}

std::optional<WallTime> NoticeBook::sent_at(const std::string& pod_uid) const {
  const auto found = sent_.find(pod_uid);
  return found == sent_.end() ? std::nullopt : std::optional(found->second.at);
}

bool NoticeBook::is_contested(const std::string& pod_uid, std::string_view seen) const {
  const auto found = contested_.find(pod_uid);
  return found != contested_.end() && found->second == seen;
}

}  // namespace dhc
