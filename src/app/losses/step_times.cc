#include "app/losses/step_times.h"

#include <algorithm>
#include <iterator>

namespace dhc {

void StepTimes::measure(Span span, WallTime since, const Now& now) {
  ++counts_.at(static_cast<std::size_t>(span));
  if (measured_.size() >= kMost) return;
  const auto took = std::chrono::duration_cast<Millis>(now.wall - since);
  measured_.push_back({.span = span, .took = std::max(took, Millis(0))});
}

void StepTimes::evicted(const std::string& uid, const std::string& owner, WallTime bad_since, WallTime sent_at,
                        const Now& now) {
  measure(Span::ToEviction, bad_since, now);
  if (owner.empty() || waiting_count_ >= kMost) return;
  waiting_[owner].evicted.push_back({.uid = uid, .bad_since = bad_since, .sent_at = sent_at});
  ++waiting_count_;
}

void StepTimes::runs(const std::string& uid, const std::string& owner, WallTime made_at, const Now& now) {
  const auto found = waiting_.find(owner);
  if (found == waiting_.end()) return;
  auto& [evicted, counted] = found->second;
  const auto is_evicted = [&](const Evicted& one) { return one.uid == uid; };
  if (counted.contains(uid) || std::ranges::any_of(evicted, is_evicted)) return;
  // The API server writes whole seconds.
  const auto is_replaced = [&](const Evicted& one) {
    return made_at >= std::chrono::floor<Seconds>(one.sent_at) && now.wall - one.sent_at <= kLongestWait;
  };
  const auto replaced = std::ranges::find_if(evicted, is_replaced);
  if (replaced == evicted.end()) return;
  measure(Span::ToReplacement, replaced->bad_since, now);
  evicted.erase(replaced);
  counted.insert(uid);
  --waiting_count_;
  if (evicted.empty()) waiting_.erase(found);
}

std::set<std::string> StepTimes::waiting() const {
  std::set<std::string> owners;
  for (const auto& [owner, waits] : waiting_) owners.insert(owner);
  return owners;
}

void StepTimes::forget(const Now& now) {
  const auto is_past = [&](const Evicted& one) { return now.wall - one.sent_at > kLongestWait; };
  for (auto waits = waiting_.begin(); waits != waiting_.end();) {
    auto& evicted = waits->second.evicted;
    waiting_count_ -= std::erase_if(evicted, is_past);
    waits = evicted.empty() ? waiting_.erase(waits) : std::next(waits);
  }
}

void StepTimes::turn_over() {
  waiting_.clear();
  waiting_count_ = 0;
  last_incident_.clear();
}

void StepTimes::recall(const std::string& node, WallTime opened_at) {
  if (last_incident_.size() >= kMost && !last_incident_.contains(node)) return;
  auto& last = last_incident_.try_emplace(node, opened_at).first->second;
  last = std::max(last, opened_at);
}

void StepTimes::opened(const std::string& node, const Now& now) {
  const auto last = last_incident_.find(node);
  if (last != last_incident_.end() && last->second < now.wall) measure(Span::NodeInterval, last->second, now);
  recall(node, now.wall);
}

}  // namespace dhc
