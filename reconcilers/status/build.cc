#include "reconcilers/status/build.h"

#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "k8s-client/protocol/object_path.h"

namespace dhc::status {

Result<k8s::Request> build_status(const WriteStatus& action, std::string_view instance) {
  using Json = nlohmann::ordered_json;
  if (!k8s::is_path_segment(action.ns) || !k8s::is_path_segment(action.name)) {
    return fail(ErrorKind::Invalid, "the status ConfigMap's namespace or name does not fit in a path");
  }
  const Json body = {
      {"apiVersion", "v1"},
      {"kind", "ConfigMap"},
      {"metadata",
       {{"name", action.name},
        {"namespace", action.ns},
        {"labels", {{kManagedByLabel, kManagedBy}}},
        {"annotations", {{kWrittenByAnnotation, instance}, {kWrittenAtAnnotation, format_rfc3339(action.at)}}}}},
      {"data", {{kStatusEntry, action.text}}}};
  return k8s::write_request(
      k8s::Method::Patch,
      fmt::format("/api/v1/namespaces/{}/configmaps/{}?fieldManager={}&force=true", k8s::percent_encode(action.ns),
                  k8s::percent_encode(action.name), kFieldManager),
      k8s::kApplyPatch, json_text(body));
}

}  // namespace dhc::status
