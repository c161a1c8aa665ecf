#include "domain/cluster/recreations.h"

namespace dhc {

void Recreations::note(const SharedText& job, const std::string& dead) {
  const auto known = dead_of_.find(job);
  if (known != dead_of_.end() && known->second == dead) return;
  if (known != dead_of_.end()) {
    const auto others = living_.find(known->second);
    others->second.erase(job);
    if (others->second.empty()) living_.erase(others);
    dead_of_.erase(known);
  }
  if (dead.empty()) return;
  dead_of_.emplace(job, dead);
  living_[dead].insert(job);
}

void Recreations::drop(const SharedText& job, const std::string& identity) {
  note(job, {});
  kept_.erase(identity);
}

void Recreations::forget_all() { *this = Recreations(); }

std::string Recreations::dead_of(const SharedText& job) const {
  const auto known = dead_of_.find(job);
  return known == dead_of_.end() ? std::string() : known->second;
}

}  // namespace dhc
