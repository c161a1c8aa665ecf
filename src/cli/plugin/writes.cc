#include "cli/plugin/writes.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_field.h"
#include "base/json_text.h"
#include "base/rfc3339.h"
#include "k8s-client/protocol/object_path.h"
#include "k8s-client/protocol/server_clock.h"

namespace dhc::cli {

namespace {
using Json = nlohmann::ordered_json;
constexpr std::string_view kManager = "kubectl-device-health";

Error unfit(std::string_view what) {
  return {.kind = ErrorKind::Invalid, .message = fmt::format("{} does not fit in a path", what), .retry_after = {}};
}
}  // namespace

k8s::Request build_annotations(const Target& target, const Annotations& annotations, bool dry_run) {
  Json metadata = {{"uid", target.uid}, {"annotations", Json::object()}};
  for (const auto& [name, value] : annotations) metadata["annotations"][name] = value ? Json(*value) : Json();
  return k8s::write_request(k8s::Method::Patch,
                            fmt::format("{}?fieldManager={}{}", target.path, kManager, dry_run ? "&dryRun=All" : ""),
                            k8s::kMergePatch, json_text({{"metadata", std::move(metadata)}}));
}

Result<std::string> node_path(std::string_view name) {
  if (!k8s::is_path_segment(name)) return std::unexpected(unfit("the node's name"));
  return "/api/v1/nodes/" + k8s::percent_encode(name);
}

Result<std::string> config_map_path(std::string_view ns, std::string_view name) {
  if (!k8s::is_path_segment(ns) || !k8s::is_path_segment(name)) return std::unexpected(unfit("the ConfigMap's name"));
  return fmt::format("/api/v1/namespaces/{}/configmaps/{}", k8s::percent_encode(ns), k8s::percent_encode(name));
}

Result<std::string> rule_path(std::string_view api_version, std::string_view name) {
  if (!k8s::is_path_segment(name)) return std::unexpected(unfit("the rule's name"));
  return fmt::format("/apis/{}/devicetaintrules/{}", api_version, k8s::percent_encode(name));
}

Result<std::string> uid_of(std::string_view body) {
  auto uid = json_string(Json::parse(body, nullptr, false), {"metadata", "uid"});
  if (uid.empty()) return fail(ErrorKind::Malformed, "the API server's object has no UID");
  return uid;
}

WallTime vouched_until(std::optional<std::string_view> date, WallTime ours) {
  // Nobody has looked at what came within the last second, and clocks differ by less than that unnoticed.
  const auto looked = ours - Seconds(1);
  if (!date) return looked;
  k8s::ServerClock clock;
  clock.answered(*date, ours, ours);
  const auto ahead = clock.ahead();
  return ahead && *ahead < Millis::zero() ? looked + *ahead : looked;
}

Result<std::string> rule_to_acknowledge(const Sight& sight, std::string_view name) {
  constexpr std::string_view kRule = "rule ";
  std::vector<const StatusDevice*> named;
  for (const auto& device : sight.status.devices) {
    if (device.device == name) named = {&device};
    if (device.device == name) break;
    if (name_of(device).name == name) named.push_back(&device);
  }
  if (named.empty()) return fail(ErrorKind::NotFound, fmt::format("no device that is bad is named {}", name));
  if (named.size() > 1) {
    return fail(ErrorKind::Invalid, fmt::format("{} devices are named {}; give one in full, such as {}", named.size(),
                                                name, named.front()->device));
  }
  const auto& device = *named.front();
  if (device.taint.starts_with(kRule)) return device.taint.substr(kRule.size());
  if (!device.opened_at && !device.quarantined)
    return fail(ErrorKind::NotFound, fmt::format("{} has no incident that is open", device.device));
  return fail(ErrorKind::Invalid,
              fmt::format("{} has no DeviceTaintRule of ours that could be annotated; acknowledge all incidents of its "
                          "node: kubectl device-health ack node {}",
                          device.device, device.node.empty() ? "NODE" : device.node));
}

std::vector<std::string> acknowledged_by_node(const Sight& sight, std::string_view node, WallTime until) {
  std::vector<std::string> found;
  for (const auto& device : sight.status.devices) {
    if (device.node != node || !device.opened_at || *device.opened_at > until) continue;
    found.push_back(fmt::format("{} (opened {})", device.device, format_rfc3339(*device.opened_at)));
  }
  return found;
}

}  // namespace dhc::cli
