#include "reconcilers/taint/execute.h"

#include <utility>

#include "reconcilers/taint/build.h"

namespace dhc::taint {

StoredRule execute(const ApplyRule& action, const k8s::Client& client, std::stop_token stop) {
  const auto request = build_rule(action);
  if (!request) return {.status = std::unexpected(request.error())};
  return judge_answer(action, client.call(*request, std::move(stop)));
}

Status execute(const DeleteRule& action, const k8s::Client& client, std::stop_token stop) {
  auto status = k8s::send(build_delete(action), client, std::move(stop));
  if (!status && status.error().kind == ErrorKind::NotFound) return {};
  return status;
}

Status execute(const PatchNodeTaint& action, const k8s::Client& client, std::stop_token stop) {
  return k8s::send(build_node_taint(action), client, std::move(stop));
}

}  // namespace dhc::taint
