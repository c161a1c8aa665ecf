#include "reconcilers/memory/execute.h"

#include <utility>

#include "reconcilers/memory/build.h"

namespace dhc::memory {

Status execute(const WriteState& action, const k8s::Client& client, std::stop_token stop) {
  return k8s::send(build_state(action), client, std::move(stop));
}

}  // namespace dhc::memory
