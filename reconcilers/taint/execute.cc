#include "reconcilers/taint/execute.h"

#include <utility>

#include "reconcilers/taint/build.h"

namespace dhc::taint {

namespace {
Status send(const Result<k8s::Request>& request, const k8s::Client& client, std::stop_token stop) {
  if (!request) return std::unexpected(request.error());
  auto answer = client.call(*request, std::move(stop));
  if (!answer) return std::unexpected(std::move(answer.error()));
  return {};
}
}  // namespace

Status execute(const ApplyRule& action, const k8s::Client& client, std::stop_token stop) {
  return send(build_rule(action), client, std::move(stop));
}

Status execute(const DeleteRule& action, const k8s::Client& client, std::stop_token stop) {
  auto status = send(build_delete(action), client, std::move(stop));
  if (!status && status.error().kind == ErrorKind::NotFound) return {};
  return status;
}

Status execute(const PatchNodeTaint& action, const k8s::Client& client, std::stop_token stop) {
  return send(build_node_taint(action), client, std::move(stop));
}

}  // namespace dhc::taint
