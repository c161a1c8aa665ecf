#include "tests/support/core/conduct.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "domain/contract/names.h"
#include "domain/contract/notice_text.h"
#include "domain/contract/state_names.h"
#include "simulator/api/field.h"

namespace dhc::test {

namespace {
using nlohmann::json;
using sim::field;
using sim::list;
using sim::text;

// What docs/recovery.md promises of the state; **Source:** the API server's limit of an Event's note; seen of a
// condition's message.
constexpr std::size_t kLongestState = 512UL * 1024;
constexpr std::size_t kLongestStatus = 128UL * 1024;
constexpr std::size_t kLongestNote = 1024;
constexpr std::size_t kLongestMessage = 32'768;

bool is_accepted(const AnsweredRequest& request) { return request.status >= 200 && request.status < 300; }

/// Whether each key of the object is one of these.
template <std::size_t N>
bool has_only(const json* object, const std::array<std::string_view, N>& keys) {
  if (object == nullptr || object->is_null()) return true;
  if (!object->is_object()) return false;
  return std::ranges::all_of(object->items(),
                             [&](const auto& item) { return std::ranges::find(keys, item.key()) != keys.end(); });
}

/// The annotation that a pointer of a JSON patch names; empty: it names something else.
std::string annotation_at(const std::string& pointer) {
  constexpr std::string_view kBegin = "/metadata/annotations/";
  if (!pointer.starts_with(kBegin)) return {};
  return json::json_pointer(pointer).back();
}

/// A patch of a Job, in either form, as what it would set.
struct JobChange {
  std::string uid;
  std::optional<std::int64_t> limit;
  std::vector<std::string> others;  // what it would change besides
};

bool is_note(std::string_view annotation) {
  return annotation == kRetryCreditsAnnotation || annotation == kLossesAnnotation;
}

JobChange read_tested(const json& operations) {
  JobChange change;
  for (const auto& operation : operations) {
    const auto op = text(operation, {"op"});
    const auto path = text(operation, {"path"});
    const auto& value = operation.contains("value") ? operation["value"] : json();
    if (op == "test") {
      if (path == "/metadata/uid" && value.is_string()) change.uid = value;
    } else if (path == "/spec/backoffLimit" && value.is_number_integer()) {
      change.limit = value;
    } else if (!is_note(annotation_at(path)) && !(path == "/metadata/annotations" && op == "add" && value.empty())) {
      change.others.push_back(path);
    }
  }
  return change;
}

JobChange read_merge(const json& body) {
  JobChange change{.uid = text(body, {"metadata", "uid"}), .limit = {}, .others = {}};
  if (const auto* limit = field(body, {"spec", "backoffLimit"}); limit != nullptr) change.limit = *limit;
  if (!has_only(&body, std::array<std::string_view, 2>{"metadata", "spec"}) ||
      !has_only(field(body, {"spec"}), std::array<std::string_view, 1>{"backoffLimit"}) ||
      !has_only(field(body, {"metadata"}), std::array<std::string_view, 3>{"uid", "resourceVersion", "annotations"}) ||
      !has_only(field(body, {"metadata", "annotations"}),
                std::array<std::string_view, 2>{kRetryCreditsAnnotation, kLossesAnnotation})) {
    change.others.emplace_back("more than notes and backoffLimit");
  }
  return change;
}

/// What has no effect on any object: rights asked for, and a dry run.
bool is_question(const sim::Target& target) {
  const auto& parts = target.segments;
  return (parts.size() >= 2 && parts[1] == "authorization.k8s.io") || !target.param("dryRun").empty();
}

}  // namespace

void Conduct::eviction_ended(const std::string& uid, bool happened) {
  if (happened) {
    evicted_.insert(uid);
  } else {
    evicted_.erase(uid);
  }
}

void Conduct::etcd_restored() {
  evicted_.clear();
  limits_.clear();
}

void Conduct::say(std::string_view invariant, const AnsweredRequest& request, std::string_view what) {
  broken_.push_back(fmt::format("{}: {} {} ({}): {}", invariant, k8s::to_string(request.method), request.target,
                                request.status, what));
}

void Conduct::take(const AnsweredRequest& request) {
  if (request.method == k8s::Method::Get) return;
  const auto target = sim::parse_target(request.target);
  if (is_question(target)) return;
  ++writes_;
  const auto path = sim::parse_resource_path(target);
  if (!path) return say("I14", request, "what is written is no object that is known");
  look_at_write(*path, request);
}

void Conduct::look_at_write(const sim::ResourcePath& path, const AnsweredRequest& request) {
  using k8s::Method;
  const auto is = [&](Method method, std::string_view resource, std::string_view subresource) {
    return request.method == method && path.resource == resource && path.subresource == subresource;
  };
  if (is(Method::Post, "pods", "eviction")) return look_at_eviction(request);
  if (is(Method::Patch, "pods", "status")) return look_at_condition(request);
  if (is(Method::Patch, "devicetaintrules", "") || is(Method::Delete, "devicetaintrules", "")) {
    return look_at_rule(path, request);
  }
  if (is(Method::Patch, "nodes", "")) return look_at_node(request);
  if (is(Method::Patch, "nodes", "status")) return look_at_node_condition(request);
  if (path.resource == "jobs" && (is(Method::Patch, "jobs", "") || is(Method::Post, "jobs", ""))) {
    return look_at_job(path, request);
  }
  if (path.resource == "configmaps" && path.subresource.empty()) return look_at_state(path, request);
  if (is(Method::Post, "events", "")) return look_at_event(request);
  if (is(Method::Patch, "leases", "")) return look_at_lease(request);
  const bool is_others = path.group.contains('.') && !path.group.ends_with(".k8s.io") && path.subresource.empty();
  if (is_others && (request.method == Method::Post || request.method == Method::Delete)) return look_at_object(request);
  say("I14", request, "nothing of ours is written there");
}

void Conduct::look_at_eviction(const AnsweredRequest& request) {
  const auto uid = text(request.body, {"deleteOptions", "preconditions", "uid"});
  if (uid.empty()) return say("I1", request, "an eviction without a UID as its precondition");
  if (is_accepted(request) && !evicted_.insert(uid).second) {
    say("I2", request, fmt::format("the pod with the UID {} was evicted before", uid));
  }
}

void Conduct::look_at_rule(const sim::ResourcePath& path, const AnsweredRequest& request) {
  if (!path.name.starts_with(kRulePrefix)) return say("I14", request, "not a DeviceTaintRule of ours");
  if (request.method == k8s::Method::Delete) {
    if (text(request.body, {"preconditions", "uid"}).empty()) say("I14", request, "a deletion without a UID");
    if (!rules_.contains(path.name)) say("I14", request, "a DeviceTaintRule that we never applied");
    return;
  }
  rules_.insert(path.name);
  for (const auto* part : {"driver", "pool", "device"}) {
    if (text(request.body, {"spec", "deviceSelector", part}).empty()) {
      say("I14", request, fmt::format("its selector has no {}: it means more than one device", part));
    }
  }
  const auto effect = text(request.body, {"spec", "taint", "effect"});
  if (effect != "None" && effect != "NoSchedule") say("I12", request, "an effect that ends pods");
  if (text(request.body, {"spec", "taint", "key"}) != kTaintKey) say("I14", request, "not our taint's key");
}

void Conduct::look_at_node(const AnsweredRequest& request) {
  if (!request.body.is_array()) return say("I14", request, "a node is changed by JSON patch alone");
  bool is_versioned = false;
  std::set<std::string> ours;  // taints that a test has shown to be ours
  for (const auto& operation : request.body) {
    const auto op = text(operation, {"op"});
    const auto path = text(operation, {"path"});
    const auto& value = operation.contains("value") ? operation["value"] : json();
    if (path == "/metadata/resourceVersion") {
      is_versioned = true;
    } else if (op == "test" && path.ends_with("/key")) {
      if (value == kTaintKey) ours.insert(path.substr(0, path.size() - 4));
    } else if (op == "add" && path.starts_with("/spec/taints")) {
      const auto& taint = value.is_array() && value.size() == 1 ? value[0] : value;
      if (text(taint, {"key"}) != kTaintKey) say("I14", request, "it adds a taint that is not ours");
    } else if (op != "remove" || !ours.contains(path)) {
      say("I14", request, fmt::format("{} {}: more than our own taint is changed", op, path));
    }
  }
  if (!is_versioned) say("I14", request, "the node's resourceVersion is no precondition");
}

void Conduct::look_at_node_condition(const AnsweredRequest& request) {
  if (sim::parse_target(request.target).param("fieldManager") != kHandOverManager)
    say("I14", request, "not under the name that owns our conditions of nodes");
  if (text(request.body, {"metadata", "uid"}).empty()) say("I1", request, "a condition for no certain UID");
  if (!has_only(field(request.body, {"status"}), std::array<std::string_view, 1>{"conditions"}) ||
      !has_only(&request.body, std::array<std::string_view, 4>{"apiVersion", "kind", "metadata", "status"}) ||
      !has_only(field(request.body, {"metadata"}), std::array<std::string_view, 2>{"name", "uid"})) {
    say("I14", request, "more than conditions is applied");
  }
  for (const auto& condition : list(request.body, {"status", "conditions"})) {
    if (std::ranges::find(kNodeReasons, text(condition, {"reason"})) == kNodeReasons.end())
      say("I14", request, "a condition that is not ours");
    if (text(condition, {"message"}).size() > kLongestMessage) say("I8", request, "its message is too long");
  }
}

void Conduct::look_at_condition(const AnsweredRequest& request) {
  if (text(request.body, {"metadata", "uid"}).empty()) say("I1", request, "a condition for no certain UID");
  if (!has_only(field(request.body, {"status"}), std::array<std::string_view, 1>{"conditions"}) ||
      !has_only(&request.body, std::array<std::string_view, 4>{"apiVersion", "kind", "metadata", "status"})) {
    say("I14", request, "more than a condition is applied");
  }
  if (const auto* annotations = field(request.body, {"metadata", "annotations"}); annotations != nullptr) {
    if (!has_only(annotations, std::array<std::string_view, 1>{kNoticeAnnotation}))
      say("I14", request, "an annotation that is not ours");
    if (text(*annotations, {kNoticeAnnotation}).size() > kLongestNotice) say("I8", request, "the notice is too long");
  }
  if (!has_only(field(request.body, {"metadata"}),
                std::array<std::string_view, 4>{"name", "namespace", "uid", "annotations"})) {
    say("I14", request, "more metadata than our annotation is applied");
  }
  for (const auto& condition : list(request.body, {"status", "conditions"})) {
    if (text(condition, {"type"}) != kConditionType) say("I14", request, "a condition that is not ours");
    if (text(condition, {"message"}).size() > kLongestMessage) say("I8", request, "its message is too long");
  }
}

void Conduct::look_at_job(const sim::ResourcePath& path, const AnsweredRequest& request) {
  if (request.method == k8s::Method::Post) {
    const auto* label = field(request.body, {"metadata", "labels", kRecreatedFromLabel});
    if (label == nullptr) say("I14", request, "a Job that replaces none");
    return;
  }
  const auto change = request.body.is_array() ? read_tested(request.body) : read_merge(request.body);
  for (const auto& other : change.others) say("I14", request, other + " of a Job is not ours");
  if (change.uid.empty()) say("I1", request, "a Job's UID is no precondition");
  if (!change.limit || !is_accepted(request)) return;
  auto& [uid, limit] = limits_[path.ns + "/" + path.name];
  if (uid == change.uid && *change.limit < limit && !may_take_back_) {
    say("I16", request, fmt::format("its limit was {}", limit));
  }
  uid = change.uid;
  limit = *change.limit;
}

void Conduct::look_at_state(const sim::ResourcePath& path, const AnsweredRequest& request) {
  const auto name = path.name.empty() ? text(request.body, {"metadata", "name"}) : path.name;
  const bool is_status = name == kStatusName;
  const bool is_earlier = has_earlier_release_ && name == kStateName;
  if ((name != kIncidentsName && !is_status && !is_earlier) || request.method == k8s::Method::Delete) {
    return say("I14", request, fmt::format("the ConfigMap {} is not ours", name));
  }
  std::size_t size = 0;
  if (const auto* data = field(request.body, {"data"}); data != nullptr && data->is_object()) {
    for (const auto& [key, value] : data->items()) {
      size += value.is_string() ? value.get_ref<const std::string&>().size() : 0;
    }
  }
  if (size > (is_status ? kLongestStatus : kLongestState)) say("I8", request, fmt::format("{} bytes of data", size));
}

/// Whoever says who leads says it of the record that was read: of two that read the same one, one is refused.
void Conduct::look_at_lease(const AnsweredRequest& request) {
  const auto* spec = field(request.body, {"spec"});
  if (spec == nullptr || spec->is_null()) return;  // made, and nobody's yet
  for (const auto* condition : {"uid", "resourceVersion"}) {
    if (text(request.body, {"metadata", condition}).empty())
      say("I5", request, fmt::format("who leads is said with no {} as its precondition", condition));
  }
}

/// An object of another's kind, by which a node is handed over.
void Conduct::look_at_object(const AnsweredRequest& request) {
  const auto target = sim::parse_target(request.target);
  auto collection = target.segments;
  if (request.method == k8s::Method::Delete) {
    if (text(request.body, {"preconditions", "uid"}).empty()) say("I14", request, "a deletion without a UID");
    collection.pop_back();
    if (!objects_.contains(fmt::format("{}", fmt::join(collection, "/"))))
      say("I14", request, "an object of a kind that we never made");
    return;
  }
  objects_.insert(fmt::format("{}", fmt::join(collection, "/")));
  if (target.param("fieldManager") != kHandOverManager)
    say("I14", request, "not under the name that owns what hands nodes over");
  if (text(request.body, {"metadata", "labels", kManagedByLabel}) != kManagedBy ||
      text(request.body, {"metadata", "annotations", kIncidentAnnotation}).empty())
    say("I14", request, "an object that nobody would know as ours");
}

void Conduct::look_at_event(const AnsweredRequest& request) {
  if (text(request.body, {"note"}).size() > kLongestNote) say("I8", request, "its note is too long");
}

}  // namespace dhc::test
