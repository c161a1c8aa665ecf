#include "reconcilers/eviction/queue.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>

#include "domain/cluster/gang.h"
#include "reconcilers/eviction/limits.h"

namespace dhc::eviction {

namespace {

struct Place {
  bool is_later = true;  ///< No slots are kept for it now.
  MonoTime tried_at;
  std::int64_t round = 0;  ///< Of those of one namespace that have not been tried; the others are all in one.
  MonoTime served_at;      ///< The namespace, last: with few slots each turn has one round only.
  std::size_t index = 0;   ///< In the plan's own order, for the others.
  const AffectedPod* affected = nullptr;
};

}  // namespace

std::vector<const AffectedPod*> fair_order(const PlanInput& input) {
  std::vector<Place> places;
  places.reserve(input.affected_pods.size());
  std::map<std::string_view, std::int64_t> untried;  // by namespace
  for (const auto& affected : input.affected_pods) {
    const auto& meta = affected.pod().meta;
    const auto* attempt = input.requests.eviction(meta.uid);
    const auto tried_at = attempt == nullptr ? MonoTime::min() : attempt->tried_at;
    const bool is_untried = tried_at == MonoTime::min();
    const auto& rules = affected.policy->evict;
    // Last whether it is a gang: that reads its labels.
    const bool is_kept_for =
        rules && rules->groups_together && kept_slots(affected, input.now).now && gang_of(affected.pod());
    places.push_back({.is_later = !is_kept_for,
                      .tried_at = tried_at,
                      .round = is_untried ? untried[meta.ns]++ : 0,
                      .served_at = is_untried ? input.requests.served_at(meta.ns) : MonoTime::min(),
                      .index = places.size(),
                      .affected = &affected});
  }
  // Not stable_sort: libstdc++ 12's is deprecated to clang.
  std::ranges::sort(places, {}, [](const Place& place) {
    return std::tie(place.is_later, place.tried_at, place.round, place.served_at, place.index);
  });
  std::vector<const AffectedPod*> order;
  order.reserve(places.size());
  for (const auto& place : places) order.push_back(place.affected);
  return order;
}

}  // namespace dhc::eviction
