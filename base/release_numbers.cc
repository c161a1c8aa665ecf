#include "base/release_numbers.h"

#include <charconv>
#include <cstddef>

namespace dhc {

std::optional<std::array<int, 3>> release_numbers(std::string_view version) {
  std::array<int, 3> numbers{};
  for (char before = 'v'; int& number : numbers) {
    if (!version.starts_with(before)) return std::nullopt;
    version.remove_prefix(1);
    const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), number);
    if (error != std::errc{} || number < 0) return std::nullopt;
    version.remove_prefix(static_cast<std::size_t>(end - version.data()));
    before = '.';
  }
  return numbers;
}

}  // namespace dhc
