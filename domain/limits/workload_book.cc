#include "domain/limits/workload_book.h"

#include <algorithm>

namespace dhc {

void WorkloadBook::note(const std::string& workload, const DeviceKey& card, WallTime at) {
  if (workload.empty()) return;
  if (lost_[workload].insert_or_assign(card, at).second) ++size_;
  first_at_ = std::min(first_at_, at);
  latest_at_ = std::max(latest_at_, at);
  while (size_ > kMost) drop_oldest();
}

bool WorkloadBook::has_any_beside(const std::string& workload, const DeviceKey& card) const {
  const auto found = lost_.find(workload);
  return found != lost_.end() && std::ranges::any_of(found->second, [&](const auto& entry) {
           const auto& other = entry.first;
           return other.source == card.source && other.scope == card.scope && other.place == card.place;
         });
}

/// After devices have gone from it, or their times have changed.
void WorkloadBook::count() {
  std::erase_if(lost_, [](const auto& entry) { return entry.second.empty(); });
  size_ = 0;
  first_at_ = WallTime::max();
  latest_at_ = WallTime::min();
  for (const auto& [workload, devices] : lost_) {
    size_ += devices.size();
    for (const auto& [card, at] : devices) {
      first_at_ = std::min(first_at_, at);
      latest_at_ = std::max(latest_at_, at);
    }
  }
}

void WorkloadBook::drop_oldest() {
  auto oldest = lost_.end();
  Devices::iterator device;
  for (auto at = lost_.begin(); at != lost_.end(); ++at) {
    const auto first = std::ranges::min_element(at->second, {}, [](const auto& entry) { return entry.second; });
    if (first == at->second.end()) continue;
    if (oldest != lost_.end() && device->second <= first->second) continue;
    oldest = at;
    device = first;
  }
  if (oldest == lost_.end()) return;
  oldest->second.erase(device);
  --size_;
  if (oldest->second.empty()) lost_.erase(oldest);
}

bool WorkloadBook::settle(const Now& now) {
  bool changed = false;
  if (lost_.empty() || (latest_at_ <= now.wall && now.wall - first_at_ < kDay)) return changed;
  for (auto& [workload, devices] : lost_) {
    for (auto& [card, at] : devices) {
      if (at <= now.wall) continue;
      at = now.wall;
      changed = true;
    }
    std::erase_if(devices, [&](const auto& entry) { return now.wall - entry.second >= kDay; });
  }
  count();
  return changed;
}

bool WorkloadBook::release(WallTime until) {
  bool changed = false;
  for (auto& [workload, devices] : lost_) {
    changed = std::erase_if(devices, [&](const auto& entry) { return entry.second < until; }) > 0 || changed;
  }
  if (changed) count();
  return changed;
}

void WorkloadTally::take(const std::string& workload, const DeviceKey& card, WallTime at) {
  if (!workload.empty()) more_[workload].insert_or_assign(card, at);
}

bool WorkloadTally::has(const std::string& workload, const DeviceKey& card) const {
  const auto has_card = [&](const auto& lost) {
    const auto found = lost.find(workload);
    return found != lost.end() && found->second.contains(card);
  };
  return has_card(more_) || has_card(book_->lost());
}

/// Of a driver or resource, each once: what is to go now counts from now.
template <class Look>
void WorkloadTally::for_each(const std::string& workload, const std::string& scope, const Look& look) const {
  const auto more = more_.find(workload);
  if (more != more_.end()) {
    for (const auto& [card, at] : more->second) {
      if (card.scope == scope) look(at);
    }
  }
  const auto known = book_->lost().find(workload);
  if (known == book_->lost().end()) return;
  for (const auto& [card, at] : known->second) {
    if (card.scope == scope && (more == more_.end() || !more->second.contains(card))) look(at);
  }
}

std::size_t WorkloadTally::count(const std::string& workload, const std::string& scope) const {
  std::size_t count = 0;
  for_each(workload, scope, [&](WallTime /*at*/) { ++count; });
  return count;
}

std::optional<WallTime> WorkloadTally::room_at(const std::string& workload, const std::string& scope) const {
  std::optional<WallTime> first;
  for_each(workload, scope, [&](WallTime at) { first = std::min(first.value_or(at), at); });
  return first ? std::optional(*first + WorkloadBook::kDay) : std::nullopt;
}

}  // namespace dhc
