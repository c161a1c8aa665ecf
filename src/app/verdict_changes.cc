#include "app/verdict_changes.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace dhc {

VerdictChanges changes_between(std::span<const Verdict> before, std::span<const Verdict> after) {
  const auto earlier = [](const Verdict& a, const Verdict& b) {
    return std::tie(a.subject, a.device, a.reason) < std::tie(b.subject, b.device, b.reason);
  };
  VerdictChanges changes;
  std::ranges::set_difference(after, before, std::back_inserter(changes.begun), earlier);
  std::ranges::set_difference(before, after, std::back_inserter(changes.ended), earlier);
  return changes;
}

}  // namespace dhc
