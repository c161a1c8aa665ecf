#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simulator/call.h"

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

bool is_label_name(const std::string& key) {
  const auto slash = key.rfind('/');
  const auto name = slash == std::string::npos ? key : key.substr(slash + 1);
  const auto alnum = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  if (name.empty() || name.size() > 63 || !alnum(name.front()) || !alnum(name.back())) return false;
  return std::ranges::all_of(name, [&](char c) { return alnum(c) || c == '-' || c == '_' || c == '.'; });
}

// **Source:** resource.k8s.io validation, recorded on 1.37.1 (rule-422).
Faults422 validate_rule(const Json& rule) {
  Faults422 faults{Json::array(), ""};
  const auto key = text(rule, {"spec", "taint", "key"});
  if (key.empty()) {
    faults.causes.push_back(cause("FieldValueRequired", "Required value", "spec.taint.key"));
  } else if (!is_label_name(key)) {
    faults.causes.push_back(cause(
        "FieldValueInvalid",
        fmt::format("Invalid value: \"{}\": name part must consist of alphanumeric characters, '-', '_' or '.', and "
                    "must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
                    "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                    key),
        "spec.taint.key"));
  }
  const auto effect = text(rule, {"spec", "taint", "effect"});
  if (effect != "None" && effect != "NoSchedule" && effect != "NoExecute") {
    faults.causes.push_back(cause(
        "FieldValueNotSupported",
        fmt::format("Unsupported value: \"{}\": supported values: \"NoExecute\", \"NoSchedule\", \"None\"", effect),
        "spec.taint.effect"));
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

}  // namespace

Faults422 validate(Res res, const Json& object, const Json* before) {
  switch (res) {
    case Res::Events:
      return validate_event(object, before);
    case Res::TaintRules:
      return validate_rule(object);
    case Res::Jobs:
      return validate_job(object, before);
    case Res::Leases:
      for (const auto* name : {"renewTime", "acquireTime"}) {
        const auto time = text(object, {"spec", name});
        if (!time.empty() && !is_micro_time(time)) return {Json::array(), bad_micro_time("Lease", time)};
      }
      break;
    default:
      break;
  }
  return {Json::array(), ""};
}

void set_defaults(Store& store, Res res, Json& object, const Json* before) {
  if (before == nullptr) {
    object["metadata"].erase("uid");
    object["metadata"].erase("resourceVersion");
    if (type_of(res).has_status && res != Res::Nodes) object["status"] = Json::object();
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
