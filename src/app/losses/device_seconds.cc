#include "app/losses/device_seconds.h"

#include <utility>

namespace dhc {

std::string_view to_string(LossCause cause) {
  switch (cause) {
    case LossCause::UnhealthyHeld:
      return "unhealthy_held";
    case LossCause::KeptOff:
      return "kept_off";
    case LossCause::Quarantine:
      return "quarantine";
    case LossCause::Recovering:
      return "recovering";
    case LossCause::UnhealthyFree:
      return "unhealthy_free";
  }
  return "";
}

void DeviceSeconds::advance(MonoTime now) {
  const auto since = at_.value_or(now);
  if (now < since) return;
  for (std::size_t i = 0; i < counts_.size(); ++i) lost_.at(i) += counts_.at(i) * (now - since);
  at_ = now;
}

void DeviceSeconds::set(const DeviceKey& key, std::optional<LossCause> cause) {
  if (const auto known = causes_.find(key); known != causes_.end()) {
    if (known->second == cause) return;
    --counts_.at(static_cast<std::size_t>(known->second));
    causes_.erase(known);
  }
  if (!cause) return;
  causes_.emplace(key, *cause);
  ++counts_.at(static_cast<std::size_t>(*cause));
}

void DeviceSeconds::look_at_all(std::set<DeviceKey> keys, const CauseOf& cause_of) {
  for (const auto& [key, cause] : causes_) keys.insert(key);
  for (const auto& key : keys) set(key, cause_of(key));
}

void DeviceSeconds::clear() {
  causes_.clear();
  counts_.fill(0);
}

}  // namespace dhc
