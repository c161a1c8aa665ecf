#include "reconcilers/job_retry/build.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/json_field.h"
#include "base/json_read.h"
#include "base/json_text.h"
#include "domain/contract/job_record.h"
#include "domain/contract/names.h"
#include "k8s-client/model/job.h"
#include "k8s-client/protocol/object_path.h"

namespace dhc::job_retry {

namespace {
using Json = nlohmann::ordered_json;

// **Source:** Job names become label values of their pods: at most 63 bytes.
constexpr std::size_t kLongestName = 63;

k8s::Request request_of(k8s::Method method, const std::string& path, std::string_view content_type, std::string body) {
  return k8s::write_request(method, path + "?fieldManager=" + std::string(kFieldManager), content_type,
                            std::move(body));
}

/// `/metadata/annotations/KEY` as a JSON pointer.
std::string pointer_to(const std::string& annotation) {
  std::string pointer = "/metadata/annotations/";
  for (const char c : annotation) pointer += c == '/' ? "~1" : c == '~' ? "~0" : std::string(1, c);
  return pointer;
}

Json merge_patch(const PatchJob& action) {
  Json body = {{"metadata", {{"uid", action.uid}, {"resourceVersion", action.resource_version}}}};
  for (const auto& note : action.notes) body["metadata"]["annotations"][note.annotation] = note.text;
  if (action.limit != action.limit_before) body["spec"]["backoffLimit"] = action.limit;
  return body;
}

Json tested_patch(const PatchJob& action) {
  Json body = Json::array();
  const auto add = [&](const char* op, const std::string& path, Json value) {
    body.push_back({{"op", op}, {"path", path}, {"value", std::move(value)}});
  };
  add("test", "/metadata/uid", action.uid);
  // The limit of a finished Job is not known, and no note is about it.
  if (action.limit != action.limit_before) add("test", "/spec/backoffLimit", action.limit_before);
  // An entry of a map that is not there can neither be tested nor added.
  if (!action.has_annotations) {
    add("test", "/metadata/annotations", nullptr);
    add("add", "/metadata/annotations", Json::object());
  }
  for (const auto& note : action.notes) {
    if (action.has_annotations) {
      add("test", pointer_to(note.annotation), note.before ? Json(*note.before) : Json(nullptr));
    }
    add("add", pointer_to(note.annotation), note.text);
  }
  if (action.limit != action.limit_before) add("replace", "/spec/backoffLimit", action.limit);
  return body;
}

bool is_generated_label(std::string_view key) {
  constexpr std::array<std::string_view, 5> kGenerated = {"controller-uid", "job-name",
                                                          "batch.kubernetes.io/controller-uid",
                                                          "batch.kubernetes.io/job-name", kRecreatedFromLabel};
  for (const auto generated : kGenerated) {
    if (generated == key) return true;
  }
  return false;
}

Json without_generated(const Json& labels) {
  Json kept = Json::object();
  for (const auto& [key, value] : labels.items()) {
    if (!is_generated_label(key)) kept[key] = value;
  }
  return kept;
}

Json part(const Json& object, const char* key) {
  const auto* found = json_field(object, {key});
  return found != nullptr && found->is_object() ? *found : Json::object();
}

bool has_owner(const Json& metadata) { return !json_list(metadata, {"ownerReferences"}).empty(); }

bool is_managed_by_other(const Json& spec) {
  const auto manager = json_string(spec, {"managedBy"});
  return !manager.empty() && manager != k8s::kJobController;
}

/// Gives the limit that its owner wrote: without the retries that we added to it. One that was lowered since has been
/// put back already.
void take_our_retries_out(Json& spec, const Json& annotations) {
  const auto credits = parse_retry_credits(json_string(annotations, {kRetryCreditsAnnotation}));
  const auto limit = spec.find("backoffLimit");
  if (!credits || limit == spec.end() || !limit->is_number_integer()) return;
  const auto now = limit->get<std::int64_t>();
  if (now < credits->limit) return;
  *limit = std::max<std::int64_t>(0, now - static_cast<std::int64_t>(credits->credits.size()));
}

std::string replacement_name(const RecreateJob& action) {
  const auto suffix = fmt::format("-r{:08x}", stable_hash(action.uid) & 0xFFFFFFFFU);
  auto name = action.name.substr(0, kLongestName - suffix.size());
  // Where it is cut, a part of a DNS name must not end with a sign.
  while (!name.empty() && (name.back() == '.' || name.back() == '-')) name.pop_back();
  return name + suffix;
}

}  // namespace

Result<k8s::Request> build_patch(const PatchJob& action) {
  auto path = k8s::job_path(action.ns, action.name);
  if (!path) return std::unexpected(std::move(path.error()));
  if (action.uid.empty() || action.resource_version.empty()) {
    return fail(ErrorKind::Invalid, "the Job to patch has no UID or no version");
  }
  if (action.by_test) {
    return request_of(k8s::Method::Patch, *path, k8s::kJsonPatch, json_text(tested_patch(action)));
  }
  return request_of(k8s::Method::Patch, *path, k8s::kMergePatch, json_text(merge_patch(action)));
}

Status judged(const PatchJob& action, Status status) {
  if (!status && action.by_test && status.error().kind == ErrorKind::Invalid) {
    status.error().kind = ErrorKind::Conflict;
  }
  return status;
}

Result<k8s::Request> build_read(const RecreateJob& action) {
  auto path = k8s::job_path(action.ns, action.name);
  if (!path) return std::unexpected(std::move(path.error()));
  return k8s::read_request(*std::move(path));
}

Result<k8s::Request> build_look(const RecreateJob& action) {
  auto path = k8s::job_path(action.ns, replacement_name(action));
  if (!path) return std::unexpected(std::move(path.error()));
  return k8s::read_request(*std::move(path));
}

bool is_replacement(const RecreateJob& action, std::string_view body) {
  return json_string(read_json<Json>(body), {"metadata", "labels", kRecreatedFromLabel}) == action.uid;
}

Result<k8s::Request> build_replacement(const RecreateJob& action, std::string_view body) {
  const Json dead = read_json<Json>(body);
  if (!dead.is_object()) return fail(ErrorKind::Malformed, "the Job that died could not be read");
  const auto metadata = part(dead, "metadata");
  if (json_string(metadata, {"uid"}) != action.uid) return fail(ErrorKind::Conflict, "another Job has its name now");
  auto spec = part(dead, "spec");
  const auto labels = part(metadata, "labels");
  if (has_owner(metadata) || is_managed_by_other(spec) || json_true(spec, {"manualSelector"}) ||
      labels.contains(kRecreatedFromLabel)) {
    return fail(ErrorKind::Invalid,
                "a Job with an owner, another manager or a manual selector, or itself a replacement, is not recreated");
  }
  spec.erase("selector");
  spec.erase("manualSelector");
  if (spec.contains("template") && spec["template"].is_object()) {
    auto& of_pods = spec["template"]["metadata"];
    if (of_pods.is_object()) {
      of_pods.erase("creationTimestamp");
      if (of_pods.contains("labels")) of_pods["labels"] = without_generated(part(of_pods, "labels"));
    }
  }
  auto kept = without_generated(labels);
  kept[std::string(kRecreatedFromLabel)] = action.uid;
  Json annotations = Json::object();
  const auto before = part(metadata, "annotations");
  take_our_retries_out(spec, before);
  for (const auto& [key, value] : before.items()) {
    const bool ours = key == kRetryCreditsAnnotation || key == kLossesAnnotation;
    if (!ours && key != "kubectl.kubernetes.io/last-applied-configuration") annotations[key] = value;
  }
  const Json made = {{"apiVersion", "batch/v1"},
                     {"kind", "Job"},
                     {"metadata",
                      {{"name", replacement_name(action)},
                       {"namespace", action.ns},
                       {"labels", std::move(kept)},
                       {"annotations", std::move(annotations)}}},
                     {"spec", std::move(spec)}};
  auto path = k8s::jobs_path(action.ns);
  if (!path) return std::unexpected(std::move(path.error()));
  return request_of(k8s::Method::Post, *path, k8s::kJson, json_text(made));
}

}  // namespace dhc::job_retry
