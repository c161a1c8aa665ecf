#include "simulator/controllers/cached_view.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace dhc::sim {

std::optional<MonoTime> CachedView::advance(const Store& store, Millis lag,
                                            const std::function<void(const Change&)>& seen) {
  const auto& changes = store.changes(res_);
  auto it = std::partition_point(changes.begin(), changes.end(), [&](const Change& c) { return c.rv <= at_; });
  for (; it != changes.end(); ++it) {
    if (it->at + lag > store.now().mono) return it->at + lag;
    const Name name{ns_of(*it->object), name_of(*it->object)};
    const Json* owner = controller_of(*it->object);
    const auto uid = owner == nullptr ? std::string() : text(*owner, {"uid"});
    if (it->type == ChangeType::Deleted) {
      objects_.erase(name);
      owned_[uid].erase(name);
      if (owned_[uid].empty()) owned_.erase(uid);
    } else {
      objects_[name] = it->object;
      if (owner != nullptr) owned_[uid][name] = it->object;
    }
    at_ = it->rv;
    seen(*it);
  }
  return std::nullopt;
}

const Objects& CachedView::owned_by(const std::string& uid) const {
  const auto owned = owned_.find(uid);
  return owned == owned_.end() ? none_ : owned->second;
}

}  // namespace dhc::sim
