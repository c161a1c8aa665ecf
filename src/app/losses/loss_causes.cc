#include "app/losses/loss_causes.h"

#include "domain/cluster/workload.h"
#include "domain/contract/our_taint.h"

namespace dhc {

namespace {

/// Whether new pods are kept off by a taint of ours: a rule in its first stage keeps off nobody.
bool our_taint_keeps_off(const DeviceRecord& record, const World& world) {
  if (record.ours.node.stands()) return true;
  if (!record.ours.rule.stands()) return false;
  const auto* rule = world.inventory().rule_named_for(record.key);
  return rule != nullptr && rule->taint.effect == rule_taint().effect;
}

/// By the last word that is believed; true also where the incident is over.
bool is_called_well(const DeviceRecord& record) {
  const auto* facts = record.incident.facts();
  if (facts == nullptr) return true;
  const bool is_untainted_by_driver = facts->driver_taint && facts->driver_taint->gone_at;
  return is_untainted_by_driver || facts->evidence.phase() == EvidencePhase::Well;
}

}  // namespace

std::optional<LossCause> loss_of(const DeviceKey& key, const World& world, const IncidentStore& incidents) {
  if (!key.is_device()) return std::nullopt;
  const auto* state = world.tracker().find(key);
  const auto* record = incidents.find(key);
  const bool is_open = record != nullptr && record->is_open();
  const bool is_well = record == nullptr || is_called_well(*record);
  if (is_held(key, world)) {
    const bool is_bad = is_open ? !is_well : state->health == k8s::Health::Unhealthy;
    return is_bad ? std::optional(LossCause::UnhealthyHeld) : std::nullopt;
  }
  if (record == nullptr) return std::nullopt;
  if (!our_taint_keeps_off(*record, world)) return is_well ? std::nullopt : std::optional(LossCause::UnhealthyFree);
  if (record->is_quarantined()) return LossCause::Quarantine;
  return is_well ? LossCause::Recovering : LossCause::KeptOff;
}

bool is_bad_still(const DeviceKey& key, const World& world, const IncidentStore& incidents) {
  if (const auto* record = incidents.find(key)) return record->is_open();
  const auto* state = world.tracker().find(key);
  return state != nullptr && state->health != k8s::Health::Healthy;
}

std::optional<WallTime> bad_since(const DeviceKey& key, const World& world, const IncidentStore& incidents) {
  const auto* record = incidents.find(key);
  const auto* facts = record == nullptr ? nullptr : record->incident.facts();
  if (facts != nullptr) return facts->since;
  const auto* state = world.tracker().find(key);
  return state == nullptr || !state->unhealthy_since ? std::nullopt : std::optional(state->unhealthy_since->wall);
}

}  // namespace dhc
