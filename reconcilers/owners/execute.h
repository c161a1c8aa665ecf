#pragma once
#include <stop_token>
#include <utility>

#include "base/error.h"
#include "domain/cluster/owner_sight.h"
#include "k8s-client/client.h"
#include "reconcilers/owners/action.h"

namespace dhc::owners {

/// What a read has found, and how it ended.
struct Found {
  OwnerSight sight;
  Status status;
};

/// Reads the owner once, in at most seven requests of 5 s each. Writes nothing, so it is safe to repeat.
[[nodiscard]] Found execute(const ReadOwner& action, const k8s::Client& client, const std::stop_token& stop);

}  // namespace dhc::owners
