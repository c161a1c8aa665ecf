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
    if (it->type == ChangeType::Deleted) {
      objects_.erase(name);
    } else {
      objects_[name] = it->object;
    }
    at_ = it->rv;
    seen(*it);
  }
  return std::nullopt;
}

}  // namespace dhc::sim
