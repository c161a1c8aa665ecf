#include "domain/policy/config_reach.h"

#include <algorithm>

namespace dhc {

namespace {

/// A glob's own text matched as if it were a name: certain, unless a `?` meets a `*`.
bool glob_covers(const std::string& wide, const std::string& narrow) {
  if (wide == narrow) return true;
  if (wide.contains('?') && narrow.contains('*')) return false;
  return glob_matches(wide, narrow);
}

bool globs_cover(const std::vector<std::string>& wide, const std::vector<std::string>& narrow) {
  return std::ranges::all_of(narrow, [&](const std::string& inner) {
    return std::ranges::any_of(wide, [&](const std::string& outer) { return glob_covers(outer, inner); });
  });
}

bool devices_cover(const Match& wide, const Match& narrow) {
  if (wide.resources.empty() && wide.drivers.empty()) return true;
  if (narrow.resources.empty() && narrow.drivers.empty()) {
    return globs_cover(wide.resources, {"*"}) && globs_cover(wide.drivers, {"*"});
  }
  return globs_cover(wide.resources, narrow.resources) && globs_cover(wide.drivers, narrow.drivers);
}

/// Each demand of the wider one is made by the narrower one as well.
bool selector_covers(const LabelSelector& wide, const LabelSelector& narrow) {
  return std::ranges::all_of(wide.requirements, [&](const LabelSelector::Requirement& demand) {
    return std::ranges::find(narrow.requirements, demand) != narrow.requirements.end();
  });
}

template <class T>
bool contains_all(const std::vector<T>& all, const std::vector<T>& some) {
  return std::ranges::all_of(some, [&](const T& one) { return std::ranges::find(all, one) != all.end(); });
}

bool signals_cover(const Match& wide, const Match& narrow) {
  const bool asks_reports = !narrow.health.empty() || !narrow.health_words.empty();
  const bool messages = !wide.message || wide.message == narrow.message || !asks_reports;
  return messages && contains_all(wide.health, narrow.health) && contains_all(wide.health_words, narrow.health_words) &&
         contains_all(wide.claim_conditions, narrow.claim_conditions) &&
         contains_all(wide.device_taints, narrow.device_taints);
}

}  // namespace

bool covers(const Match& wide, const Match& narrow) {
  return devices_cover(wide, narrow) && selector_covers(wide.namespaces, narrow.namespaces) &&
         selector_covers(wide.pods, narrow.pods) && selector_covers(wide.nodes, narrow.nodes) &&
         signals_cover(wide, narrow);
}

}  // namespace dhc
