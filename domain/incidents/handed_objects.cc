#include "domain/incidents/handed_objects.h"

#include <utility>

namespace dhc {

const HandedObject* HandedObjects::find(const std::string& slot) const {
  const auto found = all_.find(slot);
  return found == all_.end() ? nullptr : &found->second;
}

void HandedObjects::take(Changes changes, std::uint64_t revision) {
  for (auto& [slot, object] : changes) {
    if (!object) {
      all_.erase(slot);
      continue;
    }
    object->revision = revision;
    all_.insert_or_assign(slot, *std::move(object));
  }
}

void HandedObjects::await_earlier(MonoTime come_by) {
  for (auto& [slot, object] : all_) {
    if (object.phase == HandedObject::Phase::Noted) object.comes_by = come_by;
  }
}

void HandedObjects::made(const std::string& slot) {
  const auto found = all_.find(slot);
  if (found != all_.end()) found->second.phase = HandedObject::Phase::Made;
}

void HandedObjects::removed(const std::string& slot) {
  const auto found = all_.find(slot);
  if (found != all_.end()) found->second.phase = HandedObject::Phase::Over;
}

void HandedObjects::doubted(const std::string& slot, MonoTime comes_by) {
  const auto found = all_.find(slot);
  if (found == all_.end()) return;
  found->second.is_doubted = true;
  found->second.comes_by = comes_by;
}

}  // namespace dhc
