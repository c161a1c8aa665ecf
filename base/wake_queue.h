#pragma once
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/now.h"

namespace dhc {

/// Keys and when each is due, at most one time each. What is due, and what comes next, is found without a walk over
/// all.
template <class Key>
class WakeQueue {
 public:
  /// The earlier of this time and the one that is known.
  void note(const Key& key, MonoTime at) {
    const auto known = at_.find(key);
    if (known == at_.end() || at < known->second) set(key, at);
  }
  void set(const Key& key, MonoTime at) {
    const auto [place, is_new] = at_.try_emplace(key, at);
    if (!is_new) order_.erase({place->second, key});
    place->second = at;
    order_.emplace(at, key);
  }
  void erase(const Key& key) {
    const auto known = at_.find(key);
    if (known == at_.end()) return;
    order_.erase({known->second, key});
    at_.erase(known);
  }
  void clear() {
    at_.clear();
    order_.clear();
  }

  /// Those whose time has come, the earliest first.
  [[nodiscard]] std::vector<Key> due(MonoTime now) const {
    std::vector<Key> keys;
    for (auto at = order_.begin(); at != order_.end() && at->first <= now; ++at) keys.push_back(at->second);
    return keys;
  }
  /// The earliest time that is still to come.
  [[nodiscard]] std::optional<MonoTime> next_after(MonoTime now) const {
    const auto next = order_.upper_bound(now);
    return next == order_.end() ? std::nullopt : std::optional(next->first);
  }
  [[nodiscard]] bool contains(const Key& key) const { return at_.contains(key); }

 private:
  using Entry = std::pair<MonoTime, Key>;
  /// Also by a time alone.
  struct InOrder {
    using is_transparent = void;
    bool operator()(const Entry& a, const Entry& b) const { return a < b; }
    bool operator()(const Entry& entry, MonoTime time) const { return entry.first < time; }
    bool operator()(MonoTime time, const Entry& entry) const { return time < entry.first; }
  };

  std::map<Key, MonoTime> at_;
  std::set<Entry, InOrder> order_;
};

}  // namespace dhc
