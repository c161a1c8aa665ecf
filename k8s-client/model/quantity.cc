#include "k8s-client/model/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "base/digit.h"

namespace dhc::k8s {

namespace {

struct Suffix {
  std::string_view text;
  int tens = 0;  ///< Power of ten.
  int twos = 0;  ///< Power of two.
};
constexpr std::array<Suffix, 16> kSuffixes = {
    Suffix{"", 0, 0},    Suffix{"n", -9, 0},  Suffix{"u", -6, 0},  Suffix{"m", -3, 0},
    Suffix{"k", 3, 0},   Suffix{"M", 6, 0},   Suffix{"G", 9, 0},   Suffix{"T", 12, 0},
    Suffix{"P", 15, 0},  Suffix{"E", 18, 0},  Suffix{"Ki", 0, 10}, Suffix{"Mi", 0, 20},
    Suffix{"Gi", 0, 30}, Suffix{"Ti", 0, 40}, Suffix{"Pi", 0, 50}, Suffix{"Ei", 0, 60}};

std::optional<Suffix> read_suffix(std::string_view text) {
  const auto* known = std::ranges::find(kSuffixes, text, &Suffix::text);
  if (known != kSuffixes.end()) return *known;
  if (text.front() != 'e' && text.front() != 'E') return std::nullopt;
  text.remove_prefix(text.size() > 1 && text[1] == '+' ? 2 : 1);
  int exponent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exponent);
  if (error != std::errc{} || end != text.data() + text.size() || exponent > 18 || exponent < -18) return std::nullopt;
  return Suffix{"", exponent, 0};
}

bool multiply(std::uint64_t& value, std::uint64_t factor) {
  if (value > std::uint64_t{std::numeric_limits<std::int64_t>::max()} / factor) return false;
  value *= factor;
  return true;
}

}  // namespace

std::optional<std::int64_t> parse_whole_quantity(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  std::uint64_t value = 0;
  int tens = 0;
  bool any_digit = false;
  bool after_point = false;
  while (!text.empty() && (is_digit(text.front()) || (text.front() == '.' && !after_point))) {
    if (text.front() == '.') {
      after_point = true;
    } else {
      if (!multiply(value, 10)) return std::nullopt;
      value += static_cast<std::uint64_t>(text.front() - '0');
      if (value > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) return std::nullopt;
      any_digit = true;
      if (after_point) --tens;
    }
    text.remove_prefix(1);
  }
  if (!any_digit) return std::nullopt;
  const auto suffix = read_suffix(text);
  if (!suffix) return std::nullopt;
  if (value == 0) return 0;
  tens += suffix->tens;
  if (!multiply(value, std::uint64_t{1} << suffix->twos)) return std::nullopt;
  for (; tens > 0; --tens) {
    if (!multiply(value, 10)) return std::nullopt;
  }
  for (; tens < 0; ++tens) {
    if (value % 10 != 0) return std::nullopt;
    value /= 10;
  }
  return static_cast<std::int64_t>(value);
}

bool is_extended_resource(std::string_view name) {
  return name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.");
}

}  // namespace dhc::k8s
