#include "reconcilers/owners/lookup.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_field.h"
#include "base/json_read.h"
#include "base/printable.h"
#include "domain/contract/names.h"
#include "k8s-client/protocol/object_path.h"

namespace dhc::owners {

namespace {
using Json = nlohmann::ordered_json;
using State = OwnerSight::State;

constexpr Seconds kPatience{5};
/// Of a group that has dropped the version of the reference so many others are tried.
constexpr std::size_t kMostVersions = 4;

constexpr std::size_t kLongestWhy = 300;

/// A server that cannot give the metadata alone, an aggregated one, may give the object whole.
constexpr auto kMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

Json parsed(const std::string& body) { return read_json<Json>(body); }

std::optional<k8s::OwnerRef> controller_of(const Json& object) {
  for (const auto& reference : json_list(object, {"metadata", "ownerReferences"})) {
    if (!json_true(reference, {"controller"})) continue;
    k8s::OwnerRef owner{.api_version = json_string(reference, {"apiVersion"}),
                        .kind = json_string(reference, {"kind"}),
                        .name = json_string(reference, {"name"}),
                        .uid = json_string(reference, {"uid"})};
    if (is_plausible(owner)) return owner;
  }
  return std::nullopt;
}

/// **Source:** apimachinery: a group and a version are DNS names.
bool fits(const std::string& part) { return part.empty() || k8s::is_path_segment(part); }

}  // namespace

Lookup::Lookup(ReadOwner action) : action_(std::move(action)) {
  const std::string version = action_.owner.api_version;
  const auto slash = version.find('/');
  if (slash != std::string::npos) group_ = version.substr(0, slash);
  versions_ = {slash == std::string::npos ? version : version.substr(slash + 1)};
  if (!fits(group_) || !k8s::is_path_segment(versions_.front()) || !k8s::is_path_segment(action_.owner.name) ||
      !k8s::is_path_segment(action_.ns)) {
    end(State::Absent, "no object can have its name");
    return;
  }
  target_ = path_of(versions_.front());
}

std::string Lookup::path_of(const std::string& version) const {
  return group_.empty() ? "/api/" + k8s::percent_encode(version)
                        : "/apis/" + k8s::percent_encode(group_) + "/" + k8s::percent_encode(version);
}

std::optional<k8s::Request> Lookup::next() const {
  if (step_ == Step::Over) return std::nullopt;
  auto request = k8s::read_request(target_);
  if (step_ == Step::Object) request.headers = {{"Accept", kMetadata}};
  request.timeouts.idle = kPatience;
  request.timeouts.total = kPatience;
  return request;
}

void Lookup::answered(const Result<k8s::Response>& answer) {
  switch (step_) {
    case Step::Resources:
      return read_resources(answer);
    case Step::Versions:
      return read_versions(answer);
    case Step::Object:
      return read_object(answer);
    case Step::Over:
      return;
  }
}

void Lookup::read_resources(const Result<k8s::Response>& answer) {
  if (!answer && answer.error().kind == ErrorKind::NotFound) return try_next_version();
  if (!answer) return end_with(answer.error(), fmt::format("{{nonResourceURLs: [\"{}\"], verbs: [get]}}", target_));
  const auto list = parsed(answer->body);
  if (!list.is_object()) return end_with(fail(ErrorKind::Malformed, target_ + " is no JSON object").error(), {});
  for (const auto& resource : json_list(list, {"resources"})) {
    const auto name = json_string(resource, {"name"});
    // `name/status` is of the same kind.
    if (json_string(resource, {"kind"}) != action_.owner.kind || !k8s::is_path_segment(name)) continue;
    return ask_for_object(name, json_true(resource, {"namespaced"}));
  }
  try_next_version();
}

/// The reference may be older than what the server serves: the object lives on in another version. **Source:** a
/// kube-apiserver that starts answers 503, not 404, until it knows its CRDs (`CRDInformerHasNotSynced`): a 404 is no
/// accident of a restart.
void Lookup::try_next_version() {
  versions_.erase(versions_.begin());
  if (!versions_.empty()) {
    target_ = path_of(versions_.front());
    step_ = Step::Resources;
    return;
  }
  if (has_asked_versions_ || group_.empty()) return end(State::Absent, "the server does not serve its kind");
  has_asked_versions_ = true;
  step_ = Step::Versions;
  target_ = "/apis/" + k8s::percent_encode(group_);
}

void Lookup::read_versions(const Result<k8s::Response>& answer) {
  if (!answer && answer.error().kind == ErrorKind::NotFound)
    return end(State::Absent, "the server does not serve its kind");
  if (!answer) return end_with(answer.error(), fmt::format("{{nonResourceURLs: [\"{}\"], verbs: [get]}}", target_));
  const auto group = parsed(answer->body);
  if (!group.is_object()) return end_with(fail(ErrorKind::Malformed, target_ + " is no JSON object").error(), {});
  versions_ = {{}};  // what is taken off as tried
  for (const auto& entry : json_list(group, {"versions"})) {
    auto version = json_string(entry, {"version"});
    const bool tried = group_ + "/" + version == action_.owner.api_version;
    if (!tried && k8s::is_path_segment(version) && versions_.size() <= kMostVersions)
      versions_.push_back(std::move(version));
  }
  try_next_version();
}

void Lookup::ask_for_object(const std::string& resource, bool namespaced) {
  // Any tenant may write it into a pod: no verdict may ask an operator for the right to read Secrets.
  if (group_.empty() && resource == "secrets") return end(State::Absent, "a Secret is no controller, and is not read");
  resource_ = resource;
  step_ = Step::Object;
  target_ = path_of(versions_.front());
  if (namespaced) target_ += "/namespaces/" + k8s::percent_encode(action_.ns);
  target_ += "/" + k8s::percent_encode(resource) + "/" + k8s::percent_encode(action_.owner.name);
}

void Lookup::read_object(const Result<k8s::Response>& answer) {
  if (!answer && answer.error().kind == ErrorKind::NotFound) return end(State::Absent, "it is gone");
  if (!answer) {
    return end_with(answer.error(),
                    fmt::format("{{apiGroups: [\"{}\"], resources: [{}], verbs: [get]}}", group_, resource_));
  }
  const auto object = parsed(answer->body);
  const auto uid = json_string(object, {"metadata", "uid"});
  if (uid.empty()) return end_with(fail(ErrorKind::Malformed, target_ + " has no metadata.uid").error(), {});
  if (uid != action_.owner.uid) return end(State::Absent, "another object has its name now");
  sight_.meta.ns = action_.ns;
  sight_.meta.name = action_.owner.name;
  sight_.meta.uid = uid;
  // A tenant may write megabytes: what is kept is bounded.
  if (json_string(object, {"metadata", "annotations", kOptOutAnnotation}) == "true") {
    sight_.meta.annotations = {{std::string(kOptOutAnnotation), "true"}};
  }
  sight_.meta.controller = controller_of(object);
  end(State::Found, {});
}

void Lookup::end(State state, std::string why) {
  sight_.state = state;
  sight_.why = std::move(why);
  step_ = Step::Over;
}

void Lookup::end_with(const Error& error, std::string rule) {
  status_ = std::unexpected(error);
  if (error.kind != ErrorKind::Forbidden) return end(State::Failed, printable_cut(error.message, kLongestWhy));
  end(State::Forbidden, fmt::format("the controller needs the rule {} in a ClusterRole with the label {}: \"true\"",
                                    rule, kOwnersRoleLabel));
}

}  // namespace dhc::owners
