#include "reconcilers/notice/execute.h"

#include <utility>

#include "reconcilers/notice/build.h"

namespace dhc::notice {

Status execute(const ApplyCondition& action, const k8s::Client& client, std::stop_token stop) {
  const auto request = build_condition(action);
  if (!request) return std::unexpected(request.error());
  auto answer = client.call(*request, std::move(stop));
  if (!answer) return std::unexpected(std::move(answer.error()));
  return {};
}

Status execute(const EmitEvent& action, std::string_view reporting_instance, const k8s::Client& client,
               std::stop_token stop) {
  const auto request = build_event(action, reporting_instance);
  if (!request) return std::unexpected(request.error());
  auto answer = client.call(*request, std::move(stop));
  // A create answers 409 for one reason only: the Event exists, so an earlier attempt arrived.
  if (!answer && answer.error().kind != ErrorKind::Conflict) return std::unexpected(std::move(answer.error()));
  return {};
}

}  // namespace dhc::notice
