#include "domain/cluster/noted_jobs.h"

#include <algorithm>
#include <utility>

namespace dhc {

void NotedJobs::note(const SharedText& ns, const SharedText& uid, bool has_credits, bool has_losses) {
  has_credits ? (void)with_credits_.insert(uid) : (void)with_credits_.erase(uid);
  if (has_losses) {
    if (with_losses_[ns].insert(uid).second) ++losses_;
    return;
  }
  const auto known = with_losses_.find(ns);
  if (known == with_losses_.end()) return;
  losses_ -= known->second.erase(uid);
  if (known->second.empty()) with_losses_.erase(known);
}

std::vector<SharedText> NotedJobs::with_losses(std::size_t most) const {
  std::vector<SharedText> found;
  std::vector<std::pair<TextSet::const_iterator, TextSet::const_iterator>> rest;
  for (const auto& [ns, uids] : with_losses_) rest.emplace_back(uids.begin(), uids.end());
  while (!rest.empty() && found.size() < most) {
    for (auto& [next, end] : rest) {
      if (found.size() < most) found.push_back(*next++);
    }
    std::erase_if(rest, [](const auto& range) { return range.first == range.second; });
  }
  return found;
}

}  // namespace dhc
