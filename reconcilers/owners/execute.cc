#include "reconcilers/owners/execute.h"

#include "reconcilers/owners/lookup.h"

namespace dhc::owners {

Found execute(const ReadOwner& action, const k8s::Client& client, const std::stop_token& stop) {
  Lookup lookup(action);
  while (const auto request = lookup.next()) lookup.answered(client.call(*request, stop));
  return {.sight = lookup.sight(), .status = lookup.status()};
}

}  // namespace dhc::owners
