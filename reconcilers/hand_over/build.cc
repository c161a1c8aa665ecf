#include "reconcilers/hand_over/build.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "k8s-client/protocol/object_path.h"

namespace dhc::hand_over {

Result<k8s::Request> build_conditions(const ApplyNodeConditions& action) {
  if (!k8s::is_path_segment(action.node)) return fail(ErrorKind::Invalid, "the node has no usable name");
  if (action.uid.empty()) return fail(ErrorKind::Invalid, "the node has no UID");
  auto conditions = nlohmann::ordered_json::array();
  for (const auto& condition : action.conditions) {
    if (!condition.last_transition) return fail(ErrorKind::Invalid, "the condition has no time");
    // The time of a heartbeat that nobody renews: without one, tools show the year 1.
    const auto at = format_rfc3339(*condition.last_transition);
    conditions.push_back({{"type", condition.type},
                          {"status", condition.status},
                          {"reason", condition.reason},
                          {"message", condition.message},
                          {"lastHeartbeatTime", at},
                          {"lastTransitionTime", at}});
  }
  const nlohmann::ordered_json body = {{"apiVersion", "v1"},
                                       {"kind", "Node"},
                                       {"metadata", {{"name", action.node}, {"uid", action.uid}}},
                                       {"status", {{"conditions", std::move(conditions)}}}};
  return k8s::write_request(
      k8s::Method::Patch,
      "/api/v1/nodes/" + k8s::percent_encode(action.node) + "/status?fieldManager=" + std::string(kHandOverManager),
      k8s::kApplyPatch, json_text(body));
}

}  // namespace dhc::hand_over
