#include "reconcilers/job_retry/execute.h"

#include <utility>

#include "reconcilers/job_retry/build.h"

namespace dhc::job_retry {

Status execute(const PatchJob& action, const k8s::Client& client, std::stop_token stop) {
  const auto request = build_patch(action);
  if (!request) return std::unexpected(request.error());
  return judged(action, k8s::send(request, client, std::move(stop)));
}

Status execute(const RecreateJob& action, const k8s::Client& client, const std::stop_token& stop) {
  const auto read = build_read(action);
  if (!read) return std::unexpected(read.error());
  const auto dead = client.call(*read, stop);
  if (!dead) return std::unexpected(dead.error());
  const auto request = build_replacement(action, dead->body);
  if (!request) return std::unexpected(request.error());
  auto status = k8s::send(request, client, stop);
  if (status || status.error().kind != ErrorKind::Conflict) return status;
  // It exists, because an earlier attempt arrived; or a quota's own write was overtaken, and nothing was made.
  const auto look = build_look(action);
  if (!look) return std::unexpected(look.error());
  const auto found = client.call(*look, stop);
  return found && is_replacement(action, found->body) ? Status() : status;
}

}  // namespace dhc::job_retry
