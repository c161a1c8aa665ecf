#include "domain/tuning/limit_counts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
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

/// When no more than `most` of those that were met by then are bad any more.
WallTime released_at(const std::vector<Stay>& met, std::size_t count, std::int64_t most) {
  std::map<const BrokenDevice*, WallTime> ends;
  for (std::size_t i = 0; i < count; ++i) ends[met[i].device] = std::max(ends[met[i].device], met[i].to);
  std::vector<WallTime> times;
  for (const auto& [device, end] : ends) times.push_back(end);
  std::ranges::sort(times, std::ranges::greater());
  return times[static_cast<std::size_t>(most)];
}

void count_brake(const std::vector<Stay>& met, const BrakeScope& scope, std::int64_t known, const Limits& limits,
                 BrakeCount& count) {
  std::optional<WallTime> engaged_until;
  for (std::size_t i = 0; i < met.size(); ++i) {
    std::set<const BrokenDevice*> recent;
    for (std::size_t j = i + 1; j-- > 0 && met[i].from - met[j].from < limits.brake_within;)
      recent.insert(met[j].device);
    const auto bad = static_cast<std::int64_t>(recent.size());
    count.most = std::max(count.most, bad);
    if (!engages(limits, scope, bad, known)) continue;
    // What comes while it is engaged prolongs it.
    const auto until = released_at(met, i + 1, most_bad(limits, scope, known)) + kReleaseSettle;
    if (!engaged_until || met[i].from >= *engaged_until) count.engaged.push_back(met[i].from);
    engaged_until = std::max(engaged_until.value_or(until), until);
  }
}

template <class Is>
std::size_t devices_in(const std::vector<Told>& told, const Is& is) {
  return static_cast<std::size_t>(std::ranges::count_if(told, [&](const Told& one) { return is(*one.device); }));
}

std::size_t broken_in(const std::vector<Told>& told, const Place& place, Reach reach) {
  return devices_in(told, [&](const BrokenDevice& device) { return place_of(device, reach) == place; });
}

/// `counts_until`: when an incident that was allowed counts no more.
template <class Until>
CapCount count_cap(const FaultTrace& trace, const std::vector<Told>& told, const Cap& cap, Reach reach,
                   const Until& counts_until) {
  CapCount count;
  for (const auto& [place, incidents] : by_place(told, reach, [](const Life& life) { return life.held; })) {
    const auto allowed = allowed_by(cap, known_in(trace, place, broken_in(told, place, reach)));
    std::multiset<WallTime> counted;  // by when each counts no more
    for (const Stay& incident : incidents) {
      counted.erase(counted.begin(), counted.upper_bound(incident.from));
      const auto wanted = static_cast<std::int64_t>(counted.size()) + 1;
      if (wanted > allowed) {
        count.refused.push_back(incident.from);
        continue;
      }
      count.most = std::max(count.most, wanted);
      counted.insert(counts_until(incident));
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
    count_brake(met, scope, known_in(trace, place, broken_in(told, place, reach)), limits, count);
  }
  std::ranges::sort(count.engaged);
  return count;
}

CapCount cap_count_of(const FaultTrace& trace, const std::vector<Told>& told, const Cap& cap, Reach reach) {
  return count_cap(trace, told, cap, reach, [](const Stay& incident) { return incident.to; });
}

CapCount day_count_of(const FaultTrace& trace, const std::vector<Told>& told, const Cap& cap) {
  return count_cap(trace, told, cap, Reach::Cluster,
                   [](const Stay& incident) { return incident.from + CapBook::kDay; });
}

}  // namespace dhc::tuning
