#include "simulator/api/columns.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/rfc3339.h"

namespace dhc::sim {
namespace {

std::vector<std::string> column_names(Res res) {
  switch (res) {
    case Res::Pods:
      return {"Name", "Ready", "Status", "Restarts", "Node", "Device", "Age"};
    case Res::Nodes:
      return {"Name", "Status", "Devices", "Version", "Age"};
    case Res::Events:
      return {"Last Seen", "Type", "Reason", "Object", "Message"};
    case Res::Jobs:
      return {"Name", "Status", "Completions", "Failed", "Backoff Limit", "Age"};
    case Res::Deployments:
    case Res::ReplicaSets:
    case Res::StatefulSets:
    case Res::DaemonSets:
      return {"Name", "Desired", "Ready", "Age"};
    case Res::Budgets:
      return {"Name", "Min Available", "Allowed Disruptions", "Age"};
    case Res::Claims:
      return {"Name", "State", "Device", "Age"};
    case Res::Slices:
      return {"Name", "Node", "Driver", "Pool", "Age"};
    case Res::TaintRules:
      return {"Name", "Device", "Taint", "Age"};
    default:
      return {"Name", "Age"};
  }
}

/// How long ago, as kubectl words it: `42s`, `5m`, `3h`, `2d`.
std::string age(const std::string& since, WallTime now) {
  const auto when = parse_rfc3339(since);
  if (!when) return "<unknown>";
  const auto seconds = std::max<std::int64_t>(0, std::chrono::duration_cast<Seconds>(now - *when).count());
  if (seconds < 120) return fmt::format("{}s", seconds);
  if (seconds < 7200) return fmt::format("{}m", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{}h", seconds / 3600);
  return fmt::format("{}d", seconds / 86400);
}

std::string age_of(const Json& object, WallTime now) {
  return age(text(object, {"metadata", "creationTimestamp"}), now);
}

std::string pod_status(const Json& pod) {
  if (is_deleting(pod) && !is_terminal(pod)) return "Terminating";
  if (const auto reason = text(pod, {"status", "reason"}); !reason.empty()) return reason;
  for (const auto& container : list(pod, {"status", "containerStatuses"})) {
    if (const auto waiting = text(container, {"state", "waiting", "reason"}); !waiting.empty()) return waiting;
  }
  return text(pod, {"status", "phase"});
}

Json pod_cells(const Json& pod, WallTime now) {
  std::int64_t ready = 0;
  std::int64_t restarts = 0;
  for (const auto& container : list(pod, {"status", "containerStatuses"})) {
    ready += container.value("ready", false) ? 1 : 0;
    restarts += number(container, {"restartCount"});
  }
  return {name_of(pod),
          fmt::format("{}/{}", ready, list(pod, {"spec", "containers"}).size()),
          pod_status(pod),
          restarts,
          text(pod, {"spec", "nodeName"}),
          device_summary(pod),
          age_of(pod, now)};
}

Json node_cells(const Json& node, WallTime now) {
  std::string status = condition_status(node, "Ready") == "True" ? "Ready" : "NotReady";
  const Json* off = field(node, {"spec", "unschedulable"});
  if (off != nullptr && off->is_boolean() && off->get<bool>()) status += ",SchedulingDisabled";
  std::string devices;
  if (const Json* capacity = field(node, {"status", "capacity"}); capacity != nullptr) {
    for (const auto& [resource, amount] : capacity->items()) {
      if (resource.find('/') == std::string::npos) continue;
      devices += fmt::format("{}{} {}/{}", devices.empty() ? "" : ", ", resource,
                             number(node, {"status", "allocatable", resource}), number(*capacity, {resource}));
    }
  }
  return {name_of(node), status, devices, text(node, {"status", "nodeInfo", "kubeletVersion"}), age_of(node, now)};
}

Json job_cells(const Json& job, WallTime now) {
  std::string status = "Running";
  if (condition_status(job, "Complete") == "True") status = "Complete";
  if (condition_status(job, "Failed") == "True") status = "Failed";
  return {name_of(job),
          status,
          fmt::format("{}/{}", number(job, {"status", "succeeded"}), number(job, {"spec", "completions"}, 1)),
          number(job, {"status", "failed"}),
          number(job, {"spec", "backoffLimit"}),
          age_of(job, now)};
}

std::string claim_device(const Json& claim) {
  std::string out;
  for (const auto& result : list(claim, {"status", "allocation", "devices", "results"})) {
    out += fmt::format("{}{}/{}/{}", out.empty() ? "" : ", ", text(result, {"driver"}), text(result, {"pool"}),
                       text(result, {"device"}));
  }
  return out;
}

Json claim_cells(const Json& claim, WallTime now) {
  std::string state = field(claim, {"status", "allocation"}) != nullptr ? "allocated" : "pending";
  if (!list(claim, {"status", "reservedFor"}).empty()) state += ",reserved";
  return {name_of(claim), state, claim_device(claim), age_of(claim, now)};
}

Json event_cells(const Json& event, WallTime now) {
  const auto regarding = event.value("regarding", Json::object());
  const auto kind = text(regarding, {"kind"});
  return {age(text(event, {"eventTime"}), now), text(event, {"type"}), text(event, {"reason"}),
          fmt::format("{}/{}", kind, text(regarding, {"name"})), text(event, {"note"})};
}

Json set_cells(Res res, const Json& object, WallTime now) {
  const auto desired = res == Res::DaemonSets ? number(object, {"status", "desiredNumberScheduled"})
                                              : number(object, {"spec", "replicas"}, 1);
  const auto ready =
      res == Res::DaemonSets ? number(object, {"status", "numberReady"}) : number(object, {"status", "readyReplicas"});
  return {name_of(object), desired, ready, age_of(object, now)};
}

Json rule_cells(const Json& rule, WallTime now) {
  const auto part = [&](std::string_view name) {
    const auto value = text(rule, {"spec", "deviceSelector", name});
    return value.empty() ? std::string("*") : value;
  };
  return {name_of(rule), fmt::format("{}/{}/{}", part("driver"), part("pool"), part("device")),
          fmt::format("{}:{}", text(rule, {"spec", "taint", "key"}), text(rule, {"spec", "taint", "effect"})),
          age_of(rule, now)};
}

}  // namespace

Json columns_of(Res res) {
  Json columns = Json::array();
  for (const auto& name : column_names(res)) {
    const bool is_name = name == "Name";
    columns.push_back(
        {{"name", name}, {"type", "string"}, {"format", is_name ? "name" : ""}, {"description", ""}, {"priority", 0}});
  }
  return columns;
}

std::string device_summary(const Json& pod) {
  std::string out;
  for (const auto& container : list(pod, {"status", "containerStatuses"})) {
    for (const auto& entry : list(container, {"allocatedResourcesStatus"})) {
      for (const auto& device : list(entry, {"resources"})) {
        const auto id = text(device, {"resourceID"});
        const auto dash = id.find("-gpu-");
        out += fmt::format("{}{}:{}", out.empty() ? "" : ",", dash == std::string::npos ? id : id.substr(dash + 1),
                           text(device, {"health"}));
      }
    }
  }
  return out;
}

Json cells_of(Res res, const Json& object, WallTime now) {
  switch (res) {
    case Res::Pods:
      return pod_cells(object, now);
    case Res::Nodes:
      return node_cells(object, now);
    case Res::Events:
      return event_cells(object, now);
    case Res::Jobs:
      return job_cells(object, now);
    case Res::Deployments:
    case Res::ReplicaSets:
    case Res::StatefulSets:
    case Res::DaemonSets:
      return set_cells(res, object, now);
    case Res::Budgets:
      return {name_of(object), number(object, {"spec", "minAvailable"}),
              number(object, {"status", "disruptionsAllowed"}), age_of(object, now)};
    case Res::Claims:
      return claim_cells(object, now);
    case Res::Slices:
      return {name_of(object), text(object, {"spec", "nodeName"}), text(object, {"spec", "driver"}),
              text(object, {"spec", "pool", "name"}), age_of(object, now)};
    case Res::TaintRules:
      return rule_cells(object, now);
    default:
      return {name_of(object), age_of(object, now)};
  }
}

}  // namespace dhc::sim
