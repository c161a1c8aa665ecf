#include "base/nearest_word.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace dhc {

namespace {

constexpr std::size_t kLongest = 64;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same(char a, char b) { return lower(a) == lower(b); }

/// Letters to change, add, leave out or swap with the next (optimal string alignment); `b` is not longer than kLongest.
std::size_t distance(std::string_view a, std::string_view b) {
  using Row = std::array<std::size_t, kLongest + 1>;
  Row before{};  // two rows above
  Row above{};
  Row row{};
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(above, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = above[j - 1] + (same(a[i - 1], b[j - 1]) ? 0U : 1U);
      row[j] = std::min({changed, above[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view nearest_word(std::string_view word, std::span<const std::string_view> known) {
  if (word.size() > kLongest) return {};
  std::string_view best;
  std::size_t least = word.size() / 3 + 1;
  for (const std::string_view candidate : known) {
    if (candidate.size() > kLongest) continue;
    const std::size_t apart = distance(word, candidate);
    if (apart >= least) continue;
    least = apart;
    best = candidate;
  }
  return best;
}

}  // namespace dhc
