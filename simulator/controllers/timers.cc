#include "simulator/controllers/timers.h"

#include <algorithm>
#include <utility>

namespace dhc::sim {

void Timers::begin(MonoTime now) {
  now_ = now;
  other_.reset();
  for (auto& [key, wish] : wishes_) wish.wished = false;
}

void Timers::end() {
  std::erase_if(wishes_, [](const auto& entry) { return !entry.second.wished; });
}

bool Timers::ready(const std::string& key, Millis after) {
  ++count_;
  const auto [it, fresh] = wishes_.try_emplace(key, Wish{now_ + after});
  it->second.wished = true;
  return now_ >= it->second.due;
}

void Timers::call_at(MonoTime when, std::string who) { calls_[when].insert(std::move(who)); }

std::set<std::string> Timers::take_calls() {
  std::set<std::string> called;
  while (!calls_.empty() && calls_.begin()->first <= now_) {
    called.merge(calls_.begin()->second);
    calls_.erase(calls_.begin());
  }
  return called;
}

void Timers::wake_at(MonoTime when) {
  ++count_;
  if (when > now_ && (!other_ || when < *other_)) other_ = when;
}

std::optional<MonoTime> Timers::next() const {
  auto earliest = other_;
  if (!calls_.empty() && (!earliest || calls_.begin()->first < *earliest)) earliest = calls_.begin()->first;
  for (const auto& [key, wish] : wishes_) {
    if (wish.due > now_ && (!earliest || wish.due < *earliest)) earliest = wish.due;
  }
  return earliest;
}

}  // namespace dhc::sim
