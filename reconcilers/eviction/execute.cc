#include "reconcilers/eviction/execute.h"

#include <utility>

#include "reconcilers/eviction/build.h"

namespace dhc::eviction {

Status execute(const EvictPod& action, const k8s::Client& client, std::stop_token stop) {
  return k8s::send(build_eviction(action), client, std::move(stop));
}

}  // namespace dhc::eviction
