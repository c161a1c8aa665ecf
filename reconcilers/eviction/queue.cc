#include "reconcilers/eviction/queue.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>

namespace dhc::eviction {

namespace {

struct Place {
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
    places.push_back({.tried_at = tried_at,
                      .round = is_untried ? untried[meta.ns]++ : 0,
                      .served_at = is_untried ? input.requests.served_at(meta.ns) : MonoTime::min(),
                      .index = places.size(),
                      .affected = &affected});
  }
  // Not stable_sort: libstdc++ 12's is deprecated to clang.
  std::ranges::sort(places, {}, [](const Place& place) {
    return std::tie(place.tried_at, place.round, place.served_at, place.index);
  });
  std::vector<const AffectedPod*> order;
  order.reserve(places.size());
  for (const auto& place : places) order.push_back(place.affected);
  return order;
}

}  // namespace dhc::eviction
