#include "domain/cluster/owner_sight.h"

#include <algorithm>
#include <utility>

namespace dhc {

std::string owner_key(const std::string& ns, const k8s::OwnerRef& owner) {
  std::string key;
  // With their lengths: no text that stands in one part can look like the border to the next.
  for (const std::string_view part :
       {std::string_view(ns), owner.api_version.view(), owner.kind.view(), owner.name.view(), owner.uid.view()}) {
    key.append(std::to_string(part.size())).append(":").append(part);
  }
  return key;
}

bool is_plausible(const k8s::OwnerRef& owner) {
  constexpr std::size_t kLongestPart = 253;
  for (const auto* part : {&owner.api_version, &owner.kind, &owner.name, &owner.uid}) {
    if (part->empty() || part->size() > kLongestPart) return false;
  }
  return true;
}

std::set<std::string> OwnerSights::note(OwnerSight sight, const std::string& ns, const k8s::OwnerRef& owner,
                                        MonoTime asked_at, const Now& now) {
  std::set<std::string> forgotten;
  auto key = owner_key(ns, owner);
  const auto known = sights_.find(key);
  if (known != sights_.end() && known->second.sight.at > asked_at) return forgotten;
  sight.at = asked_at;
  sights_.insert_or_assign(std::move(key), Kept{.sight = std::move(sight), .ns = ns});
  std::erase_if(sights_, [&](const auto& entry) {
    const bool is_old = now.mono - entry.second.sight.at >= kOwnerSightKept;
    if (is_old) forgotten.insert(entry.second.ns);
    return is_old;
  });
  if (sights_.size() <= kMostOwnerSights) return forgotten;
  const auto oldest = std::ranges::min_element(sights_, {}, [](const auto& entry) { return entry.second.sight.at; });
  forgotten.insert(oldest->second.ns);
  sights_.erase(oldest);
  return forgotten;
}

const OwnerSight* OwnerSights::find(const std::string& ns, const k8s::OwnerRef& owner) const {
  const auto found = sights_.find(owner_key(ns, owner));
  return found == sights_.end() ? nullptr : &found->second.sight;
}

}  // namespace dhc
