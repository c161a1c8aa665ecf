#include "app/state_desk.h"

#include <utility>
#include <variant>

#include "domain/contract/names.h"
#include "domain/incidents/brake_state.h"
#include "domain/incidents/state_text.h"

namespace dhc {

namespace {

// What worked without a stored state goes on without one.
constexpr Millis kStatePatience = Seconds(30);

const k8s::ConfigMap* state_map(const k8s::Object& object) {
  const auto* map = std::get_if<k8s::ConfigMap>(&object);
  return map != nullptr && map->meta.name == kStateName ? map : nullptr;
}

}  // namespace

bool StateDesk::take(const k8s::Delivery& delivery, IncidentStore& incidents, const Now& now) {
  if (const auto* snapshot = std::get_if<k8s::Snapshot>(&delivery)) {
    if (snapshot->kind != k8s::Kind::ConfigMap) return false;
    std::optional<k8s::ConfigMap> found;
    for (const auto& object : snapshot->objects) {
      if (const auto* map = state_map(object)) found = *map;
    }
    is_listed_ = true;
    const bool loaded = see(std::move(found), incidents, now);
    if (is_loaded_) return loaded;
    load(incidents, now);
    return true;
  }
  if (const auto* upsert = std::get_if<k8s::Upsert>(&delivery)) {
    const auto* map = state_map(upsert->object);
    return map != nullptr && see(*map, incidents, now);
  }
  const auto* remove = std::get_if<k8s::Remove>(&delivery);
  const bool is_gone = remove != nullptr && remove->kind == k8s::Kind::ConfigMap && remove->name == kStateName;
  return is_gone && see(std::nullopt, incidents, now);
}

bool StateDesk::see(std::optional<k8s::ConfigMap> map, IncidentStore& incidents, const Now& now) {
  // Whoever deletes it wants the past forgotten, also where only the next list shows it.
  if (!map && seen_ && is_loaded_) incidents.forget_past();
  const bool news = map && (!seen_ || map->data != seen_->data);
  seen_ = std::move(map);
  file_.uid = seen_ ? seen_->meta.uid : std::string();
  file_.version = seen_ ? seen_->meta.resource_version : std::string();
  if (!seen_ && file_.newer_version) {
    file_.newer_version.reset();
    file_.saved.reset();
  }
  if (!news || !is_loaded_) return false;
  const auto entry = seen_->data.find(kStateEntry);
  if (sent_ && shows(*sent_)) {
    // The answer may have been lost, or be on its way.
    note_saved(*sent_, now);
    has_seen_own_ = true;
    return false;
  }
  if (has_saved_ && entry != seen_->data.end() && parse_state(entry->second).newer_version) {
    // A newer version leads or has led: what it wrote is not ours to write over.
    load(incidents, now);
    is_overwritten_ = true;
    return true;
  }
  if (has_saved_) {
    // Another hand, or a write that an API server had kept for long: ours is written again.
    file_.newer_version.reset();
    file_.saved.reset();
    is_overwritten_ = true;
    return false;
  }
  // The last words of the leader before us may reach us after its release of the Lease. Until a write of ours was
  // accepted, which happens only at the version that we have read, they count.
  load(incidents, now);
  return true;
}

bool StateDesk::begin_term(IncidentStore& incidents, const Now& now) {
  ++file_.term;
  has_saved_ = false;
  is_overwritten_ = false;
  sent_.reset();
  has_seen_own_ = false;
  awaited_since_.reset();
  if (!is_listed_) return false;
  load(incidents, now);
  return true;
}

void StateDesk::load(IncidentStore& incidents, const Now& now) {
  is_loaded_ = true;
  file_.saved = incidents.revision();
  file_.accepted = incidents.revision();
  file_.unread = false;
  file_.left_out = 0;
  file_.size = 0;
  file_.since = now.wall;
  file_.damage.reset();
  file_.newer_version.reset();
  if (!seen_) {
    // What was learned while it could not be read has never been written.
    if (incidents.revision() != 0) file_.saved.reset();
    file_.accepted = 0;
    return;
  }
  const auto entry = seen_->data.find(kStateEntry);
  if (entry != seen_->data.end()) file_.size = entry->second.size();
  auto content = entry == seen_->data.end() ? StateContent{.records = {},
                                                           .departed = {},
                                                           .sections = {},
                                                           .caps = {},
                                                           .newer_version = {},
                                                           .damage = "it has no entry devices.json"}
                                            : parse_state(entry->second);
  if (content.newer_version) {
    // What is remembered here stays, and is not written.
    file_.newer_version = content.newer_version;
    file_.saved.reset();
    return;
  }
  incidents.load(std::move(content.records), std::move(content.departed), std::move(content.caps));
  take_sections(std::move(content.sections), now);
  file_.damage = std::move(content.damage);
  // What was damaged is written anew although nothing has changed since.
  if (file_.damage) file_.saved.reset();
}

void StateDesk::take_sections(std::vector<StateSection> sections, const Now& now) {
  file_.unknown.clear();
  std::size_t size = 0;
  for (auto& section : sections) {
    if (section.name == kBrakeSection) {
      brakes_ = parse_brake_state(section.text, now);
    } else if (size + section.text.size() <= kUnknownLimit) {
      size += section.text.size();
      file_.unknown.push_back(std::move(section));
    }
  }
}

std::optional<MonoTime> StateDesk::waits(const std::string& own_namespace, const Now& now) {
  if (own_namespace.empty() || is_loaded_) return std::nullopt;
  if (!awaited_since_) awaited_since_ = now.mono;
  const MonoTime until = *awaited_since_ + kStatePatience;
  if (now.mono < until) return until;
  if (!file_.unread) {
    file_.unread = true;
    file_.saved.reset();
    file_.since = now.wall;
  }
  return std::nullopt;
}

void StateDesk::note_sent(const incident_state::WriteState& written) {
  sent_ = written;
  file_.for_charges = written.for_charges;
  is_overwritten_ = false;
}

bool StateDesk::shows(const incident_state::WriteState& written) const {
  if (!seen_ || !is_current(written)) return false;
  const auto entry = seen_->data.find(kStateEntry);
  return entry != seen_->data.end() && entry->second == written.text;
}

void StateDesk::note_saved(const incident_state::WriteState& written, const Now& now) {
  if (!is_current(written)) return;
  has_saved_ = true;
  if (!is_overwritten_) file_.saved = written.revision;
  file_.accepted = written.revision;
  file_.size = written.text.size();
  file_.left_out = written.left_out;
  file_.since = now.wall;
  file_.damage.reset();
}

}  // namespace dhc
