#pragma once
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace dhc {

/// A set of handles that find equal ones again, in little more than a pointer's size each: open addressing. Made to
/// forget: whenever it is full, those go that `IsUsed` says nobody else holds. An empty handle stands for a free place.
template <class Handle, class Hash, class IsEqual, class IsFree, class IsUsed>
class HandleSet {
 public:
  /// The one that is equal; without one, this one from now on, which is said too.
  std::pair<Handle&, bool> take_in(const Handle& handle) {
    if ((count_ + 1) * 4 > places_.size() * 3) make_room();
    auto& place = place_of(handle);
    const bool is_new = IsFree{}(place);
    if (is_new) {
      place = handle;
      ++count_;
    }
    return {place, is_new};
  }
  [[nodiscard]] std::size_t size() const { return count_; }

 private:
  static constexpr std::size_t kFewest = 64;

  Handle& place_of(const Handle& handle) {
    const auto mask = places_.size() - 1;
    for (auto at = mixed(Hash{}(handle)) & mask;; at = (at + 1) & mask) {
      if (IsFree{}(places_[at]) || IsEqual{}(places_[at], handle)) return places_[at];
    }
  }
  static std::size_t mixed(std::size_t hash) {
    hash *= 0x9E3779B97F4A7C15U;
    return hash ^ (hash >> 32U);
  }
  void make_room() {
    auto old = std::exchange(places_, {});
    std::erase_if(old, [](const Handle& handle) { return IsFree{}(handle) || !IsUsed{}(handle); });
    count_ = old.size();
    auto size = kFewest;
    // Half full at most, so that the next time is as far away as it is long.
    while (size < count_ * 2) size *= 2;
    places_.resize(size);
    for (auto& handle : old) {
      auto& place = place_of(handle);
      place = std::move(handle);
    }
  }

  std::vector<Handle> places_;
  std::size_t count_ = 0;
};

}  // namespace dhc
