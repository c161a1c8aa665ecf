#include "k8s-client/protocol/delivery.h"

namespace dhc::k8s {

UnreadableNames::UnreadableNames(const std::vector<Unreadable>& unreadable) {
  for (const auto& bad : unreadable) {
    if (!bad.uid.empty()) {
      uids_.insert(bad.uid);
    } else if (!bad.name.empty()) {
      names_.emplace(bad.ns, bad.name);
    } else {
      may_be_any_ = true;
    }
  }
}

bool UnreadableNames::contains(const Meta& meta) const {
  return may_be_any_ || uids_.contains(meta.uid) || (!names_.empty() && names_.contains({meta.ns, meta.name}));
}

}  // namespace dhc::k8s
