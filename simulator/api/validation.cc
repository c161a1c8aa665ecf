#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simulator/api/call.h"
#include "simulator/api/health_words.h"
#include "simulator/api/naming.h"

namespace dhc::sim {
namespace {

bool fits(std::string_view text, std::string_view pattern) {
  if (text.size() != pattern.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (pattern[i] == '0' ? !digit : text[i] != pattern[i]) return false;
  }
  return true;
}

/// Exactly six fractional digits, UTC or an offset. **Source:** seen on 1.37.1.
bool is_micro_time(std::string_view text) {
  return fits(text, "0000-00-00T00:00:00.000000Z") || fits(text, "0000-00-00T00:00:00.000000+00:00") ||
         fits(text, "0000-00-00T00:00:00.000000-00:00");
}

std::string bad_micro_time(std::string_view kind, const std::string& value) {
  return fmt::format(
      "{} in version \"v1\" cannot be handled as a {}: parsing time \"{}\" as "
      "\"2006-01-02T15:04:05.000000Z07:00\": cannot parse",
      kind, kind, value);
}

void require(Json& causes, const Json& object, std::string_view name) {
  if (text(object, {name}).empty()) causes.push_back(cause("FieldValueRequired", "Required value", name));
}

// **Source:** events.k8s.io validation, seen on 1.37.1.
Faults422 validate_event(const Json& event, const Json* before) {
  Faults422 faults{Json::array(), ""};
  const auto time = text(event, {"eventTime"});
  if (!time.empty() && !is_micro_time(time)) {
    faults.bad_request = bad_micro_time("Event", time);
    return faults;
  }
  for (const auto* name : {"eventTime", "reportingController", "reportingInstance", "action", "reason"}) {
    require(faults.causes, event, name);
  }
  const auto type = text(event, {"type"});
  if (type != "Normal" && type != "Warning") {
    faults.causes.push_back(cause("FieldValueInvalid", fmt::format("Invalid value: \"{}\"", type), "type"));
  }
  if (text(event, {"note"}).size() > 1024) {
    faults.causes.push_back(
        cause("FieldValueInvalid", "Invalid value: \"\": can have at most 1024 characters", "note"));
  }
  const auto ns = ns_of(event);
  if (text(event, {"regarding", "namespace"}).empty() && ns != "default" && ns != "kube-system") {
    faults.causes.push_back(cause("FieldValueInvalid",
                                  fmt::format("Invalid value: \"{}\": does not match event.namespace", ns),
                                  "involvedObject.namespace"));
  }
  if (const auto* series = field(event, {"series"}); series != nullptr && !series->is_null()) {
    if (number(event, {"series", "count"}) < 2) {
      faults.causes.push_back(cause("FieldValueInvalid", "Invalid value: should be at least 2", "series.count"));
    }
  }
  if (before != nullptr) {
    for (const auto* name : {"note", "reason", "type", "action", "regarding", "eventTime", "reportingController"}) {
      if (event.value(name, Json()) != before->value(name, Json())) {
        faults.causes.push_back(cause("FieldValueInvalid", "Invalid value: field is immutable", name));
      }
    }
  }
  return faults;
}

// **Source:** resource.k8s.io validation, recorded on 1.37.1 (rule-422).
Faults422 validate_rule(const Json& rule) {
  Faults422 faults{Json::array(), ""};
  const Json* taint = field(rule, {"spec", "taint"});
  check_taint(taint == nullptr ? Json::object() : *taint, "spec.taint", faults.causes);
  const auto effect = text(rule, {"spec", "taint", "effect"});
  if (effect != "None" && effect != "NoSchedule" && effect != "NoExecute") {
    faults.causes.push_back(cause(
        "FieldValueNotSupported",
        fmt::format("Unsupported value: \"{}\": supported values: \"NoExecute\", \"NoSchedule\", \"None\"", effect),
        "spec.taint.effect"));
  }
  return faults;
}

// A taint's identity is its key and effect. **Source:** core/v1 validation.
Faults422 validate_node(const Json& node) {
  Faults422 faults{Json::array(), ""};
  std::set<std::string> seen;
  std::size_t index = 0;
  for (const auto& taint : list(node, {"spec", "taints"})) {
    const auto at = fmt::format("metadata.taints[{}]", index++);
    check_taint(taint, at, faults.causes);
    const auto effect = text(taint, {"effect"});
    if (effect != "NoSchedule" && effect != "PreferNoSchedule" && effect != "NoExecute") {
      faults.causes.push_back(cause("FieldValueNotSupported",
                                    fmt::format("Unsupported value: \"{}\": supported values: \"NoExecute\", "
                                                "\"NoSchedule\", \"PreferNoSchedule\"",
                                                effect),
                                    at + ".effect"));
    }
    if (!seen.insert(text(taint, {"key"}) + ":" + effect).second) {
      faults.causes.push_back(cause("FieldValueDuplicate", fmt::format("Duplicate value: {}", taint.dump()), at));
    }
  }
  return faults;
}

// **Source:** core/v1 validation: all entries together.
Faults422 validate_config_map(const Json& map) {
  constexpr std::size_t kMost = 1024UL * 1024;
  std::size_t size = 0;
  if (const Json* data = field(map, {"data"}); data != nullptr && data->is_object()) {
    for (const auto& [key, value] : data->items()) size += value.is_string() ? value.get<std::string>().size() : 0;
  }
  Faults422 faults{Json::array(), ""};
  if (size > kMost) {
    faults.causes.push_back(cause("FieldValueTooLong", "Too long: may not be more than 1048576 bytes", ""));
  }
  return faults;
}

// **Source:** batch/v1 validation, seen on 1.37.1.
Faults422 validate_job(const Json& job, const Json* before) {
  Faults422 faults{Json::array(), ""};
  if (before == nullptr) return faults;
  for (const auto* name : {"backoffLimitPerIndex", "podFailurePolicy", "completionMode", "selector", "template"}) {
    const Json none;
    const auto* now = field(job, {"spec", name});
    const auto* was = field(*before, {"spec", name});
    if ((now == nullptr ? none : *now) != (was == nullptr ? none : *was)) {
      faults.causes.push_back(
          cause("FieldValueInvalid", "Invalid value: field is immutable", fmt::format("spec.{}", name)));
    }
  }
  return faults;
}

void default_job(Store& store, Json& job) {
  auto& spec = job["spec"];
  const bool policy = spec.contains("podFailurePolicy");
  if (!spec.contains("parallelism")) spec["parallelism"] = 1;
  if (!spec.contains("completions") && number(job, {"spec", "parallelism"}) == 1) spec["completions"] = 1;
  if (!spec.contains("backoffLimit")) spec["backoffLimit"] = 6;
  if (!spec.contains("completionMode")) spec["completionMode"] = "NonIndexed";
  if (!spec.contains("podReplacementPolicy")) {
    spec["podReplacementPolicy"] = policy ? "Failed" : "TerminatingOrFailed";
  }
  if (!spec.contains("suspend")) spec["suspend"] = false;
  if (!spec.contains("selector")) {
    // The real label is the Job's own uid; any unique value does for matching.
    const auto id = store.new_uid();
    spec["selector"] = {{"matchLabels", {{"batch.kubernetes.io/controller-uid", id}}}};
    auto& labels = spec["template"]["metadata"]["labels"];
    labels["batch.kubernetes.io/controller-uid"] = id;
    labels["batch.kubernetes.io/job-name"] = name_of(job);
    labels["job-name"] = name_of(job);
  }
}

void default_rule(Store& store, Json& rule, const Json* before) {
  if (!rule.contains("spec") || !rule["spec"].is_object() || !rule["spec"].contains("taint")) return;
  const bool changed =
      before == nullptr || text(rule, {"spec", "taint", "effect"}) != text(*before, {"spec", "taint", "effect"});
  if (changed) rule["spec"]["taint"]["timeAdded"] = store.time_text();
}

// **Source:** coordination.k8s.io/v1 validation, seen on 1.37.1. Numbers that do not fit in 32 bits become the smallest
// that does.
Faults422 validate_lease(const Json& lease) {
  Faults422 faults{Json::array(), ""};
  for (const auto* name : {"renewTime", "acquireTime"}) {
    const auto* time = field(lease, {"spec", name});
    if (time == nullptr || time->is_null()) continue;
    const auto said = text(lease, {"spec", name});
    if (!is_micro_time(said)) return {Json::array(), bad_micro_time("Lease", said)};
  }
  constexpr std::int64_t kMost = 2147483647;
  const auto check = [&](const char* name, std::int64_t least, std::string_view words) {
    const auto* found = field(lease, {"spec", name});
    if (found == nullptr || found->is_null()) return;
    const auto said = number(lease, {"spec", name});
    if (said >= least && said <= kMost) return;
    const auto stored = said > kMost ? -kMost - 1 : said;
    faults.causes.push_back(cause("FieldValueInvalid", fmt::format("Invalid value: {}: must be {}", stored, words),
                                  fmt::format("spec.{}", name)));
  };
  check("leaseDurationSeconds", 1, "greater than 0");
  check("leaseTransitions", 0, "greater than or equal to 0");
  return faults;
}

Faults422 validate_kind(Res res, const Json& object, const Json* before) {
  switch (res) {
    case Res::Events:
      return validate_event(object, before);
    case Res::TaintRules:
      return validate_rule(object);
    case Res::Nodes:
      return validate_node(object);
    case Res::ConfigMaps:
      return validate_config_map(object);
    case Res::Jobs:
      return validate_job(object, before);
    case Res::Leases:
      return validate_lease(object);
    default:
      break;
  }
  return {Json::array(), ""};
}

}  // namespace

Faults422 validate(const Call& call, const Json& object, const Json* before) {
  const bool is_status = call.res == Res::Pods && call.path.subresource == "status";
  auto faults =
      is_status ? Faults422{faults_of_status(call.store, object), ""} : validate_kind(call.res, object, before);
  check_metadata(object, faults.causes);
  return faults;
}

void set_defaults(Store& store, Res res, Json& object, const Json* before) {
  if (before == nullptr) {
    object["metadata"].erase("uid");
    object["metadata"].erase("resourceVersion");
    if (type_of(res).has_status && res != Res::Nodes) object["status"] = Json::object();
  }
  // An empty list is not stored: the next `add /spec/taints/-` finds nothing to add to.
  if (res == Res::Nodes && field(object, {"spec", "taints"}) != nullptr && list(object, {"spec", "taints"}).empty()) {
    object["spec"].erase("taints");
  }
  if (res == Res::TaintRules) default_rule(store, object, before);
  if (before != nullptr) return;
  if (res == Res::Jobs) default_job(store, object);
  if (res == Res::Pods) {
    object["status"] = {{"phase", "Pending"}, {"qosClass", "BestEffort"}};
    if (!object["spec"].contains("terminationGracePeriodSeconds")) {
      object["spec"]["terminationGracePeriodSeconds"] = 30;
    }
    if (!object["spec"].contains("restartPolicy")) object["spec"]["restartPolicy"] = "Always";
  }
}

}  // namespace dhc::sim
