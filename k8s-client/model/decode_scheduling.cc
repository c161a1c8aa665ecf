#include "k8s-client/model/decode_scheduling.h"

#include <functional>
#include <map>
#include <string>
#include <utility>

namespace dhc::k8s {

namespace {

// Every pod gets these two by admission: they are about nodes that are not Ready, which are no place for a new pod.
bool is_everybodys(const Toleration& toleration) {
  return toleration.exists && toleration.effect == "NoExecute" &&
         (toleration.key == "node.kubernetes.io/not-ready" || toleration.key == "node.kubernetes.io/unreachable");
}

bool read_labels(JsonValue value, Fault& fault, StringMap& labels) {
  std::map<std::string, std::string, std::less<>> sorted;
  const bool read = each_field(value, fault, [&](std::string_view key, JsonValue text) {
    return read_name(text, fault, sorted[std::string(key)]) || fault.in(key);
  });
  labels.clear();
  for (const auto& [key, text] : sorted) labels.emplace_back(key, text);
  return read;
}

bool read_requirement(JsonValue value, Fault& fault, NodeRequirement& requirement) {
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "key") return read_name(field, fault, requirement.key) || fault.in(key);
    if (key == "values") return read_names(field, fault, requirement.values) || fault.in(key);
    if (key != "operator") return true;
    std::string word;
    if (!read_name(field, fault, word)) return fault.in(key);
    requirement.op = node_operator_of(word);
    return true;
  });
}

bool read_term(JsonValue value, Fault& fault, NodeTerm& term) {
  NodeTerm labels;
  NodeTerm fields;
  const bool read = each_field(value, fault, [&](std::string_view key, JsonValue list) {
    if (key == "matchExpressions") return read_list(list, fault, labels, read_requirement) || fault.in(key);
    if (key == "matchFields") return read_list(list, fault, fields, read_requirement) || fault.in(key);
    return true;
  });
  for (auto& requirement : fields) requirement.is_field = true;
  term = std::move(labels);
  term.insert(term.end(), fields.begin(), fields.end());
  return read;
}

bool read_required(JsonValue value, Fault& fault, SchedulingTerms& terms) {
  bool null = false;
  if (!read_null(value, fault, null)) return false;
  terms.node_terms.clear();
  terms.has_node_terms = !null;
  return each_field(value, fault, [&](std::string_view key, JsonValue list) {
    return key != "nodeSelectorTerms" || read_list(list, fault, terms.node_terms, read_term) || fault.in(key);
  });
}

bool read_node_affinity(JsonValue value, Fault& fault, SchedulingTerms& terms) {
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    return key != "requiredDuringSchedulingIgnoredDuringExecution" || read_required(field, fault, terms) ||
           fault.in(key);
  });
}

bool note_if_any(JsonValue value, Fault& fault, bool& any) {
  return each_item(value, fault, [&](const JsonValue&) { return any = true; });
}

bool read_pod_affinity(JsonValue value, Fault& fault, bool& any) {
  return each_field(value, fault, [&](std::string_view key, JsonValue list) {
    return key != "requiredDuringSchedulingIgnoredDuringExecution" || note_if_any(list, fault, any) || fault.in(key);
  });
}

bool read_affinity(JsonValue value, Fault& fault, SchedulingTerms& terms) {
  terms.node_terms.clear();
  terms.has_node_terms = false;
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "nodeAffinity") return read_node_affinity(field, fault, terms) || fault.in(key);
    if (key == "podAffinity" || key == "podAntiAffinity") {
      return read_pod_affinity(field, fault, terms.has_other_terms) || fault.in(key);
    }
    return true;
  });
}

bool read_toleration(JsonValue value, Fault& fault, Toleration& toleration, bool& kept) {
  std::string op;
  const bool read = each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "key") return read_name(field, fault, toleration.key) || fault.in(key);
    if (key == "value") return read_name(field, fault, toleration.value) || fault.in(key);
    if (key == "effect") return read_name(field, fault, toleration.effect) || fault.in(key);
    if (key == "operator") return read_name(field, fault, op) || fault.in(key);
    return true;
  });
  kept = settle_toleration(op, toleration);
  return read;
}

bool read_gates(JsonValue value, Fault& fault, bool& gated) {
  gated = false;
  return note_if_any(value, fault, gated);
}

}  // namespace

bool read_tolerations(JsonValue value, Fault& fault, std::vector<Toleration>& tolerations) {
  tolerations.clear();
  return each_item(value, fault, [&](JsonValue item) {
    Toleration toleration;
    bool kept = false;
    if (!read_toleration(item, fault, toleration, kept)) return false;
    if (kept) tolerations.push_back(std::move(toleration));
    return true;
  });
}

NodeRequirement::Operator node_operator_of(std::string_view word) {
  using enum NodeRequirement::Operator;
  if (word == "In") return In;
  if (word == "NotIn") return NotIn;
  if (word == "Exists") return Exists;
  if (word == "DoesNotExist") return DoesNotExist;
  if (word == "Gt") return Gt;
  return word == "Lt" ? Lt : Unknown;
}

bool settle_toleration(std::string_view op, Toleration& toleration) {
  toleration.exists = op == "Exists";
  const bool known = op.empty() || op == "Equal" || op == "Exists";
  return known && !is_everybodys(toleration);
}

bool read_scheduling_field(std::string_view key, JsonValue value, Fault& fault, SchedulingTerms& terms) {
  if (key == "nodeSelector") return read_labels(value, fault, terms.node_selector);
  if (key == "affinity") return read_affinity(value, fault, terms);
  if (key == "tolerations") return read_tolerations(value, fault, terms.tolerations);
  if (key == "schedulingGates") return read_gates(value, fault, terms.gated);
  if (key == "topologySpreadConstraints") return note_if_any(value, fault, terms.has_other_terms);
  return true;
}

}  // namespace dhc::k8s
