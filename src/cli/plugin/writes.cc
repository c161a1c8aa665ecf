#include "cli/plugin/writes.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/json_field.h"
#include "base/json_read.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "domain/policy/config.h"
#include "k8s-client/protocol/object_path.h"
#include "k8s-client/protocol/server_clock.h"

namespace dhc::cli {

namespace {
using Json = nlohmann::ordered_json;
constexpr std::string_view kManager = "kubectl-device-health";

Error unfit(std::string_view what) {
  return {.kind = ErrorKind::Invalid, .message = fmt::format("{} does not fit in a path", what), .retry_after = {}};
}

/// As `label selector` of kubectl, one requirement a part.
Result<Json> match_expressions(std::string_view text) {
  Json expressions = Json::array();
  while (true) {
    const auto part = text.substr(0, text.find(','));
    const auto equals = part.find('=');
    Json one = Json::object();
    if (equals == std::string_view::npos) {
      const bool is_absent = part.starts_with('!');
      one = {{"key", part.substr(is_absent ? 1 : 0)}, {"operator", is_absent ? "DoesNotExist" : "Exists"}};
    } else {
      const bool is_other = equals > 0 && part[equals - 1] == '!';
      auto value = part.substr(equals + 1);
      if (value.starts_with('=') && !is_other) value.remove_prefix(1);
      one = {{"key", part.substr(0, equals - (is_other ? 1 : 0))},
             {"operator", is_other ? "NotIn" : "In"},
             {"values", Json::array({value})}};
    }
    if (part.find_first_of(" ()") != std::string_view::npos || one["key"].get<std::string>().empty()) {
      return fail(ErrorKind::Invalid,
                  fmt::format("--node-selector: '{}' is none of KEY=VALUE, KEY!=VALUE, KEY and !KEY",
                              printable_cut(std::string(part), 100)));
    }
    expressions.push_back(std::move(one));
    if (part.size() == text.size()) return expressions;
    text.remove_prefix(part.size() + 1);
  }
}

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  return names;
}
}  // namespace

std::string pause_annotation(const PauseScope& scope) {
  std::string whole = scope.node_selector;
  std::string readable;
  for (const auto* list : {&scope.nodes, &scope.drivers, &scope.resources, &scope.namespaces}) {
    whole += '\n';
    for (const auto& name : sorted(*list)) {
      whole += name + ',';
      readable += (readable.empty() ? "" : ".") + name;
    }
  }
  if (readable.empty()) readable = scope.node_selector;
  constexpr std::size_t kReadable = 40;
  readable.resize(std::min(readable.size(), kReadable));
  std::ranges::replace_if(
      readable, [](char c) { return !(std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-'); },
      '_');
  return fmt::format("{}{}-{:08x}", kScopedPausePrefix, readable, stable_hash(whole) & 0xffffffffU);
}

Result<std::string> pause_value(const PauseScope& scope, WallTime until, std::string_view reason, std::string_view by) {
  Json json = Json::object();
  const auto add = [&json](const char* key, const std::vector<std::string>& names) {
    if (!names.empty()) json[key] = sorted(names);
  };
  add("nodes", scope.nodes);
  if (!scope.node_selector.empty()) {
    auto expressions = match_expressions(scope.node_selector);
    if (!expressions) return std::unexpected(std::move(expressions.error()));
    json["nodeSelector"] = {{"matchExpressions", *std::move(expressions)}};
  }
  add("drivers", scope.drivers);
  add("resources", scope.resources);
  add("namespaces", scope.namespaces);
  json["until"] = format_rfc3339(until);
  json["reason"] = reason;
  if (!by.empty()) json["by"] = by;
  auto text = json_text(json);
  const auto pause = parse_pause({.name = "pause", .text = text});
  if (!pause) return fail(ErrorKind::Invalid, fmt::format("{}; {}", pause.error().message, pause.error().remedy));
  return text;
}

std::vector<std::pair<std::string, std::string>> pauses_on(std::string_view body) {
  std::vector<std::pair<std::string, std::string>> found;
  const auto json = read_json<Json>(body);
  const auto* annotations = json_field(json, {"metadata", "annotations"});
  if (annotations == nullptr || !annotations->is_object()) return found;
  for (const auto& [name, value] : annotations->items()) {
    if (name.starts_with(kScopedPausePrefix) && value.is_string()) found.emplace_back(name, value.get<std::string>());
  }
  return found;
}

bool is_over(const std::string& value, WallTime now) {
  const auto pause = parse_pause({.name = "pause", .text = value});
  return pause && pause->until <= now;
}

k8s::Request build_who_am_i() {
  return k8s::write_request(k8s::Method::Post, "/apis/authentication.k8s.io/v1/selfsubjectreviews", k8s::kJson,
                            R"({"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"})");
}

std::string read_who_am_i(std::string_view body) {
  return json_string(read_json<Json>(body), {"status", "userInfo", "username"});
}

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

namespace {

/// Where an object of the kind is served, in its namespace; empty: it is no workload.
std::string_view plural_of(std::string_view kind) {
  if (kind == "pod") return "/api/v1 pods";
  if (kind == "job") return "/apis/batch/v1 jobs";
  if (kind == "deployment") return "/apis/apps/v1 deployments";
  if (kind == "replicaset") return "/apis/apps/v1 replicasets";
  return kind == "statefulset" ? "/apis/apps/v1 statefulsets" : std::string_view();
}

}  // namespace

bool is_workload_kind(std::string_view kind) { return !plural_of(kind).empty(); }

Result<std::string> workload_path(std::string_view kind, std::string_view ns, std::string_view name) {
  const auto place = plural_of(kind);
  if (place.empty() || !k8s::is_path_segment(ns) || !k8s::is_path_segment(name))
    return std::unexpected(unfit("the workload's name"));
  const auto blank = place.find(' ');
  return fmt::format("{}/namespaces/{}/{}/{}", place.substr(0, blank), k8s::percent_encode(ns), place.substr(blank + 1),
                     k8s::percent_encode(name));
}

std::string suspicion_of(const Sight& sight, std::string_view kind, std::string_view ns, std::string_view name) {
  for (const auto& verdict : sight.status.verdicts) {
    if (verdict.reason != "WorkloadSuspected" || verdict.ns != ns || verdict.name != name) continue;
    const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
    if (std::ranges::equal(verdict.kind, kind, same)) return verdict.message;
  }
  return {};
}

Result<std::string> rule_path(std::string_view api_version, std::string_view name) {
  if (!k8s::is_path_segment(name)) return std::unexpected(unfit("the rule's name"));
  return fmt::format("/apis/{}/devicetaintrules/{}", api_version, k8s::percent_encode(name));
}

Result<std::string> uid_of(std::string_view body) {
  auto uid = json_string(read_json<Json>(body), {"metadata", "uid"});
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
