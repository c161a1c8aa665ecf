#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "domain/policy/config_documents.h"

namespace dhc {

namespace {

using Operator = LabelSelector::Operator;
using Requirement = LabelSelector::Requirement;

bool is_alnum(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

/// At most 63 letters, digits, `-`, `_`, `.`, with a letter or digit at both ends.
bool is_label_part(std::string_view text) {
  const auto inner = [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; };
  return !text.empty() && text.size() <= 63 && is_alnum(text.front()) && is_alnum(text.back()) &&
         std::ranges::all_of(text, inner);
}

/// Notes a key that is no label key.
void check_label_key(const YamlNode& node, std::string_view path, MistakeList& mistakes) {
  if (is_label_key(node.text)) return;
  mistakes.add(node.place, fmt::format("{}: {} is no label key", path, shown(node.text)),
               "write [prefix/]name: a DNS name, a slash, then at most 63 letters, digits, '-', '_' or '.'");
}

std::optional<std::string> read_label_value(const YamlNode& node, std::string_view path, MistakeList& mistakes) {
  if (node.kind == YamlNode::Kind::Scalar && node.quoted && node.text.empty() && !node.tagged) return std::string();
  auto text = read_text(node, path, mistakes);
  if (text && !is_label_part(*text)) {
    mistakes.add(node.place, fmt::format("{}: {} is no label value", path, shown(*text)),
                 "write at most 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends");
    return std::nullopt;
  }
  return text;
}

void read_labels(const YamlNode& node, const std::string& path, LabelSelector& selector, MistakeList& mistakes) {
  std::vector<std::string_view> keys;
  for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) keys.emplace_back(node.items[i].text);
  if (!check_map(node, path, keys, mistakes)) return;
  for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) {
    const YamlNode& key = node.items[i];
    if (key.kind != YamlNode::Kind::Scalar) continue;
    check_label_key(key, path, mistakes);
    auto value = read_label_value(node.items[i + 1], fmt::format("{}.{}", path, shown(key.text)), mistakes);
    if (value) selector.requirements.push_back({key.text, Operator::In, {*std::move(value)}});
  }
}

void read_values(const YamlNode& expression, const std::string& path, Requirement& requirement, MistakeList& mistakes) {
  const bool takes_values = requirement.op == Operator::In || requirement.op == Operator::NotIn;
  const YamlNode* values = expression.find("values");
  if (values == nullptr) {
    if (takes_values) mistakes.add(expression.place, path + " needs values", "add values: [...] to In and NotIn");
    return;
  }
  if (!check_list(*values, path + ".values", mistakes)) return;
  if (takes_values == values->items.empty()) {
    mistakes.add(
        values->place, path + (takes_values ? ".values is an empty list" : " takes no values"),
        takes_values ? "name at least one value" : "remove values: Exists and DoesNotExist look at the key only");
  }
  std::set<std::string> seen;
  for (std::size_t i = 0; i < values->items.size(); ++i) {
    auto value = read_label_value(values->items[i], fmt::format("{}.values[{}]", path, i), mistakes);
    if (!value) continue;
    if (!seen.insert(*value).second) {
      mistakes.add(values->items[i].place, fmt::format("{}.values: {} is a duplicate", path, shown(*value)),
                   "remove one of them");
    }
    requirement.values.push_back(*std::move(value));
  }
}

void read_expression(const YamlNode& node, const std::string& path, LabelSelector& selector, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 3> kKeys = {"key", "operator", "values"};
  static constexpr std::array<std::string_view, 4> kOperators = {"In", "NotIn", "Exists", "DoesNotExist"};
  if (!check_map(node, path, kKeys, mistakes)) return;
  Requirement requirement;
  const YamlNode* key = node.find("key");
  if (key == nullptr) {
    mistakes.add(node.place, path + " has no key", "add key: LABEL");
  } else if (auto text = read_text(*key, path + ".key", mistakes)) {
    check_label_key(*key, path + ".key", mistakes);
    requirement.key = *std::move(text);
  }
  const YamlNode* word = node.find("operator");
  if (word == nullptr) {
    mistakes.add(node.place, path + " has no operator", "add operator: In, NotIn, Exists or DoesNotExist");
    return;
  }
  const auto which = read_word(*word, path + ".operator", kOperators, mistakes);
  if (!which) return;
  requirement.op = static_cast<Operator>(*which);
  read_values(node, path, requirement, mistakes);
  selector.requirements.push_back(std::move(requirement));
}

}  // namespace

bool is_label_key(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return is_label_part(text);
  return is_dns_subdomain(text.substr(0, slash)) && is_label_part(text.substr(slash + 1));
}

bool is_label_value(std::string_view text) { return is_label_part(text); }

bool is_dns_subdomain(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  while (true) {
    const std::string_view label = text.substr(0, text.find('.'));
    const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
    if (label.empty() || label.front() == '-' || label.back() == '-' || !std::ranges::all_of(label, fits)) return false;
    if (label.size() == text.size()) return true;
    text.remove_prefix(label.size() + 1);
  }
}

LabelSelector read_selector(const YamlNode& node, std::string_view path, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 2> kKeys = {"matchLabels", "matchExpressions"};
  LabelSelector selector;
  if (!check_map(node, path, kKeys, mistakes)) return selector;
  if (const YamlNode* labels = node.find("matchLabels")) {
    read_labels(*labels, fmt::format("{}.matchLabels", path), selector, mistakes);
  }
  const YamlNode* expressions = node.find("matchExpressions");
  const std::string list = fmt::format("{}.matchExpressions", path);
  if (expressions == nullptr || !check_list(*expressions, list, mistakes)) return selector;
  for (std::size_t i = 0; i < expressions->items.size(); ++i) {
    read_expression(expressions->items[i], fmt::format("{}[{}]", list, i), selector, mistakes);
  }
  return selector;
}

}  // namespace dhc
