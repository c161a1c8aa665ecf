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
  const Exposure* exposure = nullptr;
};

}  // namespace

std::vector<const Exposure*> fair_order(const Scene& scene) {
  std::vector<Place> places;
  places.reserve(scene.exposures.size());
  std::map<std::string_view, std::int64_t> untried;  // by namespace
  for (const auto& exposure : scene.exposures) {
    const auto& meta = exposure.pod().meta;
    const auto* attempt = scene.ledger.eviction(meta.uid);
    const auto tried_at = attempt == nullptr ? MonoTime::min() : attempt->tried_at;
    const bool is_untried = tried_at == MonoTime::min();
    places.push_back({.tried_at = tried_at,
                      .round = is_untried ? untried[meta.ns]++ : 0,
                      .served_at = is_untried ? scene.ledger.served_at(meta.ns) : MonoTime::min(),
                      .index = places.size(),
                      .exposure = &exposure});
  }
  // Not stable_sort: libstdc++ 12's is deprecated to clang.
  std::ranges::sort(places, {}, [](const Place& place) {
    return std::tie(place.tried_at, place.round, place.served_at, place.index);
  });
  std::vector<const Exposure*> order;
  order.reserve(places.size());
  for (const auto& place : places) order.push_back(place.exposure);
  return order;
}

}  // namespace dhc::eviction
