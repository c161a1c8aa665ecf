#include "domain/limits/owner_reads.h"

#include "domain/limits/attempt.h"

namespace dhc {

namespace {
constexpr Millis kRemembered = std::chrono::hours(1);
}  // namespace

void OwnerReads::sent(const std::string& ns, const std::string& key, const Now& now) {
  tokens_.take(1, now.mono);
  reads_.insert_or_assign(ns, LastRead{.at = now.mono, .under_way = key});
}

void OwnerReads::done(const std::string& ns, const std::string& key, MonoTime asked_at, const Status& status,
                      const Now& now) {
  const auto last = reads_.find(ns);
  if (last == reads_.end() || last->second.at != asked_at || last->second.under_way != key) return;
  last->second.under_way.clear();
  if (status) {
    failures_.erase(key);
    return;
  }
  // Never sent: it is decided anew.
  if (status.error().kind == ErrorKind::Cancelled) return tokens_.give_back(1, now.mono);
  auto& failure = failures_[key];
  failure.not_before = now.mono + backoff_after(status.error(), ++failure.in_a_row);
}

std::optional<MonoTime> OwnerReads::busy_until(const std::string& ns, const Now& now) const {
  const auto last = reads_.find(ns);
  if (last == reads_.end() || last->second.under_way.empty()) return std::nullopt;
  const MonoTime until = last->second.at + kUnanswered;
  return now.mono < until ? std::optional(until) : std::nullopt;
}

MonoTime OwnerReads::last_of(const std::string& ns) const {
  const auto last = reads_.find(ns);
  return last == reads_.end() ? MonoTime::min() : last->second.at;
}

MonoTime OwnerReads::not_before(const std::string& key) const {
  const auto failure = failures_.find(key);
  return failure == failures_.end() ? MonoTime::min() : failure->second.not_before;
}

void OwnerReads::forget(const Now& now) {
  std::erase_if(reads_, [&](const auto& entry) { return now.mono - entry.second.at >= kRemembered; });
  std::erase_if(failures_, [&](const auto& entry) {
    return now.mono >= entry.second.not_before && now.mono - entry.second.not_before >= kRemembered;
  });
}

}  // namespace dhc
