#include "app/policy_map.h"

#include <utility>
#include <variant>

#include <fmt/format.h>

#include "domain/contract/names.h"
#include "domain/policy/config_text.h"

namespace dhc {

namespace {
PolicyRead problem(std::string message) {
  return {
      .policy = fail(ErrorKind::NotFound, std::move(message)), .brake_release = {}, .cap_release = {}, .source = {}};
}

PolicyRead absent(const ConfigMapName& name) {
  auto read =
      problem(fmt::format("ConfigMap {}/{} does not exist: kubectl -n {} create configmap {} --from-file=policy.yaml",
                          name.ns, name.name, name.ns, name.name));
  read.source = Subject{.kind = "ConfigMap", .ns = name.ns, .name = name.name, .uid = {}};
  return read;
}

/// Of every annotation of that name, in the order of the names.
Result<std::vector<ScopedPause>> read_pauses(const k8s::Meta& meta) {
  constexpr std::size_t kMostPauses = 256;
  std::vector<ScopedPause> pauses;
  for (const auto& [name, text] : meta.annotations) {
    if (!name.starts_with(kScopedPausePrefix)) continue;
    auto pause =
        parse_pause({.name = fmt::format("configmap {}/{}, annotation {}", meta.ns, meta.name, name), .text = text});
    if (!pause) return fail(ErrorKind::Invalid, format_mistake(pause.error()));
    if (pauses.size() == kMostPauses) {
      return fail(ErrorKind::Invalid, fmt::format("configmap {}/{} has more than {} annotations {}NAME", meta.ns,
                                                  meta.name, kMostPauses, kScopedPausePrefix));
    }
    pauses.push_back(*std::move(pause));
  }
  return pauses;
}

PolicyRead read_map(const k8s::ConfigMap& map) {
  const auto& meta = map.meta;
  return {.policy = policy_of(parse_config_map(meta.ns, meta.name, map.data)),
          .brake_release = std::string(k8s::find(meta.annotations, kBrakeReleaseAnnotation).value_or("")),
          .cap_release = std::string(k8s::find(meta.annotations, kCapReleaseAnnotation).value_or("")),
          .pause_until = std::string(k8s::find(meta.annotations, kPauseUntilAnnotation).value_or("")),
          .pause_reason = std::string(k8s::find(meta.annotations, kPauseReasonAnnotation).value_or("")),
          .pauses = read_pauses(meta),
          .is_read = true,
          .source = Subject{.kind = "ConfigMap", .ns = meta.ns, .name = meta.name, .uid = meta.uid}};
}

const k8s::ConfigMap* named(const k8s::Object& object, const ConfigMapName& name) {
  const auto* map = std::get_if<k8s::ConfigMap>(&object);
  return map != nullptr && map->meta.ns == name.ns && map->meta.name == name.name ? map : nullptr;
}
}  // namespace

std::optional<PolicyRead> read_policy_map(const k8s::Delivery& delivery, const ConfigMapName& name) {
  if (const auto* snapshot = std::get_if<k8s::Snapshot>(&delivery)) {
    for (const auto& object : snapshot->objects) {
      if (const auto* map = named(object, name)) return read_map(*map);
    }
    return absent(name);
  }
  if (const auto* upsert = std::get_if<k8s::Upsert>(&delivery)) {
    if (const auto* map = named(upsert->object, name)) return read_map(*map);
    return std::nullopt;
  }
  if (const auto* gone = std::get_if<k8s::Remove>(&delivery)) {
    if (gone->ns == name.ns && gone->name == name.name) return absent(name);
    return std::nullopt;
  }
  if (const auto* bad = std::get_if<k8s::Unreadable>(&delivery)) {
    return problem(fmt::format("ConfigMap {}/{} could not be read: {}", name.ns, name.name, bad->why));
  }
  return std::nullopt;
}

}  // namespace dhc
