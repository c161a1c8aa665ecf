#include "k8s-client/model/decode_disruption_budget.h"

#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "k8s-client/model/decode_meta.h"

namespace dhc::k8s {

namespace {

LabelRequirement::Operator label_operator_of(std::string_view word) {
  using enum LabelRequirement::Operator;
  if (word == "In") return In;
  if (word == "NotIn") return NotIn;
  if (word == "Exists") return Exists;
  return word == "DoesNotExist" ? DoesNotExist : Unknown;
}

bool read_expression(JsonValue value, Fault& fault, LabelRequirement& requirement) {
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "key") return read_name(field, fault, requirement.key) || fault.in(key);
    if (key == "values") return read_names(field, fault, requirement.values) || fault.in(key);
    if (key != "operator") return true;
    std::string word;
    if (!read_name(field, fault, word)) return fault.in(key);
    requirement.op = label_operator_of(word);
    return true;
  });
}

/// Each label is a requirement with one value; sorted, so that the same selector reads the same.
bool read_match_labels(JsonValue value, Fault& fault, std::vector<LabelRequirement>& labels) {
  std::map<std::string, std::string, std::less<>> sorted;
  const bool read = each_field(value, fault, [&](std::string_view key, JsonValue text) {
    bool null = false;
    if (!read_null(text, fault, null)) return fault.in(key);
    return null || read_name(text, fault, sorted[std::string(key)]) || fault.in(key);
  });
  labels.clear();
  for (auto& [key, text] : sorted) {
    labels.push_back({.key = key, .op = LabelRequirement::Operator::In, .values = {std::move(text)}});
  }
  return read;
}

bool read_budget_selector(JsonValue value, Fault& fault, DisruptionBudget& budget) {
  budget.selector.reset();
  bool null = false;
  if (!read_null(value, fault, null)) return false;
  if (null) return true;
  std::vector<LabelRequirement> labels;
  std::vector<LabelRequirement> expressions;
  const bool read = each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "matchLabels") return read_match_labels(field, fault, labels) || fault.in(key);
    if (key == "matchExpressions") return read_list(field, fault, expressions, read_expression) || fault.in(key);
    return true;
  });
  labels.insert(labels.end(), std::make_move_iterator(expressions.begin()), std::make_move_iterator(expressions.end()));
  budget.selector = std::move(labels);
  return read;
}

bool read_budget_spec(JsonValue value, Fault& fault, DisruptionBudget& budget) {
  budget.selector.reset();
  budget.always_allows_unhealthy = false;
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "selector") return read_budget_selector(field, fault, budget) || fault.in(key);
    if (key != "unhealthyPodEvictionPolicy") return true;
    std::string word;
    if (!read_name(field, fault, word)) return fault.in(key);
    budget.always_allows_unhealthy = word == "AlwaysAllow";
    return true;
  });
}

bool read_budget_count(JsonValue value, Fault& fault, std::int64_t& count) {
  std::optional<std::int64_t> number;
  if (!read_integer(value, fault, number)) return false;
  count = number.value_or(0);
  return true;
}

bool read_budget_status(JsonValue value, Fault& fault, DisruptionBudget& budget) {
  budget.observed_generation = 0;
  budget.disruptions_allowed = 0;
  budget.current_healthy = 0;
  budget.desired_healthy = 0;
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    const auto read = [&] {
      if (key == "observedGeneration") return read_budget_count(field, fault, budget.observed_generation);
      if (key == "disruptionsAllowed") return read_budget_count(field, fault, budget.disruptions_allowed);
      if (key == "currentHealthy") return read_budget_count(field, fault, budget.current_healthy);
      if (key == "desiredHealthy") return read_budget_count(field, fault, budget.desired_healthy);
      return true;
    };
    return read() || fault.in(key);
  });
}

}  // namespace

bool read_disruption_budget(JsonObject root, Fault& fault, const KeptFields& kept, DisruptionBudget& budget) {
  const auto read_field = [&](std::string_view key, JsonValue value) {
    if (key == "spec") return read_budget_spec(value, fault, budget);
    if (key == "status") return read_budget_status(value, fault, budget);
    return true;
  };
  return read_root(root, fault, kept, Kind::PodDisruptionBudget, budget.meta, read_field, &budget.generation);
}

}  // namespace dhc::k8s
