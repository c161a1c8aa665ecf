#include "reconcilers/memory/execute.h"

#include <utility>

#include "reconcilers/memory/build.h"

namespace dhc::memory {

Status execute(const WriteState& action, const k8s::Client& client, std::stop_token stop) {
  const auto request = build_state(action);
  if (!request) return std::unexpected(request.error());
  auto answer = client.call(*request, std::move(stop));
  if (!answer) return std::unexpected(std::move(answer.error()));
  return {};
}

}  // namespace dhc::memory
