#include "app/write_key.h"

#include <variant>

#include "domain/write_keys.h"

namespace dhc {

std::optional<WriteKey> write_key(const Action& action) {
  if (const auto* apply = std::get_if<taint::ApplyRule>(&action)) {
    return WriteKey{.key = rule_write_key(apply->name), .seen_version = apply->resource_version};
  }
  if (const auto* removal = std::get_if<taint::DeleteRule>(&action)) {
    return WriteKey{.key = rule_write_key(removal->name), .seen_version = removal->resource_version};
  }
  if (const auto* patch = std::get_if<taint::PatchNodeTaint>(&action)) {
    return WriteKey{.key = node_write_key(patch->node), .seen_version = patch->resource_version};
  }
  if (const auto* state = std::get_if<memory::WriteState>(&action)) {
    return WriteKey{.key = std::string(kStateKey), .seen_version = state->resource_version};
  }
  if (const auto* patch = std::get_if<job_retry::PatchJob>(&action)) {
    return WriteKey{.key = job_write_key(patch->uid), .seen_version = patch->resource_version};
  }
  if (const auto* made = std::get_if<job_retry::RecreateJob>(&action)) {
    return WriteKey{.key = job_recreation_key(made->uid), .seen_version = {}};
  }
  return std::nullopt;
}

bool makes_taint(const Action& action) {
  const auto* apply = std::get_if<taint::ApplyRule>(&action);
  const auto* patch = std::get_if<taint::PatchNodeTaint>(&action);
  return (apply != nullptr && apply->uid.empty()) || (patch != nullptr && patch->add);
}

}  // namespace dhc
