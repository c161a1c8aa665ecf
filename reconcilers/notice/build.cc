#include "reconcilers/notice/build.h"

#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/printable.h"
#include "base/rfc3339.h"
#include "domain/contract/condition_text.h"
#include "k8s-client/protocol/object_path.h"

namespace dhc::notice {

namespace {
using Json = nlohmann::ordered_json;

// **Source:** events/v1 validation: note 1,024 bytes, the others 128.
constexpr std::size_t kLongestNote = 1024;
constexpr std::size_t kLongestWord = 128;

Json json_of(const ApplyCondition::Wanted& wanted) {
  return {{"type", kConditionType},
          {"status", wanted.status ? "True" : "False"},
          {"reason", wanted.reason},
          {"message", printable_cut(wanted.message, kLongestCondition)},
          {"lastTransitionTime", format_rfc3339(wanted.last_transition)}};
}

std::string_view api_version_of(std::string_view kind) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kVersions = {
      {{"Pod", "v1"},
       {"Node", "v1"},
       {"Namespace", "v1"},
       {"ConfigMap", "v1"},
       {"ResourceClaim", "resource.k8s.io/v1"},
       {"DeviceTaintRule", "resource.k8s.io/v1"},
       {"Job", "batch/v1"},
       {"ReplicaSet", "apps/v1"},
       {"StatefulSet", "apps/v1"},
       {"DaemonSet", "apps/v1"}}};
  for (const auto& [known, version] : kVersions) {
    if (known == kind) return version;
  }
  return {};
}

Json regarding_of(const Subject& subject) {
  Json json = Json::object();
  const auto add = [&](const char* key, std::string_view value) {
    if (!value.empty()) json[key] = value;
  };
  add("apiVersion", api_version_of(subject.kind));
  add("kind", subject.kind);
  add("namespace", subject.ns);
  add("name", subject.name);
  add("uid", subject.uid);
  return json;
}
}  // namespace

Result<k8s::Request> build_condition(const ApplyCondition& action) {
  auto path = k8s::pod_path(action.ns, action.name);
  if (!path) return std::unexpected(std::move(path.error()));
  // Without the UID a pod that took the name since would get the condition of the one before.
  if (action.uid.empty()) return fail(ErrorKind::Invalid, "the pod that gets a condition has no UID");
  Json conditions = Json::array();
  if (action.wanted) conditions.push_back(json_of(*action.wanted));
  Json meta = {{"name", action.name}, {"namespace", action.ns}, {"uid", action.uid}};
  if (!action.notice.empty()) meta["annotations"] = {{kNoticeAnnotation, action.notice}};
  const Json body = {{"apiVersion", "v1"},
                     {"kind", "Pod"},
                     {"metadata", std::move(meta)},
                     {"status", {{"conditions", std::move(conditions)}}}};
  return k8s::write_request(k8s::Method::Patch, *path + "/status?fieldManager=" + std::string(kFieldManager),
                            k8s::kApplyPatch, json_text(body));
}

Result<k8s::Request> build_event(const EmitEvent& action, std::string_view reporting_instance) {
  if (!k8s::is_path_segment(action.name)) return fail(ErrorKind::Invalid, "the Event has no usable name");
  const std::string ns = action.regarding.ns.empty() ? "default" : action.regarding.ns;
  auto path = k8s::events_path(ns);
  if (!path) return std::unexpected(std::move(path.error()));
  const Json body = {{"apiVersion", "events.k8s.io/v1"},
                     {"kind", "Event"},
                     {"metadata", {{"name", action.name}, {"namespace", ns}}},
                     {"eventTime", format_micro_time(action.at)},
                     {"reportingController", kReportingController},
                     {"reportingInstance", printable_cut(reporting_instance, kLongestWord)},
                     {"action", printable_cut(action.action, kLongestWord)},
                     {"reason", printable_cut(action.reason, kLongestWord)},
                     {"regarding", regarding_of(action.regarding)},
                     {"note", printable_cut(action.note, kLongestNote)},
                     {"type", action.warning ? "Warning" : "Normal"}};
  return k8s::write_request(k8s::Method::Post, *path, k8s::kJson, json_text(body));
}

}  // namespace dhc::notice
