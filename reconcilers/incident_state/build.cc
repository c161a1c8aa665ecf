#include "reconcilers/incident_state/build.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "domain/contract/names.h"
#include "domain/contract/state_names.h"
#include "k8s-client/protocol/object_path.h"

namespace dhc::incident_state {

Result<k8s::Request> build_state(const WriteState& action) {
  using Json = nlohmann::ordered_json;
  if (!k8s::is_path_segment(action.ns) || !k8s::is_path_segment(action.name)) {
    return fail(ErrorKind::Invalid, "the state ConfigMap's namespace or name does not fit in a path");
  }
  Json metadata = {{"name", action.name}, {"namespace", action.ns}, {"labels", {{kManagedByLabel, kManagedBy}}}};
  if (!action.uid.empty()) {
    metadata["uid"] = action.uid;
    metadata["resourceVersion"] = action.resource_version;
  }
  const Json body = {{"apiVersion", "v1"},
                     {"kind", "ConfigMap"},
                     {"metadata", std::move(metadata)},
                     {"data", {{kIncidentsEntry, action.text}}}};
  return k8s::write_request(k8s::Method::Patch,
                            "/api/v1/namespaces/" + k8s::percent_encode(action.ns) + "/configmaps/" +
                                k8s::percent_encode(action.name) + "?fieldManager=" + std::string(kFieldManager) +
                                "&force=true",
                            k8s::kApplyPatch, json_text(body));
}

}  // namespace dhc::incident_state
