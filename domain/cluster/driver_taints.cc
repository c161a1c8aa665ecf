#include "domain/cluster/driver_taints.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <ranges>
#include <string_view>

#include "base/wake.h"
#include "domain/cluster/health_tracker.h"
#include "domain/contract/names.h"

namespace dhc {

namespace {

/// Of one device, those that stand no more, but for the last of each effect: what a driver changes every second must
/// not grow.
constexpr std::size_t kMostEnded = 16;

bool is_standing(const SliceTaint& one) { return !one.until; }

/// The oldest that ended goes; those of its key and effect that followed it without a gap take its time. The last of an
/// effect stays: a fault is not taken back by the number of harmless words that follow it.
void shorten(std::vector<SliceTaint>& taints) {
  while (std::ranges::count_if(taints, [](const auto& one) { return !is_standing(one); }) >
         static_cast<std::ptrdiff_t>(kMostEnded)) {
    const auto oldest = std::ranges::find_if(taints, [&](const SliceTaint& one) {
      return !is_standing(one) && std::ranges::any_of(taints, [&](const SliceTaint& other) {
        return &other != &one && !is_standing(other) && other.taint.effect == one.taint.effect;
      });
    });
    if (oldest == taints.end()) return;
    for (auto& later : taints) {
      const bool follows = later.taint.key == oldest->taint.key && later.taint.effect == oldest->taint.effect &&
                           later.since.mono <= *oldest->until && oldest->since < later.since;
      if (!follows) continue;
      later.since = oldest->since;
      later.from_the_start = oldest->from_the_start;
    }
    taints.erase(oldest);
  }
}

using Wanted = std::vector<DeviceTaintMatch>;

void begin_with(TaintWord& word, const SliceTaint& one) {
  word.since = one.since;
  word.from_the_start = one.from_the_start;
}

std::optional<TaintWord> standing_word(const std::vector<SliceTaint>& taints, const Wanted& wanted) {
  std::optional<TaintWord> word;
  for (const auto& one : taints) {
    if (!is_standing(one) || !fits_any(wanted, one.taint)) continue;
    if (!word) {
      word.emplace();
      word->taint = one.taint;
      begin_with(*word, one);
    }
    word->said += (word->said.empty() ? "" : ", ") + to_string(one.taint);
    if (const auto& added = one.taint.time_added; added && (!word->added || *added < *word->added)) word->added = added;
    if (one.since < word->since) begin_with(*word, one);
  }
  return word;
}

/// What was named and gave way to this taint of its key without a gap, the last of it. **Source:** NVIDIA's driver
/// 0.5.0: one taint a key, a harmless XID 43 with effect None after a fatal 79.
std::optional<TaintWord> word_under(const SliceTaint& standing, const std::vector<SliceTaint>& taints,
                                    const Wanted& wanted) {
  auto from = standing.since;
  // Newest first: each is followed by the one before it.
  for (const auto& one : std::views::reverse(taints)) {
    if (is_standing(one) || one.taint.key != standing.taint.key || *one.until < from.mono) continue;
    if (fits_any(wanted, one.taint)) {
      return TaintWord{.since = one.since,
                       .from_the_start = one.from_the_start,
                       .added = one.taint.time_added,
                       .unknown_from = one.until,
                       .taint = one.taint,
                       .said = to_string(one.taint) + ", now " + to_string(standing.taint),
                       .overwritten = true};
    }
    from = std::min(from, one.since);
  }
  return std::nullopt;
}

/// Of several keys that were written over the one whose incident is open, and else the one that stood last.
std::optional<TaintWord> overwritten_word(const std::vector<SliceTaint>& taints, const Wanted& wanted,
                                          std::string_view open_key) {
  const auto rank = [&](const TaintWord& word) { return std::pair(word.taint.key == open_key, *word.unknown_from); };
  std::optional<TaintWord> best;
  for (const auto& standing : taints) {
    auto word = is_standing(standing) ? word_under(standing, taints, wanted) : std::nullopt;
    if (word && (!best || rank(*best) < rank(*word))) best = std::move(word);
  }
  return best;
}

/// A fault that changes its number, or joins another in one key, is the same fault; and so is one over which another
/// taint of its key was written for a while, or still is when the next one comes.
void follow_back(TaintWord& word, const std::vector<SliceTaint>& taints, const Wanted& wanted) {
  std::map<std::string_view, MonoTime> covered;  // by key: since when some taint of it stood without a gap
  for (const auto& one : taints) {
    if (!is_standing(one)) continue;
    auto& from = covered.try_emplace(one.taint.key, word.since.mono).first->second;
    from = std::min(from, one.since.mono);
  }
  for (const auto& one : std::views::reverse(taints)) {
    if (is_standing(one) || one.since >= word.since) continue;
    const auto from = covered.try_emplace(one.taint.key, word.since.mono).first;
    if (*one.until < std::min(from->second, word.since.mono)) continue;
    from->second = std::min(from->second, one.since.mono);
    const bool is_recent = word.since.mono - *one.until < kLongestUnknown;
    if (is_recent && fits_any(wanted, one.taint)) begin_with(word, one);
  }
}

/// Of one pool, in a map that is ordered by device.
template <class Map>
auto devices_of(Map& map, const Inventory::PoolName& pool) {
  return std::ranges::subrange(map.lower_bound(DeviceKey::dra(pool.first, pool.second, {})),
                               map.lower_bound(DeviceKey::dra(pool.first, pool.second + '\0', {})));
}

}  // namespace

void DriverTaints::look_at(const Inventory& inventory, const std::string& driver, const std::string& pool,
                           const Now& now) {
  const auto found = inventory.pools().find({driver, pool});
  if (found != inventory.pools().end()) look_at(found->first, found->second, now);
}

void DriverTaints::begin_anew(const std::string& driver, const std::string& pool) {
  const auto devices = devices_of(tainted_, {driver, pool});
  tainted_.erase(devices.begin(), devices.end());
  seen_.erase({driver, pool});
}

void DriverTaints::look_at(const PoolName& name, const Pool& pool, const Now& now) {
  for (auto& [key, device] : devices_of(tainted_, name)) {
    const bool is_published = pool.published && pool.devices.contains(key.device);
    if (!is_published && !device.hidden_at) device.hidden_at = now.mono;
  }
  if (!pool.published) return;
  const bool is_first = seen_.insert(name).second;
  for (const auto& [device, published] : pool.devices) {
    follow(DeviceKey::dra(name.first, name.second, device), published, is_first, now);
  }
}

void DriverTaints::follow(const DeviceKey& key, const PublishedDevice& published, bool is_first, const Now& now) {
  std::vector<k8s::Taint> shown;
  // One with our own key would be our rule in a driver's copy.
  std::ranges::copy_if(published.taints, std::back_inserter(shown),
                       [](const k8s::Taint& taint) { return !taint.key.empty() && taint.key != kTaintKey; });
  if (shown.empty()) return (void)tainted_.erase(key);
  speakers_.insert(key.scope);
  auto& device = tainted_[key];
  // As with a report: what was before a long silence says nothing about now.
  if (device.hidden_at && now.mono - *device.hidden_at >= kLongestUnknown) device.taints.clear();
  device.hidden_at.reset();
  for (auto& old : device.taints) {
    const auto now_there = std::ranges::find(shown, old.taint);
    if (is_standing(old) && now_there == shown.end()) {
      old.until = now.mono;
      lapses_.try_emplace(key, now.mono + kLongestUnknown);
    }
    if (is_standing(old)) old.taint.time_added = now_there->time_added;
  }
  for (const auto& taint : shown) {
    const auto stands = [&](const SliceTaint& old) { return is_standing(old) && old.taint == taint; };
    if (std::ranges::any_of(device.taints, stands)) continue;
    device.taints.push_back({.taint = taint, .since = moment_of(now), .from_the_start = is_first});
  }
  shorten(device.taints);
}

void DriverTaints::forget(const Now& now, const std::function<bool(const DeviceKey&)>& is_held) {
  std::erase_if(tainted_, [&](const auto& entry) {
    const auto& hidden_at = entry.second.hidden_at;
    return hidden_at && now.mono - *hidden_at >= kLongestUnknown && !is_held(entry.first);
  });
}

void DriverTaints::forget_but(const Inventory& inventory) {
  const auto is_gone = [&](const PoolName& name) { return !inventory.pools().contains(name); };
  std::erase_if(tainted_, [&](const auto& entry) { return is_gone({entry.first.scope, entry.first.place}); });
  std::erase_if(seen_, is_gone);
}

std::vector<DeviceKey> DriverTaints::devices() const {
  std::vector<DeviceKey> keys;
  keys.reserve(tainted_.size());
  for (const auto& [key, device] : tainted_) keys.push_back(key);
  return keys;
}

std::vector<k8s::Taint> DriverTaints::standing(const DeviceKey& key) const {
  std::vector<k8s::Taint> found;
  const auto device = tainted_.find(key);
  if (device == tainted_.end()) return found;
  for (const auto& one : device->second.taints) {
    if (is_standing(one)) found.push_back(one.taint);
  }
  return found;
}

std::vector<DeviceKey> DriverTaints::lapsed(const Now& now) {
  std::erase_if(lapses_, [&](const auto& entry) { return !tainted_.contains(entry.first); });
  std::vector<DeviceKey> due;
  for (auto& [key, at] : lapses_) {
    if (at > now.mono) continue;
    due.push_back(key);
    Wake next;
    for (const auto& one : tainted_.at(key).taints) {
      if (one.until) next.note_after(now.mono, *one.until + kLongestUnknown);
    }
    at = next.at().value_or(MonoTime::max());
  }
  std::erase_if(lapses_, [](const auto& entry) { return entry.second == MonoTime::max(); });
  return due;
}

std::optional<MonoTime> DriverTaints::next_lapse() const {
  Wake next;
  for (const auto& [key, at] : lapses_) next.note(at);
  return next.at();
}

std::optional<TaintWord> DriverTaints::word_for(const DeviceKey& key, const std::vector<DeviceTaintMatch>& wanted,
                                                MonoTime now, std::string_view open_key) const {
  const auto found = wanted.empty() ? tainted_.end() : tainted_.find(key);
  if (found == tainted_.end()) return std::nullopt;
  const auto& [taints, hidden_at] = found->second;
  auto word = standing_word(taints, wanted);
  if (!word) word = overwritten_word(taints, wanted, open_key);
  if (!word) return std::nullopt;
  if (word->overwritten && word->taint.key != open_key && now - *word->unknown_from >= kLongestUnknown)
    return std::nullopt;
  if (hidden_at) word->unknown_from = std::min(*hidden_at, word->unknown_from.value_or(*hidden_at));
  follow_back(*word, taints, wanted);
  return word;
}

}  // namespace dhc
