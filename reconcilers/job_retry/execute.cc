#include "reconcilers/job_retry/execute.h"

#include <utility>

#include "reconcilers/job_retry/build.h"

namespace dhc::job_retry {

Status execute(const PatchJob& action, const k8s::Client& client, std::stop_token stop) {
  const auto request = build_patch(action);
  if (!request) return std::unexpected(request.error());
  auto answer = client.call(*request, std::move(stop));
  if (!answer) return judged(action, std::unexpected(std::move(answer.error())));
  return {};
}

Status execute(const RecreateJob& action, const k8s::Client& client, const std::stop_token& stop) {
  const auto read = build_read(action);
  if (!read) return std::unexpected(read.error());
  const auto dead = client.call(*read, stop);
  if (!dead) return std::unexpected(dead.error());
  const auto request = build_replacement(action, dead->body);
  if (!request) return std::unexpected(request.error());
  auto answer = client.call(*request, stop);
  // A create answers 409 for one reason only: the replacement exists, so an earlier attempt arrived.
  if (!answer && answer.error().kind != ErrorKind::Conflict) return std::unexpected(std::move(answer.error()));
  return {};
}

}  // namespace dhc::job_retry
