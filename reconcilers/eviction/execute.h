#pragma once
#include <stop_token>

#include "base/error.h"
#include "domain/cluster/fresh_read.h"
#include "k8s-client/client.h"
#include "reconcilers/eviction/action.h"

namespace dhc::eviction {

/// How an attempt ended, and what its reads have shown.
struct Tried {
  Status status;
  FreshReads reads;
};

/// One attempt to evict a pod, by the requests of an `Exchange`. Done means that the API server accepted it, not that
/// the pod is gone. May block for 75 s; safe to repeat because of the UID precondition.
[[nodiscard]] Tried execute(const EvictPod& action, const k8s::Client& client, const std::stop_token& stop);

}  // namespace dhc::eviction
