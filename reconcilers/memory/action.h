#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace dhc::memory {

/// Server-side apply of the state ConfigMap: creates it where it is missing. **Source:** seen on 1.37.1: `create` and
/// `patch` of an apply can both be bound to the name.
struct WriteState {
  std::string ns;
  std::string name;
  std::string text;
  std::uint64_t revision = 0;  ///< Of the memory: what is saved when this is accepted.
  std::size_t left_out = 0;    ///< Records that did not fit.
  friend bool operator==(const WriteState&, const WriteState&) = default;
};

}  // namespace dhc::memory
