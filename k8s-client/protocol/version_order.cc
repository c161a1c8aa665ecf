#include "k8s-client/protocol/version_order.h"

#include <algorithm>

namespace dhc::k8s {
namespace {

bool is_comparable(std::string_view version) {
  return !version.empty() && version.front() != '0' &&
         std::ranges::all_of(version, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::optional<std::strong_ordering> version_order(std::string_view a, std::string_view b) {
  if (!is_comparable(a) || !is_comparable(b)) return std::nullopt;
  if (a.size() != b.size()) return a.size() <=> b.size();
  return a.compare(b) <=> 0;
}

bool is_older_version(std::string_view version, std::string_view known) {
  const auto order = version_order(version, known);
  return order && *order == std::strong_ordering::less;
}

}  // namespace dhc::k8s
