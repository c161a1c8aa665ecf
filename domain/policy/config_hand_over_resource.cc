#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/json_read.h"
#include "base/json_text.h"
#include "base/nearest_word.h"
#include "domain/contract/names.h"
#include "domain/policy/config_documents.h"
#include "domain/policy/placeholders.h"

namespace dhc {

namespace {
using Json = nlohmann::ordered_json;

constexpr std::string_view kResourcePath = "spec.handOver.resource";
constexpr std::string_view kTemplatePath = "spec.handOver.resource.template";
/// Of the template as JSON: an order to a repairer is short, and one of them is made for each device.
constexpr std::size_t kMostBytes = std::size_t{8} * 1024;
constexpr std::string_view kDomain = "device-health.io/";

/// Every placeholder of the text; words in braces that are none are mistakes.
std::vector<Placeholder> read_placeholders(const YamlNode& node, std::string_view path, bool per_device,
                                           MistakeList& mistakes) {
  std::vector<Placeholder> found;
  for (const auto& part : parts_of(node.text)) {
    if (part.is_unknown) {
      const auto near = nearest_word(part.text, kPlaceholderWords);
      mistakes.add(node.place, fmt::format("{}: {{{}}} is no placeholder", path, part.text),
                   near.empty() ? fmt::format("there are: {{{}}}", fmt::join(kPlaceholderWords, "}, {"))
                                : fmt::format("did you mean {{{}}}?", near));
    }
    if (!part.placeholder) continue;
    found.push_back(*part.placeholder);
    if (is_of_device(*part.placeholder) && !per_device)
      mistakes.add(node.place, fmt::format("{}: {{{}}} is not the same for all devices of a node", path, part.text),
                   fmt::format("write {}.per: Device for one object a device", kResourcePath));
  }
  return found;
}

/// `{node}` without quotes is a map to YAML, and would silently become one in the object.
bool is_bare_placeholder(const YamlNode& map) {
  return map.items.size() == 2 && map.items[1].kind == YamlNode::Kind::Null &&
         std::ranges::find(kPlaceholderWords, map.items[0].text) != kPlaceholderWords.end();
}

Json number_of(const YamlNode& node, const std::string& path, MistakeList& mistakes) {
  auto number = read_json<Json>(node.text);
  if (number.is_number()) return number;
  mistakes.add(node.place,
               fmt::format("{} is {}, which not every reader takes for the same number", path, shown(node.text)),
               "write a decimal number, or put it in quotes");
  return {};
}

Json scalar_of(const YamlNode& node, const std::string& path, bool per_device, MistakeList& mistakes) {
  if (!node.quoted) {
    switch (plain_type(node.text)) {
      case PlainType::Null:
        return nullptr;
      case PlainType::Number:
        return number_of(node, path, mistakes);
      case PlainType::Bool: {
        const auto flag = read_flag(node, path, mistakes);
        return flag ? Json(*flag) : Json();
      }
      case PlainType::String:
        break;
    }
  }
  (void)read_placeholders(node, path, per_device, mistakes);
  return node.text;
}

/// Any value, as the API server would read it.
Json value_of(const YamlNode& node, const std::string& path, bool per_device, MistakeList& mistakes) {
  if (node.tagged) mistakes.add(node.place, fmt::format("{} has a YAML tag (!...)", path), "remove the tag");
  switch (node.kind) {
    case YamlNode::Kind::Null:
      return nullptr;
    case YamlNode::Kind::Scalar:
      return scalar_of(node, path, per_device, mistakes);
    case YamlNode::Kind::Sequence: {
      Json list = Json::array();
      for (const auto& item : node.items) list.push_back(value_of(item, path + "[]", per_device, mistakes));
      return list;
    }
    case YamlNode::Kind::Map:
      break;
  }
  if (is_bare_placeholder(node)) {
    mistakes.add(node.place, fmt::format("{} is a map to YAML", path),
                 fmt::format("put it in quotes: \"{{{}}}\"", node.items[0].text));
  }
  Json map = Json::object();
  for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) {
    const auto& key = node.items[i];
    const bool has_placeholder =
        std::ranges::any_of(parts_of(key.text), [](const auto& part) { return part.placeholder.has_value(); });
    if (key.kind != YamlNode::Kind::Scalar || has_placeholder || map.contains(key.text)) {
      mistakes.add(key.place,
                   has_placeholder ? fmt::format("{}: the key {} has a placeholder", path, shown(key.text))
                                   : fmt::format("{}: the key {} is no string, or stands twice", path, shown(key.text)),
                   "placeholders stand in values, and each key stands once");
      continue;
    }
    map[key.text] = value_of(node.items[i + 1], path + "." + key.text, per_device, mistakes);
  }
  return map;
}

/// Kubernetes' own objects are nobody's order to repair a node, and some of them are rights or programs.
/// **Source:** the groups of kube-apiserver have no dot or end in `.k8s.io`, which is reserved; community APIs are
/// under `x-k8s.io`.
bool is_of_kubernetes(std::string_view group) { return !group.contains('.') || group.ends_with(".k8s.io"); }

void read_api_version(const YamlNode& map, HandOverResource& rules, MistakeList& mistakes) {
  constexpr std::string_view kRemedy = "write that of a custom resource, such as janitor.dgxc.nvidia.com/v1alpha1";
  const auto path = fmt::format("{}.apiVersion", kTemplatePath);
  const YamlNode* given = map.find("apiVersion");
  if (given == nullptr)
    return mistakes.add(map.place, fmt::format("{} has no apiVersion", kTemplatePath), std::string(kRemedy));
  const auto text = read_text(*given, path, mistakes);
  if (!text) return;
  const auto slash = text->find('/');
  const auto group = text->substr(0, slash);
  const auto version = slash == std::string::npos ? std::string() : text->substr(slash + 1);
  if (slash == std::string::npos || is_of_kubernetes(group)) {
    mistakes.add(given->place, fmt::format("{} is {}: Kubernetes' own objects are not made", path, shown(*text)),
                 std::string(kRemedy));
  } else if (!is_dns_subdomain(group) || !is_dns_subdomain(version) || version.contains('.')) {
    mistakes.add(given->place, fmt::format("{} is {}, which is no group and version", path, shown(*text)),
                 std::string(kRemedy));
  }
  rules.api_version = *text;
}

void read_kind(const YamlNode& map, HandOverResource& rules, MistakeList& mistakes) {
  const YamlNode* given = map.find("kind");
  if (given == nullptr)
    return mistakes.add(map.place, fmt::format("{} has no kind", kTemplatePath), "write it, such as GPUReset");
  const auto text = read_text(*given, fmt::format("{}.kind", kTemplatePath), mistakes);
  if (!text) return;
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  if (text->size() > 63 || !std::ranges::all_of(*text, fits))
    mistakes.add(given->place, fmt::format("{}.kind is {}, which is no kind", kTemplatePath, shown(*text)),
                 "write a CamelCase word, such as GPUReset");
  rules.kind = *text;
}

/// What the name must hold so that no two nodes or devices would share one object.
void check_name_is_own(const YamlNode& name, const std::vector<Placeholder>& found, bool per_device,
                       MistakeList& mistakes) {
  const auto has = [&](Placeholder one) { return std::ranges::find(found, one) != found.end(); };
  if (has(Placeholder::Incident)) return;
  if (per_device ? has(Placeholder::Identity) || (has(Placeholder::Device) && has(Placeholder::Node))
                 : has(Placeholder::Node))
    return;
  mistakes.add(
      name.place,
      fmt::format("{}.metadata.name would be the same for several {}", kTemplatePath, per_device ? "devices" : "nodes"),
      per_device ? "put {incident} in it, or {identity}, or both {node} and {device}"
                 : "put {node} or {incident} in it");
}

void read_name(const YamlNode& metadata, HandOverResource& rules, MistakeList& mistakes) {
  const auto path = fmt::format("{}.metadata.name", kTemplatePath);
  const YamlNode* given = metadata.find("name");
  if (given == nullptr)
    return mistakes.add(metadata.place, fmt::format("{}.metadata has no name", kTemplatePath),
                        "write one with a placeholder, such as \"{node}\"");
  const auto text = read_text(*given, path, mistakes);
  if (!text) return;
  const auto found = read_placeholders(*given, path, rules.per_device, mistakes);
  std::string sample;
  for (const auto& part : parts_of(*text)) sample += part.placeholder || part.is_unknown ? "x" : part.text;
  if (!is_dns_subdomain(sample)) {
    mistakes.add(given->place, fmt::format("{} is {}, which makes no object's name", path, shown(*text)),
                 "write lower-case letters, digits, '-', '.' and placeholders, with a letter or digit at both ends");
  } else {
    check_name_is_own(*given, found, rules.per_device, mistakes);
  }
  rules.name = *text;
}

void read_namespace(const YamlNode& node, HandOverResource& rules, MistakeList& mistakes) {
  const auto path = fmt::format("{}.metadata.namespace", kTemplatePath);
  auto text = read_text(node, path, mistakes);
  if (!text) return;
  if (!is_dns_subdomain(*text) || text->contains('.') || text->size() > 63)
    mistakes.add(node.place, fmt::format("{} is {}, which is no namespace's name", path, shown(*text)),
                 "write the name of one namespace, without placeholders");
  rules.ns = *std::move(text);
}

/// Strings by name; of labels the text must be a label's value once placeholders are filled in.
void check_marks(const YamlNode& node, const std::string& path, bool labels, const HandOverResource& rules,
                 MistakeList& mistakes) {
  if (node.kind != YamlNode::Kind::Map) {
    mistakes.add(node.place, fmt::format("{} is no map of names and strings", path), "write `name: \"value\"` lines");
    return;
  }
  for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) {
    const auto& key = node.items[i];
    const auto& value = node.items[i + 1];
    const auto here = path + "." + key.text;
    if (key.text.starts_with(kDomain) || key.text == kManagedByLabel)
      mistakes.add(key.place, fmt::format("{}: {} is written by the controller itself", path, shown(key.text)),
                   "remove it");
    if (!is_label_key(key.text))
      mistakes.add(key.place, fmt::format("{}: {} is no key of a label or annotation", path, shown(key.text)),
                   "write [prefix/]name");
    const bool is_empty = value.kind == YamlNode::Kind::Scalar && value.quoted && value.text.empty();
    const auto text = is_empty ? std::optional(std::string()) : read_text(value, here, mistakes);
    if (!text || !labels) continue;
    std::string sample;
    for (const auto& part : parts_of(*text)) sample += part.placeholder || part.is_unknown ? "x" : part.text;
    if (!sample.empty() && !is_label_value(sample))
      mistakes.add(value.place, fmt::format("{} is {}, which makes no label's value", here, shown(*text)),
                   "write at most 63 letters, digits, '-', '_', '.' and placeholders");
  }
  (void)value_of(node, path, rules.per_device, mistakes);
}

