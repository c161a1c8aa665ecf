#include "app/record/ledger.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>
#include <variant>

#include "domain/cluster/world.h"

namespace dhc::record {

namespace {

Hours hours_of(WallTime from, WallTime to) {
  return from < to ? std::chrono::duration<Hours, std::ratio<3600>>(to - from).count() : 0;
}

void count_bad(Holding& holding, WallTime now) {
  if (!holding.bad_since) return;
  holding.bad += static_cast<Hours>(holding.devices) * hours_of(*holding.bad_since, now);
  holding.bad_since = now;
}

}  // namespace

void Ledger::follow(const k8s::Delivery& delivery, WallTime now) {
  if (const auto* upsert = std::get_if<k8s::Upsert>(&delivery)) {
    if (const auto* pod = std::get_if<k8s::Pod>(&upsert->object)) put(*pod, now);
  } else if (const auto* gone = std::get_if<k8s::Remove>(&delivery)) {
    if (gone->kind == k8s::Kind::Pod) end(gone->uid, now);
  } else if (const auto* list = std::get_if<k8s::Snapshot>(&delivery)) {
    if (list->kind == k8s::Kind::Pod) replace(list->objects, now);
  }
}

/// The pod as it is from `now` on.
void Ledger::put(const k8s::Pod& pod, WallTime now) {
  if (!is_live(pod) || pod.allocated.empty()) return end(pod.meta.uid, now);
  auto& holding = holdings_[pod.meta.uid];
  count_bad(holding, now);
  std::size_t devices = 0;
  const k8s::ReportedDevice* bad = nullptr;
  for (const auto& resource : pod.allocated) {
    for (const auto& device : resource.devices) {
      ++devices;
      if (device.health == k8s::Health::Unhealthy && bad == nullptr) bad = &device;
    }
  }
  holding.pod = subject_of(pod);
  holding.devices = devices;
  holding.made = pod.meta.creation;
  if (bad == nullptr) return holding.bad_since.reset();
  if (!holding.bad_since) holding.bad_since = now;
  if (!holding.first_bad) {
    holding.first_bad = now;
    holding.bad_device = bad->resource_id;
  }
}

/// These are all that there are.
void Ledger::replace(const std::vector<k8s::Object>& pods, WallTime now) {
  std::set<std::string> gone;
  for (const auto& [uid, holding] : holdings_) gone.insert(uid);
  for (const auto& object : pods) {
    const auto* pod = std::get_if<k8s::Pod>(&object);
    if (pod == nullptr) continue;
    gone.erase(pod->meta.uid);
    put(*pod, now);
  }
  for (const auto& uid : gone) end(uid, now);
}

/// It holds nothing any more.
void Ledger::end(const std::string& uid, WallTime now) {
  const auto found = holdings_.find(uid);
  if (found == holdings_.end()) return;
  count_bad(found->second, now);
  found->second.bad_since.reset();
  // Of most there is nothing to tell.
  if (!found->second.first_bad) holdings_.erase(found);
}

void Ledger::close(WallTime now) {
  for (auto& [uid, holding] : holdings_) count_bad(holding, now);
}

const Holding* Ledger::find(const std::string& uid) const {
  const auto found = holdings_.find(uid);
  return found == holdings_.end() ? nullptr : &found->second;
}

Hours Ledger::bad() const {
  Hours sum = 0;
  for (const auto& [uid, holding] : holdings_) sum += holding.bad;
  return sum;
}

Hours Ledger::work(const Holding& holding, WallTime now) {
  return holding.made ? static_cast<Hours>(holding.devices) * hours_of(*holding.made, now) : 0;
}

}  // namespace dhc::record
