#include "simulator/node/shape.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dhc::sim {
namespace {

std::string_view word(OnSigterm what) {
  switch (what) {
    case OnSigterm::Exit:
      return "exit";
    case OnSigterm::ExitZero:
      return "exit-zero";
    case OnSigterm::Ignore:
      return "ignore";
    case OnSigterm::Hang:
      return "hang";
  }
  return "exit";
}

std::string behaviour(std::string_view name) { return fmt::format("{}{}", kBehaviour, name); }

}  // namespace

std::string claim_template_name(const std::string& device_class, int count) {
  std::string name = device_class;
  std::ranges::replace(name, '.', '-');
  return fmt::format("{}-{}", name, count);
}

Json claim_spec(const std::string& device_class, int count) {
  const Json request = {
      {"name", "gpu"},
      {"exactly", {{"deviceClassName", device_class}, {"allocationMode", "ExactCount"}, {"count", count}}}};
  return {{"devices", {{"requests", Json::array({request})}}}};
}

Json pod_template(const PodShape& shape) {
  Json container = {{"name", "main"},
                    {"image", shape.image},
                    {"command", {"/bin/sh", "-c", "sleep 3600"}},
                    {"resources", Json::object()}};
  Json resources = Json::object();
  if (!shape.resource.empty()) {
    resources["limits"] = {{shape.resource, std::to_string(shape.count)}};
    resources["requests"] = resources["limits"];
  }
  const bool dra = !shape.device_class.empty() || !shape.shared_claim.empty();
  if (dra) {
    Json use = {{"name", "gpu"}};
    if (shape.name_request) use["request"] = "gpu";
    resources["claims"] = Json::array({use});
  }
  Json spec = {{"restartPolicy", shape.restart_policy},
               {"terminationGracePeriodSeconds", shape.grace_seconds},
               {"schedulerName", "default-scheduler"}};
  if (shape.device_in_sidecar) {
    Json sidecar = container;
    sidecar["name"] = "sidecar";
    sidecar["restartPolicy"] = "Always";
    sidecar["resources"] = resources;
    spec["initContainers"] = Json::array({sidecar});
  } else {
    container["resources"] = resources;
  }
  spec["containers"] = Json::array({container});
  for (const auto& path : shape.host_paths) {
    const Json mounted = {{"path", path}, {"type", ""}};
    spec["volumes"].push_back({{"name", fmt::format("host-{}", spec["volumes"].size())}, {"hostPath", mounted}});
  }
  if (!shape.pod_group.empty()) spec["schedulingGroup"] = {{"podGroupName", shape.pod_group}};
  if (!shape.node_selector.empty()) spec["nodeSelector"] = shape.node_selector;
  if (dra) {
    Json claim = {{"name", "gpu"}};
    if (shape.shared_claim.empty()) {
      claim["resourceClaimTemplateName"] = claim_template_name(shape.device_class, shape.count);
    } else {
      claim["resourceClaimName"] = shape.shared_claim;
    }
    spec["resourceClaims"] = Json::array({claim});
  }
  Json annotations = shape.annotations;
  if (shape.on_sigterm != OnSigterm::Exit) annotations[behaviour("on-sigterm")] = word(shape.on_sigterm);
  if (shape.run_for > Millis::zero()) annotations[behaviour("run-for-ms")] = std::to_string(shape.run_for.count());
  if (shape.image_missing) annotations[behaviour("image-missing")] = "true";
  Json metadata = {{"labels", shape.labels}};
  if (!annotations.empty()) metadata["annotations"] = std::move(annotations);
  return {{"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
}

}  // namespace dhc::sim
