#pragma once
#include <cstdint>

namespace dhc::year {

/// The choices of one run: the same seed, the same choices on every machine. splitmix64.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31U);
  }
  /// In [0, 1).
  double share() { return static_cast<double>(next() >> 11U) * 0x1.0p-53; }
  int below(int end) { return static_cast<int>(next() % static_cast<std::uint64_t>(end)); }

 private:
  std::uint64_t state_;
};

}  // namespace dhc::year
