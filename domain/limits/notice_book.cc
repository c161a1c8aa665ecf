#include "domain/limits/notice_book.h"

namespace dhc {

void NoticeBook::note_sent(const std::string& pod_uid, std::optional<WallTime> at) {
  at ? (void)sent_.insert_or_assign(pod_uid, *at) : (void)sent_.erase(pod_uid);
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
  return found == sent_.end() ? std::nullopt : std::optional(found->second);
}

bool NoticeBook::is_contested(const std::string& pod_uid, std::string_view seen) const {
  const auto found = contested_.find(pod_uid);
  return found != contested_.end() && found->second == seen;
}

}  // namespace dhc
