#include "domain/limits/workload_book.h"

#include <algorithm>

namespace dhc {

void WorkloadBook::note(const std::string& workload, const DeviceKey& card, WallTime at) {
  if (workload.empty()) return;
  lost_[workload].insert_or_assign(card, at);
  while (size() > kMost) drop_oldest();
}

std::size_t WorkloadBook::size() const {
  std::size_t size = 0;
  for (const auto& [workload, devices] : lost_) size += devices.size();
  return size;
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
  if (oldest->second.empty()) lost_.erase(oldest);
}

bool WorkloadBook::settle(const Now& now) {
  bool changed = false;
  for (auto& [workload, devices] : lost_) {
    for (auto& [card, at] : devices) {
      if (at <= now.wall) continue;
      at = now.wall;
      changed = true;
    }
    std::erase_if(devices, [&](const auto& entry) { return now.wall - entry.second >= kDay; });
  }
  std::erase_if(lost_, [](const auto& entry) { return entry.second.empty(); });
  return changed;
}

bool WorkloadBook::release(WallTime until) {
  bool changed = false;
  for (auto& [workload, devices] : lost_) {
    changed = std::erase_if(devices, [&](const auto& entry) { return entry.second < until; }) > 0 || changed;
  }
  std::erase_if(lost_, [](const auto& entry) { return entry.second.empty(); });
  return changed;
}

WorkloadTally::WorkloadTally(const WorkloadBook& book) {
  for (const auto& [workload, devices] : book.lost()) {
    for (const auto& [card, at] : devices) take(workload, card, at);
  }
}

void WorkloadTally::take(const std::string& workload, const DeviceKey& card, WallTime at) {
  if (!workload.empty()) lost_[{workload, card.scope}].insert_or_assign(card, at);
}

bool WorkloadTally::has(const std::string& workload, const DeviceKey& card) const {
  const auto found = lost_.find({workload, card.scope});
  return found != lost_.end() && found->second.contains(card);
}

std::size_t WorkloadTally::count(const std::string& workload, const std::string& scope) const {
  const auto found = lost_.find({workload, scope});
  return found == lost_.end() ? 0 : found->second.size();
}

std::optional<WallTime> WorkloadTally::room_at(const std::string& workload, const std::string& scope) const {
  const auto found = lost_.find({workload, scope});
  if (found == lost_.end() || found->second.empty()) return std::nullopt;
  const auto first = std::ranges::min_element(found->second, {}, [](const auto& entry) { return entry.second; });
  return first->second + WorkloadBook::kDay;
}

}  // namespace dhc
