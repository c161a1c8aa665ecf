#include "app/earlier_state.h"

#include <variant>

#include "domain/contract/names.h"
#include "domain/contract/state_names.h"

namespace dhc {

namespace {

const k8s::ConfigMap* earlier_map(const k8s::Object& object) {
  const auto* map = std::get_if<k8s::ConfigMap>(&object);
  return map != nullptr && map->meta.name == kStateName ? map : nullptr;
}

}  // namespace

std::optional<EarlierState> read_earlier_state(const k8s::Delivery& delivery) {
  if (const auto* snapshot = std::get_if<k8s::Snapshot>(&delivery)) {
    if (snapshot->kind != k8s::Kind::ConfigMap) return std::nullopt;
    EarlierState state;
    for (const auto& object : snapshot->objects) {
      if (const auto* map = earlier_map(object)) state.map = *map;
    }
    return state;
  }
  if (const auto* upsert = std::get_if<k8s::Upsert>(&delivery)) {
    if (const auto* map = earlier_map(upsert->object)) return EarlierState{*map};
    return std::nullopt;
  }
  const auto* gone = std::get_if<k8s::Remove>(&delivery);
  const bool is_gone = gone != nullptr && gone->kind == k8s::Kind::ConfigMap && gone->name == kStateName;
  return is_gone ? std::optional(EarlierState{}) : std::nullopt;
}

}  // namespace dhc
