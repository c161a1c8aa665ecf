#include "simulator/api/store.h"

#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/rfc3339.h"

namespace dhc::sim {

Store::Store(std::uint64_t seed) : random_(seed) {}

std::string Store::time_text() const { return format_rfc3339(now_.wall); }

// splitmix64: a few lines, well mixed, the same on every machine.
std::uint64_t Store::next_random() {
  random_ += 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = random_;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

std::string Store::new_uid() {
  const auto a = next_random();
  const auto b = next_random();
  return fmt::format("{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}", a >> 32U, (a >> 16U) & 0xffffU, a & 0xfffU, b >> 52U,
                     b & 0xffffffffffffULL);
}

std::string Store::new_suffix(std::size_t length) {
  static constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::string suffix;
  for (std::size_t i = 0; i < length; ++i) suffix += kLetters[next_random() % kLetters.size()];
  return suffix;
}

ObjectPtr Store::get(Res res, const Name& name) const {
  const auto& objects = shelf(res).objects;
  const auto it = objects.find(name);
  return it == objects.end() ? nullptr : it->second;
}

void Store::restore(const Store& backup) {
  shelves_ = backup.shelves_;
  rv_ = backup.rv_;
  compacted_ = rv_;
  ++server_;  // the time goes on, and no UID is given twice
}

void Store::remember(Res res, Change change) {
  auto& changes = shelf(res).changes;
  changes.push_back(std::move(change));
  if (changes.size() > kHistory) {
    shelf(res).forgotten = changes.front().rv;
    changes.pop_front();
  }
}

ObjectPtr Store::create(Res res, Json object) {
  const auto& type = type_of(res);
  auto& metadata = object["metadata"];
  object["apiVersion"] = api_version_of(res);
  object["kind"] = type.kind;
  if (text(object, {"metadata", "name"}).empty()) {
    metadata["name"] = text(object, {"metadata", "generateName"}) + new_suffix();
  }
  metadata["uid"] = new_uid();
  metadata["creationTimestamp"] = time_text();
  if (type.has_generation) metadata["generation"] = 1;
  metadata["resourceVersion"] = std::to_string(++rv_);
  const Name name{ns_of(object), name_of(object)};
  auto stored = std::make_shared<const Json>(std::move(object));
  shelf(res).objects[name] = stored;
  remember(res, {ChangeType::Added, rv_, now_.mono, stored, nullptr});
  return stored;
}

ObjectPtr Store::replace(Res res, Json object) {
  const Name name{ns_of(object), name_of(object)};
  const auto before = get(res, name);
  if (before == nullptr) return nullptr;
  if (object == *before) return before;
  const auto& type = type_of(res);
  if (type.has_generation && object.contains("spec") && object.value("spec", Json()) != before->value("spec", Json())) {
    object["metadata"]["generation"] = number(*before, {"metadata", "generation"}) + 1;
  }
  object["metadata"]["resourceVersion"] = std::to_string(++rv_);
  auto stored = std::make_shared<const Json>(std::move(object));
  shelf(res).objects[name] = stored;
  remember(res, {ChangeType::Modified, rv_, now_.mono, stored, before});
  if (is_deleting(*stored) && number(*stored, {"metadata", "deletionGracePeriodSeconds"}) == 0 &&
      list(*stored, {"metadata", "finalizers"}).empty()) {
    remove(res, name);
  }
  return stored;
}

ObjectPtr Store::edit(Res res, const Name& name, const std::function<void(Json&)>& change) {
  const auto before = get(res, name);
  if (before == nullptr) return nullptr;
  Json object = *before;
  change(object);
  return replace(res, std::move(object));
}

void Store::remove(Res res, const Name& name) {
  const auto before = get(res, name);
  if (before == nullptr) return;
  Json last = *before;
  last["metadata"]["resourceVersion"] = std::to_string(++rv_);
  shelf(res).objects.erase(name);
  shelf(res).owners.erase(name);
  remember(res, {ChangeType::Deleted, rv_, now_.mono, std::make_shared<const Json>(std::move(last)), before});
}

void Store::request_delete(Res res, const Name& name, std::optional<std::int64_t> grace_seconds) {
  const auto object = get(res, name);
  if (object == nullptr) return;
  std::int64_t grace = 0;
  if (res == Res::Pods && !text(*object, {"spec", "nodeName"}).empty() && !is_terminal(*object)) {
    grace = grace_seconds.value_or(number(*object, {"spec", "terminationGracePeriodSeconds"}, 30));
  }
  const bool held = !list(*object, {"metadata", "finalizers"}).empty();
  if (grace <= 0 && !held) {
    remove(res, name);
    return;
  }
  if (is_deleting(*object) && number(*object, {"metadata", "deletionGracePeriodSeconds"}) <= grace) return;
  edit(res, name, [&](Json& changed) {
    changed["metadata"]["deletionTimestamp"] = format_rfc3339(now_.wall + std::chrono::seconds(grace));
    changed["metadata"]["deletionGracePeriodSeconds"] = grace;
  });
}

void Store::finish_delete(Res res, const Name& name) {
  const auto object = get(res, name);
  if (object == nullptr) return;
  if (list(*object, {"metadata", "finalizers"}).empty()) {
    remove(res, name);
    return;
  }
  edit(res, name, [&](Json& changed) {
    changed["metadata"]["deletionTimestamp"] = time_text();
    changed["metadata"]["deletionGracePeriodSeconds"] = 0;
  });
}

std::uint64_t Store::oldest_rv(Res res) const { return std::max(compacted_, shelf(res).forgotten); }

Objects Store::snapshot_at(Res res, std::uint64_t rv) const {
  Objects objects = shelf(res).objects;
  const auto& changes = shelf(res).changes;
  for (auto it = changes.rbegin(); it != changes.rend() && it->rv > rv; ++it) {
    const Name name{ns_of(*it->object), name_of(*it->object)};
    if (it->before == nullptr) {
      objects.erase(name);
    } else {
      objects[name] = it->before;
    }
  }
  return objects;
}

}  // namespace dhc::sim
