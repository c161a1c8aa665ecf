#include "reconcilers/taint/build.h"

#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/printable.h"
#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "domain/contract/our_taint.h"
#include "k8s-client/protocol/object_path.h"

namespace dhc::taint {

namespace {
using Json = nlohmann::ordered_json;

// **Source:** KEP-4680: the words are cut to 1,024 bytes already.
constexpr std::size_t kLongestSaid = 1024;

Result<std::string> rule_path(const std::string& api_version, const std::string& name) {
  if (!api_version.starts_with("resource.k8s.io/")) {
    return fail(ErrorKind::Invalid, "the server has no DeviceTaintRules");
  }
  if (!k8s::is_path_segment(name)) return fail(ErrorKind::Invalid, "the DeviceTaintRule has no usable name");
  return "/apis/" + api_version + "/devicetaintrules/" + k8s::percent_encode(name);
}

using Named = std::pair<std::string_view, const std::string*>;

std::array<Named, 4> labels_of(const ApplyRule& action) {
  return {Named(kNodeLabel, &action.node), Named(kDriverLabel, &action.driver),
          Named(kDeviceLabel, &action.device_name), Named(kPolicyLabel, &action.policy)};
}

Json labels_json(const ApplyRule& action) {
  Json labels = {{kManagedByLabel, kManagedBy}};
  for (const auto& [key, value] : labels_of(action)) {
    if (!value->empty()) labels[std::string(key)] = label_value(*value);
  }
  return labels;
}

Json annotations_of(const ApplyRule& action) {
  Json annotations = {{kEffectAnnotation, action.effect},
                      {kPolicyAnnotation, action.policy},
                      {kSinceAnnotation, format_rfc3339(action.since)}};
  if (action.same_card_as.empty()) {
    annotations[std::string(kIncidentsAnnotation)] = std::to_string(action.incidents);
  } else {
    annotations[std::string(kSameCardAnnotation)] = action.same_card_as;
  }
  if (!action.identity.empty()) {
    annotations[std::string(kIdentityAnnotation)] = action.identity;
    annotations[std::string(kIdentityAttributeAnnotation)] = action.identity_attribute;
  }
  for (const auto& [key, value] : labels_of(action)) {
    if (label_value(*value) != *value) annotations[std::string(key)] = *value;
  }
  if (!action.said.empty()) annotations[std::string(kSaidAnnotation)] = printable_cut(action.said, kLongestSaid);
  return annotations;
}
}  // namespace

Result<k8s::Request> build_rule(const ApplyRule& action) {
  auto path = rule_path(action.api_version, action.name);
  if (!path) return std::unexpected(std::move(path.error()));
  // An absent part of the selector selects everything: a whole node or driver would be tainted.
  if (action.driver.empty() || action.pool.empty() || action.device_name.empty()) {
    return fail(ErrorKind::Invalid, "the DeviceTaintRule would select more than one device");
  }
  if (action.effect != "None" && action.effect != "NoSchedule") {
    return fail(ErrorKind::Invalid, "the effect of a DeviceTaintRule of ours is None or NoSchedule");
  }
  Json metadata = {{"name", action.name}, {"labels", labels_json(action)}, {"annotations", annotations_of(action)}};
  if (!action.uid.empty()) {
    metadata["uid"] = action.uid;
    metadata["resourceVersion"] = action.resource_version;
  }
  const Json body = {
      {"apiVersion", action.api_version},
      {"kind", "DeviceTaintRule"},
      {"metadata", std::move(metadata)},
      {"spec",
       {{"deviceSelector", {{"driver", action.driver}, {"pool", action.pool}, {"device", action.device_name}}},
        {"taint", {{"key", kTaintKey}, {"value", kRuleValue}, {"effect", action.effect}}}}}};
  return k8s::write_request(k8s::Method::Patch, *path + "?fieldManager=" + std::string(kFieldManager), k8s::kApplyPatch,
                            json_text(body));
}

Result<k8s::Request> build_delete(const DeleteRule& action) {
  auto path = rule_path(action.api_version, action.name);
  if (!path) return std::unexpected(std::move(path.error()));
  if (action.uid.empty()) return fail(ErrorKind::Invalid, "the DeviceTaintRule to delete has no UID");
  Json preconditions = {{"uid", action.uid}};
  if (!action.resource_version.empty()) preconditions["resourceVersion"] = action.resource_version;
  const Json body = {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", std::move(preconditions)}};
  return k8s::write_request(k8s::Method::Delete, *path, k8s::kJson, json_text(body));
}

Result<k8s::Request> build_node_taint(const PatchNodeTaint& action) {
  if (!k8s::is_path_segment(action.node)) return fail(ErrorKind::Invalid, "the node has no usable name");
  if (action.resource_version.empty()) return fail(ErrorKind::Invalid, "the node to patch has no resourceVersion");
  Json patch = Json::array();
  patch.push_back({{"op", "replace"}, {"path", "/metadata/resourceVersion"}, {"value", action.resource_version}});
  const auto taint = node_taint();
  const Json value = {{"key", taint.key}, {"value", taint.value}, {"effect", taint.effect}};
  if (action.add && action.has_taints) {
    patch.push_back({{"op", "add"}, {"path", "/spec/taints/-"}, {"value", value}});
  } else if (action.add) {
    patch.push_back({{"op", "add"}, {"path", "/spec/taints"}, {"value", Json::array({value})}});
  } else {
    const auto at = fmt::format("/spec/taints/{}", action.index);
    patch.push_back({{"op", "test"}, {"path", at + "/key"}, {"value", taint.key}});
    patch.push_back({{"op", "remove"}, {"path", at}});
  }
  return k8s::write_request(
      k8s::Method::Patch,
      "/api/v1/nodes/" + k8s::percent_encode(action.node) + "?fieldManager=" + std::string(kFieldManager),
      k8s::kJsonPatch, json_text(patch));
}

}  // namespace dhc::taint
