#pragma once
#include <cstdint>
#include <string_view>

namespace dhc {

/// FNV-1a, 64 bits: for names that must be the same on every machine and in every run. Not for hostile keys in tables.
[[nodiscard]] constexpr std::uint64_t stable_hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  return hash;
}

}  // namespace dhc
