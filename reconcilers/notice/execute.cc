#include "reconcilers/notice/execute.h"

#include <utility>

#include "reconcilers/notice/build.h"

namespace dhc::notice {

Status execute(const ApplyCondition& action, const k8s::Client& client, std::stop_token stop) {
  return k8s::send(build_condition(action), client, std::move(stop));
}

Status execute(const EmitEvent& action, std::string_view reporting_instance, const k8s::Client& client,
               std::stop_token stop) {
  auto status = k8s::send(build_event(action, reporting_instance), client, std::move(stop));
  // A create answers 409 for one reason only: the Event exists, so an earlier attempt arrived.
  if (!status && status.error().kind == ErrorKind::Conflict) return {};
  return status;
}

}  // namespace dhc::notice
