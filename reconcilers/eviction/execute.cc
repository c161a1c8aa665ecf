#include "reconcilers/eviction/execute.h"

#include <utility>

#include "reconcilers/eviction/build.h"

namespace dhc::eviction {

Status execute(const EvictPod& action, const k8s::Client& client, std::stop_token stop) {
  const auto request = build_eviction(action);
  if (!request) return std::unexpected(request.error());
  auto answer = client.call(*request, std::move(stop));
  if (!answer) return std::unexpected(std::move(answer.error()));
  return {};
}

}  // namespace dhc::eviction
