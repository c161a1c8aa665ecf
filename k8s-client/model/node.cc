#include "k8s-client/model/node.h"

#include <algorithm>

namespace dhc::k8s {

std::int64_t amount_of(const std::vector<ResourceAmount>& amounts, std::string_view resource) {
  const auto at = std::ranges::find(amounts, resource, &ResourceAmount::resource);
  return at == amounts.end() ? 0 : at->amount;
}

}  // namespace dhc::k8s
