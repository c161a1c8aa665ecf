#include "domain/cluster/ending_order.h"

#include <algorithm>

namespace dhc {

std::optional<std::string> EndingOrder::add(const std::string& ns, MonoTime at, std::string uid) {
  if (by_ns_[ns].emplace(at, std::move(uid)).second) ++size_;
  if (size_ <= most_) return std::nullopt;
  const auto largest = std::ranges::max_element(by_ns_, {}, [](const auto& entry) { return entry.second.size(); });
  auto& order = largest->second;
  auto oldest = order.begin()->second;
  order.erase(order.begin());
  if (order.empty()) by_ns_.erase(largest);
  --size_;
  return oldest;
}

std::vector<std::string> EndingOrder::take_until(MonoTime end) {
  std::vector<std::string> taken;
  for (auto& [ns, order] : by_ns_) {
    while (!order.empty() && order.begin()->first <= end) {
      taken.push_back(order.begin()->second);
      order.erase(order.begin());
      --size_;
    }
  }
  std::erase_if(by_ns_, [](const auto& entry) { return entry.second.empty(); });
  return taken;
}

}  // namespace dhc
