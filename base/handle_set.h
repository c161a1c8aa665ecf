#pragma once
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace dhc {

/// A set of handles that find equal ones again, in little more than a pointer's size each: open addressing. Made to
/// forget: whenever it is full, those go that `IsUsed` says nobody else holds. An empty handle stands for a free place.
/// A look takes `kLongestRun` steps at most, whatever names a tenant chooses: of many with one hash some are not found.
template <class Handle, class Hash, class IsEqual, class IsFree, class IsUsed>
class HandleSet {
 public:
  static constexpr std::size_t kLongestRun = 64;

  /// The one that is equal; where none is found, this one from now on, which is said too.
  std::pair<Handle&, bool> take_in(const Handle& handle) {
    if ((count_ + 1) * 4 > places_.size() * 3) make_room();
    auto& place = place_of(handle);
    if (!IsFree{}(place) && IsEqual{}(place, handle)) return {place, false};
    put(place, handle);
    return {place, true};
  }
  [[nodiscard]] std::size_t size() const { return count_; }

 private:
  static constexpr std::size_t kFewest = 64;

  /// Where it is or may be put: free, or that of the first of a run that is too long.
  Handle& place_of(const Handle& handle) {
    const auto mask = places_.size() - 1;
    const auto first = mixed(Hash{}(handle)) & mask;
    for (std::size_t step = 0; step < kLongestRun; ++step) {
      auto& place = places_[(first + step) & mask];
      if (IsFree{}(place) || IsEqual{}(place, handle)) return place;
    }
    return places_[first];
  }
  void put(Handle& place, Handle handle) {
    count_ += IsFree{}(place) ? 1U : 0U;
    place = std::move(handle);
  }
  static std::size_t mixed(std::size_t hash) {
    hash *= 0x9E3779B97F4A7C15U;
    return hash ^ (hash >> 32U);
  }
  void make_room() {
    auto old = std::exchange(places_, {});
    std::erase_if(old, [](const Handle& handle) { return IsFree{}(handle) || !IsUsed{}(handle); });
    count_ = 0;
    auto size = kFewest;
    // Half full at most, so that the next time is as far away as it is long.
    while (size < old.size() * 2) size *= 2;
    places_.resize(size);
    for (auto& handle : old) {
      auto& place = place_of(handle);
      put(place, std::move(handle));
    }
  }

  std::vector<Handle> places_;
  std::size_t count_ = 0;
};

}  // namespace dhc
