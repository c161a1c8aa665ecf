#include "cli/nearest_word.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace dhc::cli {

namespace {
/// Letters to change, add or leave out (Levenshtein).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0U);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U);
      diagonal = std::exchange(row[j], std::min({changed, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row.back();
}
}  // namespace

std::string nearest_word(std::string_view word, std::span<const std::string> known) {
  constexpr std::size_t kLongest = 64;
  if (word.size() > kLongest) return {};
  std::string best;
  std::size_t least = word.size() / 3 + 1;
  for (const auto& candidate : known) {
    const auto apart = distance(word, candidate);
    if (apart >= least) continue;
    least = apart;
    best = candidate;
  }
  return best;
}

}  // namespace dhc::cli
