#pragma once
#include <cstddef>

namespace dhc::bench {

/// What operator new has been asked for in this process, up to now.
struct Allocations {
  std::size_t count = 0;
  std::size_t live_bytes = 0;  ///< As the allocator counts them: what was asked for and its own rounding.
};
[[nodiscard]] Allocations allocations();

}  // namespace dhc::bench
