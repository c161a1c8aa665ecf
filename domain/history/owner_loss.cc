#include "domain/history/owner_loss.h"

#include <utility>

namespace dhc {

void OwnerLosses::set(const DeviceKey& device, TimedLoss timed) {
  const Key key(timed.loss.owner_uid, device);
  over_.set(key, timed.at + kLossMemory);
  owners_[device].insert(timed.loss.owner_uid);
  all_.insert_or_assign(key, std::move(timed));
}

const TimedLoss* OwnerLosses::find(const std::string& owner, const DeviceKey& device) const {
  const auto found = all_.find({owner, device});
  return found == all_.end() ? nullptr : &found->second;
}

std::vector<const TimedLoss*> OwnerLosses::of(const DeviceKey& device) const {
  std::vector<const TimedLoss*> losses;
  const auto found = owners_.find(device);
  if (found == owners_.end()) return losses;
  for (const auto& owner : found->second) losses.push_back(&all_.at({owner, device}));
  return losses;
}

std::vector<const TimedLoss*> OwnerLosses::to_card(const std::string& owner, const DeviceKey& device) const {
  std::vector<const TimedLoss*> losses;
  for_each_of_card(owners_, device, [&](const DeviceKey& other, const std::set<std::string>& owners) {
    if (owners.contains(owner)) losses.push_back(&all_.at({owner, other}));
  });
  return losses;
}

std::vector<DeviceKey> OwnerLosses::forget(MonoTime now) {
  std::vector<DeviceKey> devices;
  for (const auto& key : over_.due(now)) {
    over_.erase(key);
    all_.erase(key);
    const auto owners = owners_.find(key.second);
    owners->second.erase(key.first);
    if (owners->second.empty()) owners_.erase(owners);
    devices.push_back(key.second);
  }
  return devices;
}

}  // namespace dhc
