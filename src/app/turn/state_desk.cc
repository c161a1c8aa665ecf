#include "app/turn/state_desk.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_read.h"
#include "domain/contract/names.h"
#include "domain/contract/state_names.h"
#include "domain/incidents/ailing_state.h"
#include "domain/incidents/brake_state.h"
#include "domain/incidents/handed_state.h"
#include "domain/incidents/news_state.h"
#include "domain/incidents/state_caps.h"
#include "domain/incidents/state_merge.h"
#include "domain/incidents/state_text.h"
#include "domain/incidents/suspect_state.h"

namespace dhc {

namespace {

// What worked without a stored state goes on without one.
constexpr Millis kStatePatience = Seconds(30);

// However full all else is, this much is left for devices.
constexpr std::size_t kRoomForDevices = 192UL * 1024;
static_assert(kBrakeStateLimit + kSuspectStateLimit + kAilingStateLimit + kHandedStateLimit + kNewsStateLimit +
                  kUnknownLimit + kCapsLimit + kRoomForDevices <=
              kStateLimit);

std::string version_id(const k8s::ConfigMap& map) { return map.meta.uid + "/" + map.meta.resource_version; }

/// Which state of 0.1.0 the text says that it has taken over.
std::optional<std::string> take_imported(std::vector<StateSection>& sections) {
  const auto found = std::ranges::find(sections, kImportedSection, &StateSection::name);
  if (found == sections.end()) return std::nullopt;
  const auto said = read_json<nlohmann::ordered_json>(found->text);
  sections.erase(found);
  return said.is_string() ? std::optional(said.get<std::string>()) : std::nullopt;
}

const k8s::ConfigMap* state_map(const k8s::Object& object) {
  const auto* map = std::get_if<k8s::ConfigMap>(&object);
  return map != nullptr && map->meta.name == kIncidentsName ? map : nullptr;
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
    const bool loaded = see(std::move(found), incidents, now, snapshot->went_back);
    return is_loaded_ ? loaded : load_first(incidents, now);
  }
  if (const auto* upsert = std::get_if<k8s::Upsert>(&delivery)) {
    const auto* map = state_map(upsert->object);
    return map != nullptr && see(*map, incidents, now);
  }
  const auto* remove = std::get_if<k8s::Remove>(&delivery);
  const bool is_gone = remove != nullptr && remove->kind == k8s::Kind::ConfigMap && remove->name == kIncidentsName;
  return is_gone && see(std::nullopt, incidents, now);
}

bool StateDesk::take_earlier(std::optional<k8s::ConfigMap> map, IncidentStore& incidents, const Now& now) {
  knows_earlier_ = true;
  earlier_ = std::move(map);
  if (!is_loaded_) return load_first(incidents, now);
  // The last words of the leader before us, as in `see`. What comes later is taken over by the next term.
  if (has_saved_ || file_.newer_version || !has_unread_earlier()) return false;
  load(incidents, now);
  return true;
}

bool StateDesk::do_without_earlier(IncidentStore& incidents, const Now& now) {
  const bool is_late = awaited_since_ && now.mono >= *awaited_since_ + kStatePatience;
  if (is_loaded_ || !seen_ || !is_late) return false;
  load(incidents, now);
  return true;
}

bool StateDesk::note_policy(std::shared_ptr<const Policy> policy, IncidentStore& incidents, const Now& now) {
  policy_ = std::move(policy);
  if (!std::exchange(is_unweighed_, false) || has_saved_) return false;
  load(incidents, now);
  return true;
}

/// Nothing is decided on half of what is remembered.
bool StateDesk::load_first(IncidentStore& incidents, const Now& now) {
  if (!is_listed_ || !knows_earlier_) return false;
  load(incidents, now);
  return true;
}

bool StateDesk::has_unread_earlier() const {
  return earlier_ && version_id(*earlier_) != file_.imported && earlier_->data.contains(std::string(kStateEntry));
}

bool StateDesk::see(std::optional<k8s::ConfigMap> map, IncidentStore& incidents, const Now& now, bool went_back) {
  // Whoever deletes it wants the past forgotten, also where only the next list shows it. Where the server's data went
  // back nobody has deleted it, and it is written again.
  if (!map && seen_ && is_loaded_) {
    went_back ? file_.saved.reset() : incidents.forget_past();
    // 0.1.0's past is forgotten with it.
    if (!went_back) unwritten_import_.reset();
  }
  const bool news = map && (!seen_ || map->data != seen_->data);
  seen_ = std::move(map);
  file_.uid = seen_ ? seen_->meta.uid.str() : std::string();
  file_.version = seen_ ? seen_->meta.resource_version.str() : std::string();
  if (!seen_ && file_.newer_version) {
    file_.newer_version.reset();
    file_.saved.reset();
  }
  if (!news || !is_loaded_) return false;
  const auto entry = seen_->data.find(kIncidentsEntry);
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

void StateDesk::end_term() {
  ++file_.term;
  has_saved_ = false;
  is_overwritten_ = false;
  sent_.reset();
  has_seen_own_ = false;
  awaited_since_.reset();
}

bool StateDesk::begin_term(IncidentStore& incidents, const Now& now) {
  end_term();
  if (!is_loaded_) return false;
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
  // What a term before this one, or a standby, has taken over and nobody has written is to be taken over again.
  if (std::exchange(unwritten_import_, std::nullopt)) file_.imported.clear();
  if (!seen_ && !has_unread_earlier()) {
    // What was learned while it could not be read has never been written.
    if (incidents.revision() != 0) file_.saved.reset();
    file_.accepted = 0;
    return;
  }
  StateContent content;
  if (seen_) {
    const auto entry = seen_->data.find(kIncidentsEntry);
    if (entry == seen_->data.end()) {
      content.damage = fmt::format("it has no entry {}", kIncidentsEntry);
    } else {
      file_.size = entry->second.size();
      content = parse_state(entry->second);
    }
  }
  if (content.newer_version) {
    // What is remembered here stays, and is not written.
    file_.newer_version = content.newer_version;
    file_.saved.reset();
    return;
  }
  const auto imported = take_imported(content.sections);
  if (seen_) file_.imported = imported.value_or(std::string());
  const bool imports = has_unread_earlier();
  if (imports) {
    // Of a state that cannot be read nobody knows what it had taken over: that may be old by now.
    const bool is_unsure = content.damage && !imported;
    is_unsure ? (void)(file_.imported = version_id(*earlier_)) : add_earlier(content);
  }
  incidents.load(std::move(content.records), std::move(content.departed), std::move(content.caps));
  if (imports) {
    // A write that is on its way has none of it.
    incidents.note_change();
    unwritten_import_ = incidents.revision();
  }
  // A brake that cannot be read may hold yet.
  if (!content.damage) brakes_.emplace();
  take_sections(std::move(content.sections), now);
  file_.damage = std::move(content.damage);
  // What was damaged is written anew although nothing has changed since; what was taken over was never written, nor was
  // what was learned while it could not be read, of which some stays.
  if (file_.damage || imports || incidents.revision() != 0) file_.saved.reset();
}

/// The first time it is all that is remembered; after a rollback what is new in it is taken in.
void StateDesk::add_earlier(StateContent& content) {
  auto earlier = parse_state(earlier_->data.find(kStateEntry)->second);
  if (earlier.newer_version) {
    earlier.damage = fmt::format("ConfigMap {} is of version {}, which 0.1.0 did not write: it is left alone",
                                 kStateName, *earlier.newer_version);
  } else if (earlier.damage) {
    earlier.damage = fmt::format("ConfigMap {}: {}", kStateName, *earlier.damage);
  }
  file_.imported = version_id(*earlier_);
  if (!content.damage) content.damage = earlier.damage;
  if (!seen_) {
    earlier.newer_version.reset();
    earlier.damage = std::move(content.damage);
    content = std::move(earlier);
  } else {
    is_unweighed_ = policy_ == nullptr;
    merge_earlier(content, std::move(earlier), policy_ ? *policy_ : Policy());
  }
}

void StateDesk::take_sections(std::vector<StateSection> sections, const Now& now) {
  file_.unknown.clear();
  ailing_.clear();
  news_.clear();
  // What the state no longer names is over, or was learned of incidents that it knows otherwise.
  handed_.emplace();
  suspects_.emplace();
  std::size_t size = 0;
  for (auto& section : sections) {
    if (section.name == kBrakeSection) {
      brakes_ = parse_brake_state(section.text, now);
    } else if (section.name == kSuspectSection) {
      suspects_ = parse_suspect_state(section.text);
    } else if (section.name == kAilingSection) {
      ailing_ = parse_ailing_state(section.text);
    } else if (section.name == kHandedSection) {
      handed_ = parse_handed_state(section.text);
    } else if (section.name == kNewsSection) {
      news_ = parse_news_state(section.text);
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
  const auto entry = seen_->data.find(kIncidentsEntry);
  return entry != seen_->data.end() && entry->second == written.text;
}

void StateDesk::note_saved(const incident_state::WriteState& written, const Now& now) {
  if (!is_current(written)) return;
  has_saved_ = true;
  file_.accepted = written.revision;
  file_.size = written.text.size();
  file_.left_out = written.left_out;
  file_.since = now.wall;
  // What was composed before 0.1.0's state was taken over says nothing of that.
  if (unwritten_import_ && written.revision < *unwritten_import_) return;
  unwritten_import_.reset();
  if (!is_overwritten_) file_.saved = written.revision;
  file_.damage.reset();
}

}  // namespace dhc
