#pragma once
#include <cstddef>
#include <cstdlib>
#include <variant>

#include "k8s-client/model/decoder.h"

// What holds for every event of a watch, whatever the bytes and however it is encoded.

namespace fuzz {

/// The longest line or frame.
inline constexpr std::size_t kCap = std::size_t{64} * 1024;

inline void must(bool holds) {
  if (!holds) std::abort();
}

/// It has an identity or a version, or is bad with a reason. What a Status holds is its reader's matter.
inline void check_event(const dhc::k8s::WatchEvent& event) {
  using namespace dhc::k8s;
  if (const auto* changed = std::get_if<Changed>(&event.what))
    must(event.resource_version == meta_of(changed->object).resource_version);
  if (const auto* deleted = std::get_if<Deleted>(&event.what)) must(!deleted->name.empty() && !deleted->uid.empty());
  if (std::holds_alternative<Bookmark>(event.what)) must(!event.resource_version.empty());
  if (const auto* bad = std::get_if<BadObject>(&event.what)) must(!bad->why.empty());
}

}  // namespace fuzz
