#include "k8s-client/model/proto_scheduling.h"

#include <string>
#include <utility>

#include "k8s-client/model/decode_scheduling.h"

namespace dhc::k8s::proto {

namespace {

// **Source:** core/v1 generated.proto, NodeSelectorRequirement.
bool read_requirement(const Value& value, Fault& fault, NodeRequirement& requirement) {
  std::string word;
  const bool read = each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    switch (tag) {
      case 1:
        return read_name(field, fault, requirement.key) || fault.in("key");
      case 2:
        return read_name(field, fault, word) || fault.in("operator");
      case 3:
        return read_one_name(field, fault, requirement.values) || fault.in("values");
      default:
        return true;
    }
  });
  requirement.op = node_operator_of(word);
  return read;
}

// **Source:** core/v1 generated.proto, NodeSelectorTerm.
bool read_term(const Value& value, Fault& fault, NodeTerm& term) {
  NodeTerm fields;
  const bool read = each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == 1) return read_item(field, fault, term, read_requirement) || fault.in("matchExpressions");
    if (tag == 2) return read_item(field, fault, fields, read_requirement) || fault.in("matchFields");
    return true;
  });
  for (auto& requirement : fields) requirement.is_field = true;
  term.insert(term.end(), fields.begin(), fields.end());
  return read;
}

// What is required is field 1 of each of the three, and so is the list in a NodeSelector.
// **Source:** core/v1 generated.proto, NodeAffinity, PodAffinity, PodAntiAffinity, NodeSelector.
bool read_node_affinity(const Value& value, Fault& fault, SchedulingTerms& terms) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& required) {
    if (tag != 1) return true;
    terms.has_node_terms = true;
    return each_field(required, fault, [&](std::uint32_t part, const Value& term) {
      return part != 1 || read_item(term, fault, terms.node_terms, read_term) || fault.in("nodeSelectorTerms");
    });
  });
}

bool read_pod_affinity(const Value& value, Fault& fault, bool& any) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value&) {
    any = any || tag == 1;
    return true;
  });
}

// **Source:** core/v1 generated.proto, Affinity.
bool read_affinity(const Value& value, Fault& fault, SchedulingTerms& terms) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == 1) return read_node_affinity(field, fault, terms) || fault.in("nodeAffinity");
    if (tag == 2) return read_pod_affinity(field, fault, terms.has_other_terms) || fault.in("podAffinity");
    if (tag == 3) return read_pod_affinity(field, fault, terms.has_other_terms) || fault.in("podAntiAffinity");
    return true;
  });
}

}  // namespace

bool read_toleration(const Value& value, Fault& fault, std::vector<Toleration>& tolerations) {
  Toleration toleration;
  std::string op;
  const bool read = each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    switch (tag) {
      case 1:
        return read_name(field, fault, toleration.key) || fault.in("key");
      case 2:
        return read_name(field, fault, op) || fault.in("operator");
      case 3:
        return read_name(field, fault, toleration.value) || fault.in("value");
      case 4:
        return read_name(field, fault, toleration.effect) || fault.in("effect");
      default:
        return true;
    }
  });
  if (read && settle_toleration(op, toleration)) tolerations.push_back(std::move(toleration));
  return read;
}

bool SchedulingReader::read_selector_entry(const Value& value, Fault& fault) {
  std::string_view key;
  Value held;
  std::string label;
  if (!read_map_entry(value, fault, key, held) || !read_name(held, fault, label)) return false;
  selector_.emplace_back(key, selector_.size(), held.bytes);
  return true;
}

bool SchedulingReader::read_field(std::uint32_t tag, const Value& value, Fault& fault) {
  switch (tag) {
    case 7:
      return read_selector_entry(value, fault) || fault.in("nodeSelector");
    case 18:
      return read_affinity(value, fault, terms_) || fault.in("affinity");
    case 22:
      return read_toleration(value, fault, terms_.tolerations) || fault.in("tolerations");
    case 33:
      terms_.has_other_terms = true;
      return true;
    case 38:
      terms_.gated = true;
      return true;
    default:
      return true;
  }
}

SchedulingTerms SchedulingReader::take() {
  terms_.node_selector = to_map(selector_);
  return std::move(terms_);
}

}  // namespace dhc::k8s::proto
