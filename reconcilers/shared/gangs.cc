#include "reconcilers/shared/gangs.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "domain/findings/enforcement.h"

namespace dhc {

namespace {

bool goes_together(const AffectedPod& affected) {
  return affected.open && affected.policy->evict && affected.policy->evict->groups_together;
}

}  // namespace

bool can_be_evicted(const PodRecord* record) {
  return record != nullptr && is_live(record->pod) && !record->pod.node_name.empty() && !record->pod.meta.deletion;
}

const GangUnit* Gangs::of(const AffectedPod& affected) {
  if (affected.goes_with != nullptr || !goes_together(affected) || !affected.pod().is_marked) return nullptr;
  if (const auto known = units_.find(&affected); known != units_.end()) return &known->second;
  auto gang = gang_of(affected.pod());
  if (!gang) return nullptr;
  auto& unit = units_[&affected];
  unit.gang = *std::move(gang);
  std::vector<const PodRecord*> records;
  for (const auto& uid : input_.world.members_of(unit.gang.key)) {
    const auto* record = input_.world.pod(uid);
    if (record == affected.record || !can_be_evicted(record)) continue;
    if (records.size() <= kMostInGang) records.push_back(record);
    ++unit.size;
  }
  ++unit.size;
  if (unit.size > kMostInGang) return &unit;
  unit.members.push_back(&affected);
  for (const auto* record : records) unit.members.push_back(member_for(*record, affected));
  return &unit;
}

/// Its own bad device, if it goes for that in the same way.
const AffectedPod* Gangs::own_of(const std::string& uid, const AffectedPod& asking) {
  if (!std::exchange(is_indexed_, true)) {
    for (const auto& one : input_.affected_pods) {
      if (goes_together(one)) open_[one.pod().meta.uid].push_back(&one);
    }
  }
  const auto found = open_.find(uid);
  if (found == open_.end()) return nullptr;
  const auto own = std::ranges::find(found->second, asking.mode, &AffectedPod::mode);
  return own == found->second.end() ? nullptr : *own;
}

const AffectedPod* Gangs::member_for(const PodRecord& record, const AffectedPod& asking) {
  if (const auto* own = own_of(record.pod.meta.uid, asking)) return own;
  AffectedPod member = asking;
  member.record = &record;
  member.goes_with = &asking;
  return &keep(std::move(member));
}

AffectedPod& Gangs::keep(AffectedPod affected) {
  auto& member = members_.emplace_back();
  member.held_device.key = affected.key;
  member.affected = std::move(affected);
  member.affected.held_device = &member.held_device;
  return member.affected;
}

const AffectedPod& Gangs::member_of_round(const PodRecord& record, const DeviceKey& key, const DevicePolicy& policy,
                                          Moment since) {
  AffectedPod member;
  member.key = key;
  member.record = &record;
  member.policy = &policy;
  member.mode = mode_for(policy, input_.policy, input_.world, record.pod, key);
  member.since = since;
  member.opens_at = since.mono;
  member.open = true;
  auto& kept = keep(std::move(member));
  kept.goes_with = &kept;  // whom it went with is gone
  return kept;
}

std::vector<const AffectedPod*> with_bad_devices(const std::vector<const AffectedPod*>& members) {
  std::vector<const AffectedPod*> found;
  std::ranges::copy_if(members, std::back_inserter(found),
                       [](const AffectedPod* member) { return member->goes_with == nullptr; });
  return found;
}

}  // namespace dhc
