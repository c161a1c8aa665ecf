#include "domain/tuning/limit_counts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "domain/limits/brake.h"
#include "domain/limits/cap_book.h"
#include "domain/limits/caps.h"

namespace dhc::tuning {

namespace {

using Place = std::pair<std::string, std::string>;  // driver or resource, and node

/// Where the device counts; none: the trace does not say on which node it is.
std::optional<Place> place_of(const BrokenDevice& device, Reach reach) {
  if (reach == Reach::Cluster) return Place(device.scope, {});
  if (device.node.empty()) return std::nullopt;
  return Place(device.scope, device.node);
}

std::int64_t known_in(const FaultTrace& trace, const Place& place, std::size_t there) {
  const auto found = trace.known.find(place);
  return std::max(found == trace.known.end() ? 0 : found->second, static_cast<std::int64_t>(there));
}

/// A time that a device is bad, or held.
struct Stay {
  WallTime from;
  WallTime to;
  const BrokenDevice* device;
};

/// By place and in order of time; `stays_of` gives those of one life.
template <class StaysOf>
std::map<Place, std::vector<Stay>> by_place(const std::vector<Told>& told, Reach reach, const StaysOf& stays_of) {
  std::map<Place, std::vector<Stay>> all;
  for (const auto& [device, life] : told) {
    const auto place = place_of(*device, reach);
    if (!place) continue;
    for (const auto& [from, to] : stays_of(life)) all[*place].push_back({from, to, device});
  }
  for (auto& [place, stays] : all) {
    std::ranges::sort(stays, {}, [](const Stay& stay) { return std::tie(stay.from, stay.to, stay.device->name); });
  }
  return all;
}

std::vector<Span> hits_of(const Life& life) {
  std::vector<Span> spans;
  for (const Hit& hit : life.hits) spans.push_back({hit.at, hit.over});
  return spans;
}

/// When no more than `most` cards of those that were met by then are bad any more.
WallTime released_at(const std::vector<Stay>& met, std::size_t count, std::int64_t most) {
  std::map<std::string_view, WallTime> ends;
  for (std::size_t i = 0; i < count; ++i) {
    auto& end = ends[met[i].device->card_name()];
    end = std::max(end, met[i].to);
  }
  std::vector<WallTime> times;
  for (const auto& [card, end] : ends) times.push_back(end);
  std::ranges::sort(times, std::ranges::greater());
  return times[static_cast<std::size_t>(most)];
}

void count_brake(const std::vector<Stay>& met, const BrakeScope& scope, std::int64_t known, const Limits& limits,
                 BrakeCount& count) {
  std::optional<WallTime> engaged_until;
  for (std::size_t i = 0; i < met.size(); ++i) {
    std::set<std::string_view> recent;
    for (std::size_t j = i + 1; j-- > 0 && met[i].from - met[j].from < limits.brake_within;)
      recent.insert(met[j].device->card_name());
    const auto bad = static_cast<std::int64_t>(recent.size());
    count.most = std::max(count.most, bad);
    if (!engages(limits, scope, bad, known)) continue;
    // What comes while it is engaged prolongs it.
    const auto until = released_at(met, i + 1, most_bad(limits, scope, known)) + kReleaseSettle;
    if (!engaged_until || met[i].from >= *engaged_until) count.engaged.push_back(met[i].from);
    engaged_until = std::max(engaged_until.value_or(until), until);
  }
}

std::size_t cards_in(const std::vector<Told>& told, const Place& place, Reach reach) {
  std::set<std::string_view> cards;
  for (const auto& [device, life] : told) {
    if (place_of(*device, reach) == place) cards.insert(device->card_name());
  }
  return cards.size();
}

/// What of an incident counts, and until when.
struct Counting {
  std::pair<std::string_view, std::size_t> what;
  WallTime until;
};

/// What counts already does not count once more. `counting_of`: of an incident, with its number from 1.
template <class CountingOf>
CapCount count_cap(const FaultTrace& trace, const std::vector<Told>& told, const Cap& cap, Reach reach,
                   const CountingOf& counting_of) {
  CapCount count;
  for (const auto& [place, incidents] : by_place(told, reach, [](const Life& life) { return life.held; })) {
    const auto allowed = allowed_by(cap, known_in(trace, place, cards_in(told, place, reach)));
    std::map<std::pair<std::string_view, std::size_t>, WallTime> counted;
    std::size_t number = 0;
    for (const Stay& incident : incidents) {
      std::erase_if(counted, [&](const auto& one) { return one.second <= incident.from; });
      const Counting counting = counting_of(incident, ++number);
      if (const auto known = counted.find(counting.what); known != counted.end()) {
        known->second = std::max(known->second, counting.until);
        continue;
      }
      const auto wanted = static_cast<std::int64_t>(counted.size()) + 1;
      if (wanted > allowed) {
        count.refused.push_back(incident.from);
        continue;
      }
      count.most = std::max(count.most, wanted);
      counted.emplace(counting.what, counting.until);
    }
  }
  std::ranges::sort(count.refused);
  return count;
}

}  // namespace

std::vector<Told> lives_of(const FaultTrace& trace, const Choice& choice, Witness witness) {
  std::vector<Told> all;
  for (const BrokenDevice& device : trace.broken) all.push_back({&device, life_of(device, trace, choice, witness)});
  return all;
}

BrakeCount brake_count_of(const FaultTrace& trace, const std::vector<Told>& told, const Limits& limits, Reach reach) {
  BrakeCount count;
  for (const auto& [place, met] : by_place(told, reach, hits_of)) {
    const BrakeScope scope{.scope = place.first, .node = place.second};
    count_brake(met, scope, known_in(trace, place, cards_in(told, place, reach)), limits, count);
  }
  std::ranges::sort(count.engaged);
  return count;
}

CapCount cap_count_of(const FaultTrace& trace, const std::vector<Told>& told, const Cap& cap, Reach reach) {
  return count_cap(trace, told, cap, reach, [](const Stay& incident, std::size_t /*number*/) {
    return Counting{{incident.device->card_name(), 0}, incident.to};
  });
}

CapCount day_count_of(const FaultTrace& trace, const std::vector<Told>& told, const Cap& cap) {
  return count_cap(trace, told, cap, Reach::Cluster, [](const Stay& incident, std::size_t number) {
    return Counting{{incident.device->name, number}, incident.from + CapBook::kDay};
  });
}

}  // namespace dhc::tuning
