#include "reconcilers/uninstall/plan.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_field.h"
#include "base/json_read.h"
#include "base/printable.h"
#include "domain/contract/names.h"
#include "domain/contract/our_taint.h"
#include "domain/contract/state_names.h"
#include "domain/incidents/handed_state.h"
#include "domain/incidents/state_text.h"

namespace dhc::uninstall {

namespace {

constexpr std::string_view kDomain = "device-health.io/";
/// What people write on a Job; the rest of our domain is ours.
constexpr std::array<std::string_view, 4> kOfPeople = {kOptOutAnnotation, kAcknowledgeAnnotation,
                                                       kBrakeReleaseAnnotation, kCapReleaseAnnotation};

/// Of what is left; some of it is others' text.
constexpr std::size_t kLongestSentence = 1000;

/// How long a holder may be silent; one that asked for longer is given it, up to a day.
constexpr Millis kTerm = Seconds(15);
constexpr std::int64_t kLongestTerm = 24 * 3600;
/// A standby makes, or takes, a Lease that nobody holds within this time.
constexpr Millis kTakeover = Seconds(5);

Trace trace_on(const nlohmann::json& object, TraceKind kind) {
  Trace trace;
  trace.kind = kind;
  trace.ns = json_string(object, {"metadata", "namespace"});
  trace.name = json_string(object, {"metadata", "name"});
  trace.uid = json_string(object, {"metadata", "uid"});
  return trace;
}

/// Whether our field manager owns the field at that path, in the form of `fieldsV1`, by such an operation.
bool we_own(const nlohmann::json& object, JsonPath path, std::string_view operation = {},
            std::string_view manager = kFieldManager) {
  return std::ranges::any_of(json_list(object, {"metadata", "managedFields"}), [&](const nlohmann::json& entry) {
    if (json_string(entry, {"manager"}) != manager) return false;
    if (!operation.empty() && json_string(entry, {"operation"}) != operation) return false;
    const nlohmann::json* fields = json_field(entry, {"fieldsV1"});
    return fields != nullptr && json_field(*fields, path) != nullptr;
  });
}

void look_at_rule(const nlohmann::json& rule, std::string_view api_version, Found& found) {
  Trace trace = trace_on(rule, TraceKind::Rule);
  const bool labelled = json_string(rule, {"metadata", "labels", kManagedByLabel}) == kManagedBy;
  if (labelled && trace.name.starts_with(kRulePrefix)) {
    trace.api_version = api_version;
    found.traces.push_back(std::move(trace));
  } else if (json_string(rule, {"spec", "taint", "key"}) == kTaintKey) {
    found.left.push_back(
        fmt::format("{} taints with {}, but has not both our label and our prefix", to_string(trace), kTaintKey));
  }
}

/// What an apply of ours without conditions takes away, whatever else its types may be called.
void look_at_conditions(const nlohmann::json& node, Found& found) {
  Trace trace = trace_on(node, TraceKind::NodeCondition);
  for (const nlohmann::json& condition : json_list(node, {"status", "conditions"})) {
    const auto type = json_string(condition, {"type"});
    const std::string field = fmt::format("k:{}", nlohmann::json({{"type", type}}).dump());
    if (we_own(node, {"f:status", "f:conditions", field}, "Apply", kHandOverManager)) {
      trace.types.push_back(type);
    } else if (std::ranges::find(kNodeReasons, json_string(condition, {"reason"})) != kNodeReasons.end()) {
      found.left.push_back(
          printable_cut(fmt::format("condition {} of Node {}: {} does not own it", type, trace.name, kHandOverManager),
                        kLongestSentence));
    }
  }
  if (!trace.types.empty()) found.traces.push_back(std::move(trace));
}

void look_at_node(const nlohmann::json& node, Found& found) {
  look_at_conditions(node, found);
  Trace trace = trace_on(node, TraceKind::NodeTaint);
  const auto taints = json_list(node, {"spec", "taints"});
  for (std::size_t place = 0; place < taints.size(); ++place) {
    const k8s::Taint taint{.key = json_string(taints[place], {"key"}),
                           .value = json_string(taints[place], {"value"}),
                           .effect = json_string(taints[place], {"effect"})};
    if (taint == node_taint()) {
      trace.places.push_back(place);
    } else if (taint.key == kTaintKey) {
      found.left.push_back(
          printable_cut(fmt::format("{}={}:{} of Node {}: we taint with value {} and effect {} only", taint.key,
                                    taint.value, taint.effect, trace.name, node_taint().value, node_taint().effect),
                        kLongestSentence));
    }
  }
  if (trace.places.empty()) return;
  trace.resource_version = json_string(node, {"metadata", "resourceVersion"});
  found.traces.push_back(std::move(trace));
}

bool has_our_condition(const nlohmann::json& pod) {
  return std::ranges::any_of(json_list(pod, {"status", "conditions"}), [](const nlohmann::json& condition) {
    return json_string(condition, {"type"}) == kConditionType;
  });
}

void look_at_pod(const nlohmann::json& pod, Found& found) {
  const auto look = [&](TraceKind kind, JsonPath path) {
    Trace trace = trace_on(pod, kind);
    const bool ours = we_own(pod, path, "Apply");
    if (!ours) {
      found.left.push_back(
          printable_cut(fmt::format("{}: {} does not own it", to_string(trace), kFieldManager), kLongestSentence));
    } else if (found.traces.empty() || found.traces.back().uid != trace.uid) {
      found.traces.push_back(std::move(trace));  // one apply removes both
    }
  };
  if (has_our_condition(pod)) {
    const std::string field = fmt::format(R"(k:{{"type":"{}"}})", kConditionType);
    look(TraceKind::Condition, {"f:status", "f:conditions", field});
  }
  if (json_field(pod, {"metadata", "annotations", kNoticeAnnotation}) != nullptr) {
    const auto field = fmt::format("f:{}", kNoticeAnnotation);
    look(TraceKind::Notice, {"f:metadata", "f:annotations", field});
  }
}

void look_at_job(const nlohmann::json& job, Found& found) {
  Trace trace = trace_on(job, TraceKind::Annotation);
  const nlohmann::json* annotations = json_field(job, {"metadata", "annotations"});
  if (annotations == nullptr || !annotations->is_object()) return;
  for (const auto& [key, value] : annotations->items()) {
    if (!key.starts_with(kDomain) || std::ranges::find(kOfPeople, key) != kOfPeople.end()) continue;
    if (we_own(job, {"f:metadata", "f:annotations", "f:" + key})) {
      trace.annotations.push_back(key);
    } else {
      found.left.push_back(printable_cut(
          fmt::format("annotation {} of Job {}/{}: {} did not write it", key, trace.ns, trace.name, kFieldManager),
          kLongestSentence));
    }
  }
  if (!trace.annotations.empty()) found.traces.push_back(std::move(trace));
}

Result<nlohmann::json> read(std::string_view body, std::string_view what) {
  nlohmann::json json = read_json<nlohmann::json>(body);
  if (!json.is_object()) return fail(ErrorKind::Malformed, fmt::format("the answer is no {}", what));
  return json;
}
}  // namespace

Result<Found> find_traces(k8s::Kind kind, std::string_view api_version, std::string_view body) {
  const auto list = read(body, "list");
  if (!list) return std::unexpected(list.error());
  // A list that is not there would look like a cluster without traces.
  if (json_field(*list, {"items"}) == nullptr) return fail(ErrorKind::Malformed, "the answer has no items");
  Found found;
  found.continue_token = json_string(*list, {"metadata", "continue"});
  for (const nlohmann::json& item : json_list(*list, {"items"})) {
    switch (kind) {
      case k8s::Kind::DeviceTaintRule:
        look_at_rule(item, api_version, found);
        break;
      case k8s::Kind::Node:
        look_at_node(item, found);
        break;
      case k8s::Kind::Pod:
        look_at_pod(item, found);
        break;
      case k8s::Kind::Job:
        look_at_job(item, found);
        break;
      default:
        return fail(ErrorKind::Invalid, "nothing of ours is on this kind");
    }
  }
  return found;
}

Result<Found> find_named(TraceKind kind, std::string_view body) {
  const auto object = read(body, "object");
  if (!object) return std::unexpected(object.error());
  Found found;
  Trace trace = trace_on(*object, kind);
  const std::string manager = json_string(*object, {"metadata", "labels", kManagedByLabel});
  if (manager == kManagedBy) {
    found.traces.push_back(std::move(trace));
  } else if (manager.empty()) {
    found.left.push_back(fmt::format("{}: it has not our label", to_string(trace)));
  } else {
    found.left.push_back(fmt::format("{}: it is managed by {}", to_string(trace), printable_cut(manager, 63)));
  }
  return found;
}

std::vector<ObjectName> remembered_objects(std::string_view state_map) {
  std::vector<ObjectName> found;
  const nlohmann::json map = read_json<nlohmann::json>(state_map);
  for (const auto& section : parse_state(json_string(map, {"data", kIncidentsEntry})).sections) {
    if (section.name != kHandedSection) continue;
    const auto objects = parse_handed_state(section.text);
    for (const auto& [slot, object] : objects.all()) {
      if (object.phase != HandedObject::Phase::Over) found.push_back(object_of(slot, object));
    }
  }
  return found;
}

Trace trace_of_object(const ObjectName& object, std::string path, std::string uid) {
  Trace trace;
  trace.kind = TraceKind::Object;
  trace.ns = object.ns;
  trace.name = object.name;
  trace.uid = std::move(uid);
  trace.path = std::move(path);
  trace.object_kind = object.kind;
  return trace;
}

void LeaseLooks::add(std::optional<k8s::Lease> lease, MonoTime now) {
  const auto same = [](const k8s::Lease& a, const k8s::Lease& b) {
    return a.meta.uid == b.meta.uid && a.holder == b.holder && a.renew_time == b.renew_time;
  };
  const bool unchanged = has_looked_ && last_.has_value() == lease.has_value() && (!lease || same(*last_, *lease));
  if (unchanged) return;
  const bool held = lease && !lease->holder.empty();
  if (has_looked_ && held)
    running_ = fmt::format("{} renewed the Lease while we looked", printable_cut(lease->holder, 128));
  if (held) {
    const Seconds asked(std::clamp<std::int64_t>(lease->duration_seconds, 0, kLongestTerm));
    certain_at_ = now + std::max(kTerm, Millis(asked));
  } else {
    certain_at_ = now + kTakeover;
  }
  has_looked_ = true;
  last_ = std::move(lease);
}

std::string LeaseLooks::holder() const { return last_ ? last_->holder : std::string(); }

}  // namespace dhc::uninstall