void read_metadata(const YamlNode& map, HandOverResource& rules, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 4> kKeys = {"name", "namespace", "labels", "annotations"};
  const auto path = fmt::format("{}.metadata", kTemplatePath);
  const YamlNode* given = map.find("metadata");
  if (given == nullptr)
    return mistakes.add(map.place, fmt::format("{} has no metadata", kTemplatePath),
                        "write metadata: {name: \"{node}\"}");
  if (!check_map(*given, path, kKeys, mistakes)) return;
  read_name(*given, rules, mistakes);
  if (const YamlNode* ns = given->find("namespace")) read_namespace(*ns, rules, mistakes);
  if (const YamlNode* labels = given->find("labels")) check_marks(*labels, path + ".labels", true, rules, mistakes);
  if (const YamlNode* notes = given->find("annotations"))
    check_marks(*notes, path + ".annotations", false, rules, mistakes);
}

void read_template(const YamlNode& node, HandOverResource& rules, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 4> kKeys = {"apiVersion", "kind", "metadata", "spec"};
  if (!check_map(node, kTemplatePath, kKeys, mistakes)) return;
  read_api_version(node, rules, mistakes);
  read_kind(node, rules, mistakes);
  read_metadata(node, rules, mistakes);
  Json whole = Json::object();
  for (const auto key : {"apiVersion", "kind", "metadata"}) {
    // Their mistakes are noted above.
    std::vector<ConfigMistake> noted;
    MistakeList again({}, noted);
    if (const YamlNode* given = node.find(key)) whole[key] = value_of(*given, key, true, again);
  }
  if (const YamlNode* spec = node.find("spec")) {
    const auto path = fmt::format("{}.spec", kTemplatePath);
    if (spec->kind != YamlNode::Kind::Map) {
      mistakes.add(spec->place, fmt::format("{} is no map", path), "write what the repairer's resource asks for");
    } else {
      whole["spec"] = value_of(*spec, path, rules.per_device, mistakes);
    }
  }
  rules.text = json_text(whole);
  if (rules.text.size() > kMostBytes)
    mistakes.add(node.place, fmt::format("{} is longer than {} bytes", kTemplatePath, kMostBytes), "shorten it");
}

}  // namespace

std::optional<HandOverResource> read_hand_over_resource(const YamlNode& node, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 3> kKeys = {"per", "whenRecovered", "template"};
  static constexpr std::array<std::string_view, 2> kPer = {"Node", "Device"};
  static constexpr std::array<std::string_view, 2> kWhenRecovered = {"Delete", "Keep"};
  if (!check_map(node, kResourcePath, kKeys, mistakes)) return std::nullopt;
  HandOverResource rules;
  if (const YamlNode* given = node.find("per"))
    rules.per_device = read_word(*given, fmt::format("{}.per", kResourcePath), kPer, mistakes).value_or(0) == 1;
  if (const YamlNode* given = node.find("whenRecovered"))
    rules.keeps =
        read_word(*given, fmt::format("{}.whenRecovered", kResourcePath), kWhenRecovered, mistakes).value_or(0) == 1;
  const YamlNode* given = node.find("template");
  if (given == nullptr) {
    mistakes.add(node.place, fmt::format("{} has no template", kResourcePath),
                 "write template: {apiVersion: ..., kind: ..., metadata: {name: \"{node}\"}, spec: {...}}");
    return std::nullopt;
  }
  read_template(*given, rules, mistakes);
  return rules;
}

}  // namespace dhc
