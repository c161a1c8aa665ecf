#include "simulator/controllers/timers.h"

#include <algorithm>

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
  const auto [it, fresh] = wishes_.try_emplace(key, Wish{now_ + after});
  it->second.wished = true;
  return now_ >= it->second.due;
}

void Timers::wake_at(MonoTime when) {
  if (when > now_ && (!other_ || when < *other_)) other_ = when;
}

std::optional<MonoTime> Timers::next() const {
  auto earliest = other_;
  for (const auto& [key, wish] : wishes_) {
    if (wish.due > now_ && (!earliest || wish.due < *earliest)) earliest = wish.due;
  }
  return earliest;
}

}  // namespace dhc::sim
