#include "app/state_desk.h"

#include <utility>
#include <variant>

#include "domain/names.h"
#include "domain/state_text.h"

namespace dhc {

namespace {

// What worked without a memory goes on without one.
constexpr Millis kStatePatience = Seconds(30);

const k8s::ConfigMap* state_map(const k8s::Object& object) {
  const auto* map = std::get_if<k8s::ConfigMap>(&object);
  return map != nullptr && map->meta.name == kStateName ? map : nullptr;
}

}  // namespace

bool StateDesk::take(const k8s::Delivery& delivery, DeviceMemory& memory, const Now& now) {
  if (const auto* snapshot = std::get_if<k8s::Snapshot>(&delivery)) {
    if (snapshot->kind != k8s::Kind::ConfigMap) return false;
    std::optional<k8s::ConfigMap> found;
    for (const auto& object : snapshot->objects) {
      if (const auto* map = state_map(object)) found = *map;
    }
    is_listed_ = true;
    const bool loaded = see(std::move(found), memory, now);
    if (is_loaded_) return loaded;
    load(memory, now);
    return true;
  }
  if (const auto* upsert = std::get_if<k8s::Upsert>(&delivery)) {
    const auto* map = state_map(upsert->object);
    return map != nullptr && see(*map, memory, now);
  }
  const auto* remove = std::get_if<k8s::Remove>(&delivery);
  const bool is_gone = remove != nullptr && remove->kind == k8s::Kind::ConfigMap && remove->name == kStateName;
  return is_gone && see(std::nullopt, memory, now);
}

bool StateDesk::see(std::optional<k8s::ConfigMap> map, DeviceMemory& memory, const Now& now) {
  // Whoever deletes it wants the past forgotten, also where only the next list shows it.
  if (!map && seen_ && is_loaded_) memory.forget_past();
  const bool news = map && (!seen_ || map->data != seen_->data);
  seen_ = std::move(map);
  // The last words of the leader before us may reach us after its release of the Lease: until we have written anything
  // ourselves they count.
  if (!news || !is_loaded_ || has_written_) return false;
  load(memory, now);
  return true;
}

bool StateDesk::begin_term(DeviceMemory& memory, const Now& now) {
  has_written_ = false;
  awaited_since_.reset();
  if (!is_listed_) return false;
  load(memory, now);
  return true;
}

void StateDesk::load(DeviceMemory& memory, const Now& now) {
  is_loaded_ = true;
  file_ = {.saved = memory.revision(), .unread = false, .left_out = 0, .since = now.wall, .damage = {}};
  if (!seen_) return;
  const auto entry = seen_->data.find(kStateEntry);
  auto content = entry == seen_->data.end()
                     ? StateContent{.records = {}, .departed = {}, .damage = "it has no entry devices.json"}
                     : parse_state(entry->second);
  memory.load(std::move(content.records), std::move(content.departed));
  file_.damage = std::move(content.damage);
  // What was damaged is written anew although nothing has changed since.
  if (file_.damage) file_.saved.reset();
}

std::optional<MonoTime> StateDesk::waits(const std::string& own_namespace, const Now& now) {
  if (own_namespace.empty() || is_loaded_) return std::nullopt;
  if (!awaited_since_) awaited_since_ = now.mono;
  const MonoTime until = *awaited_since_ + kStatePatience;
  if (now.mono < until) return until;
  if (!file_.unread) file_ = {.saved = {}, .unread = true, .left_out = 0, .since = now.wall, .damage = {}};
  return std::nullopt;
}

void StateDesk::note_saved(const memory::WriteState& written, const Now& now) {
  file_.saved = written.revision;
  file_.left_out = written.left_out;
  file_.since = now.wall;
  file_.damage.reset();
}

}  // namespace dhc
