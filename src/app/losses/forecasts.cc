#include "app/losses/forecasts.h"

namespace dhc {

std::optional<Deed> deed_of(Reason reason) {
  switch (reason) {
    case Reason::WouldTaint:
      return Deed::Taint;
    case Reason::WouldCredit:
      return Deed::Credit;
    default:
      return std::nullopt;
  }
}

void Forecasts::foretell(Deed deed, const DeviceKey& key, const std::string& policy, const std::string& uid,
                         bool is_new) {
  auto known = known_.find(key);
  if (known == known_.end() && known_.size() < kMostDevices) known = known_.try_emplace(key).first;
  if (known == known_.end() || known->second.emplace(deed, policy, uid).second) count(deed, policy, is_new);
}

void Forecasts::count(Deed deed, const std::string& policy, bool is_new) {
  std::pair label(deed, policy);
  if (counts_.size() >= kMostCounts && !counts_.contains(label)) label.second.clear();
  auto& sum = counts_[label];
  if (is_new) ++sum;
}

void Forecasts::look(const Focus& focus, const std::function<bool(const DeviceKey&)>& is_bad) {
  if (focus.all) {
    std::erase_if(known_, [&](const auto& known) { return !is_bad(known.first); });
    return;
  }
  if (known_.empty()) return;
  for (const auto& key : focus.devices) {
    if (const auto known = known_.find(key); known != known_.end() && !is_bad(key)) known_.erase(known);
  }
}

}  // namespace dhc
