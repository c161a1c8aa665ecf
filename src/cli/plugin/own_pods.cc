#include "cli/plugin/own_pods.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_field.h"
#include "base/json_read.h"
#include "base/printable.h"
#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "reconcilers/notice/build.h"

namespace dhc::cli {

namespace {
using Json = nlohmann::ordered_json;
constexpr std::size_t kLongest = 4096;

void add_pod(std::vector<OwnPod>& pods, const Json& pod) {
  for (const auto& condition : json_list(pod, {"status", "conditions"})) {
    if (json_string(condition, {"type"}) != kConditionType) continue;
    pods.push_back({.name = json_string(pod, {"metadata", "name"}),
                    .node = json_string(pod, {"spec", "nodeName"}),
                    .is_bad = json_string(condition, {"status"}) == "True",
                    .reason = printable_cut(json_string(condition, {"reason"}), kLongest),
                    .message = printable_cut(json_string(condition, {"message"}), kLongest),
                    .since = json_string(condition, {"lastTransitionTime"})});
  }
}

std::string first_of(const Json& json, std::initializer_list<std::string_view> keys) {
  for (const auto key : keys) {
    if (auto text = json_string(json, {key}); !text.empty()) return text;
  }
  return {};
}
}  // namespace

Result<std::vector<OwnPod>> own_pods(std::string_view body) {
  const auto json = read_json<Json>(body);
  if (!json.is_object()) return fail(ErrorKind::Malformed, "the API server's answer is no pod and no list of pods");
  std::vector<OwnPod> pods;
  if (json.contains("items")) {
    for (const auto& pod : json_list(json, {"items"})) add_pod(pods, pod);
  } else {
    add_pod(pods, json);
  }
  return pods;
}

Result<std::vector<std::string>> own_events(std::string_view body) {
  const auto json = read_json<Json>(body);
  if (!json.is_object()) return fail(ErrorKind::Malformed, "the API server's answer is no list of Events");
  std::vector<std::string> lines;
  for (const auto& event : json_list(json, {"items"})) {
    if (json_string(event, {"reportingComponent"}) != notice::kReportingController) continue;
    lines.push_back(fmt::format("{}  {}  {}: {}", first_of(event, {"lastTimestamp", "eventTime", "firstTimestamp"}),
                                json_string(event, {"type"}), json_string(event, {"reason"}),
                                printable_cut(json_string(event, {"message"}), kLongest)));
  }
  std::ranges::sort(lines);
  return lines;
}

std::vector<Line> own_pods_lines(const std::vector<OwnPod>& pods, WallTime now) {
  std::vector<Line> lines = {{"POD", "NODE", "DEVICE UNHEALTHY", "FOR", "REASON", "MESSAGE"}};
  for (const auto& pod : pods) {
    const auto since = parse_rfc3339(pod.since);
    lines.push_back({pod.name, or_dash(pod.node), pod.is_bad ? "True" : "False",
                     since ? age_text(std::chrono::floor<Millis>(now - *since)) : "-", or_dash(pod.reason),
                     or_dash(pod.message)});
  }
  return lines;
}

std::string own_pod_text(const std::vector<OwnPod>& pods, const std::vector<std::string>& events) {
  std::string text;
  for (const auto& pod : pods) {
    text += fmt::format("Pod {} on {}\n  {}={} since {} ({})\n  {}\n", pod.name, or_dash(pod.node), kConditionType,
                        pod.is_bad ? "True" : "False", or_dash(pod.since), or_dash(pod.reason), or_dash(pod.message));
  }
  if (!events.empty()) text += "Events of the controller\n";
  for (const auto& event : events) text += "  " + event + "\n";
  return text;
}

}  // namespace dhc::cli
