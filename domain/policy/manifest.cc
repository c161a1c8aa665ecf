#include "domain/policy/manifest.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/yaml_tree.h"
#include "domain/policy/config_reading.h"

namespace dhc {

namespace {

// A platform's whole output, and not only our part of it.
constexpr YamlBounds kManifestBounds = {
    .bytes = std::size_t{16} << 20, .nodes = 1'000'000, .depth = 64, .marks = 1'000'000, .aliases = true};
constexpr std::string_view kGroup = "device-health.io/";
constexpr std::string_view kChart = "device-health-controller";

std::string_view word_of(const YamlNode& map, std::string_view key) {
  const YamlNode* value = map.find(key);
  return value != nullptr && value->kind == YamlNode::Kind::Scalar ? std::string_view(value->text) : "";
}

bool is_file(std::string_view key) { return key.ends_with(".yaml") || key.ends_with(".yml"); }

/// A document of ours, or what is probably meant as one.
bool is_ours(const YamlNode& document) {
  const auto version = word_of(document, "apiVersion");
  const auto kind = word_of(document, "kind");
  return version.empty() || kind.empty() || version.starts_with(kGroup) || kind == "DeviceHealthPolicy" ||
         kind == "ControllerLimits";
}

bool is_config_map(const YamlNode& document) {
  return word_of(document, "apiVersion") == "v1" && word_of(document, "kind") == "ConfigMap";
}

bool is_list(const YamlNode& document) {
  const YamlNode* items = document.find("items");
  return word_of(document, "apiVersion") == "v1" && word_of(document, "kind").ends_with("List") && items != nullptr &&
         items->kind == YamlNode::Kind::Sequence;
}

std::string name_in(const YamlNode& document) {
  const YamlNode* metadata = document.find("metadata");
  if (metadata == nullptr || metadata->kind != YamlNode::Kind::Map) return {};
  const auto ns = word_of(*metadata, "namespace");
  return ns.empty() ? std::string(word_of(*metadata, "name")) : fmt::format("{}/{}", ns, word_of(*metadata, "name"));
}

/// By its words, and not by reading it: what is no YAML is told as a mistake.
bool holds_policies(const YamlNode& map) {
  const YamlNode* data = map.find("data");
  if (data == nullptr || data->kind != YamlNode::Kind::Map) return false;
  for (std::size_t at = 0; at + 1 < data->items.size(); at += 2) {
    const std::string_view text = data->items[at + 1].text;
    // In YAML or JSON.
    constexpr std::array<std::string_view, 3> kSigns = {"device-health.io/v1", "DeviceHealthPolicy",
                                                        "ControllerLimits"};
    const auto stands = [&](std::string_view sign) { return text.contains(sign); };
    if (is_file(data->items[at].text) && std::ranges::any_of(kSigns, stands)) return true;
  }
  return false;
}

/// The texts in a map of file names to texts.
std::map<std::string, std::string, std::less<>> texts_of(const std::string& file, const YamlNode* given,
                                                         std::vector<ConfigMistake>& mistakes) {
  std::map<std::string, std::string, std::less<>> texts;
  if (given == nullptr || given->kind != YamlNode::Kind::Map) return texts;
  for (std::size_t at = 0; at + 1 < given->items.size(); at += 2) {
    const YamlNode& value = given->items[at + 1];
    if (value.kind != YamlNode::Kind::Scalar && value.kind != YamlNode::Kind::Null) {
      MistakeList(file, mistakes)
          .add(value.place, fmt::format("the value of {} is not a text", shown(given->items[at].text)),
               "write | behind the key and the documents below it, indented");
      continue;
    }
    texts[given->items[at].text] = value.text;
  }
  return texts;
}

void take_config_map(const std::string& file, const YamlNode& document, PackedConfig& found) {
  const auto before = found.mistakes.size();
  const auto data = texts_of(file, document.find("data"), found.mistakes);
  if (data.empty() && found.mistakes.size() > before) return;
  auto more = unpack_config_map(fmt::format("{}, configmap {}", file, name_in(document)), data);
  std::ranges::move(more.files, std::back_inserter(found.files));
  std::ranges::move(more.mistakes, std::back_inserter(found.mistakes));
}

void collect(const YamlNode& document, std::vector<const YamlNode*>& objects) {
  if (document.kind == YamlNode::Kind::Null) return;
  if (!is_list(document)) return objects.push_back(&document);
  for (const YamlNode& item : document.find("items")->items) collect(item, objects);
}

PackedConfig unpack_objects(const std::string& file, const std::vector<const YamlNode*>& objects) {
  PackedConfig found;
  // ConfigMaps alone are meant as the configuration, whatever is wrong with them.
  const bool is_all = std::ranges::all_of(objects, [](const YamlNode* one) { return is_config_map(*one); }) &&
                      std::ranges::none_of(objects, [](const YamlNode* one) { return holds_policies(*one); });
  bool is_any = false;
  for (const YamlNode* object : objects) {
    if (is_config_map(*object) && (is_all || holds_policies(*object))) {
      is_any = true;
      take_config_map(file, *object, found);
    } else if (is_ours(*object)) {
      is_any = true;
      MistakeList(file, found.mistakes)
          .add(object->place, "a document of the configuration stands among objects of a cluster",
               "no API server takes it: put it into the data of a ConfigMap, or into a file of its own");
    } else {
      ++found.skipped[std::string(word_of(*object, "kind"))];
    }
  }
  if (!is_any) {
    MistakeList(file, found.mistakes)
        .add({}, fmt::format("none of {} objects is a ConfigMap with policies", objects.size()),
             "add the ConfigMap that --config-map names; its keys end in .yaml");
  }
  return found;
}

/// By keys that our chart has and no document of ours.
bool is_values(const YamlNode& document) {
  constexpr std::array<std::string_view, 5> kKeys = {"policies", "presets", "image", "replicas", kChart};
  return word_of(document, "apiVersion").empty() &&
         std::ranges::any_of(kKeys, [&](std::string_view key) { return document.find(key) != nullptr; });
}

/// Ours among the values of another chart that includes ours.
const YamlNode& own_values(const YamlNode& values) {
  const YamlNode* own = values.find(kChart);
  return own != nullptr && own->kind == YamlNode::Kind::Map ? *own : values;
}

PackedConfig unpack_values(const std::string& file, const YamlNode& document) {
  PackedConfig found;
  const YamlNode& values = own_values(document);
  const auto texts = texts_of(file, values.find("policies"), found.mistakes);
  if (!texts.empty()) {
    auto more = unpack_config_map(fmt::format("{}, value policies", file), texts);
    found.files = std::move(more.files);
    std::ranges::move(more.mistakes, std::back_inserter(found.mistakes));
  }
  if (const YamlNode* presets = values.find("presets")) {
    for (const YamlNode& preset : presets->items) found.presets.push_back(preset.text);
  }
  if (found.files.empty() && found.mistakes.empty() && found.presets.empty()) {
    MistakeList(file, found.mistakes)
        .add(values.place, "these Helm values have no policies and no presets",
             "add policies: {NAME.yaml: TEXT}; without them the chart reports everything and does nothing");
  }
  return found;
}

}  // namespace

PackedConfig unpack_config_map(const std::string& name, const std::map<std::string, std::string, std::less<>>& data) {
  PackedConfig found;
  for (const auto& [key, text] : data) {
    const std::string file = fmt::format("{}, key {}", name, key);
    if (is_file(key)) {
      found.files.push_back({file, text});
    } else {
      MistakeList(file, found.mistakes).add({}, "the key does not end in .yaml or .yml", "rename or remove it");
    }
  }
  if (data.empty()) MistakeList(name, found.mistakes).add({}, "it has no data", "add a key such as policies.yaml");
  return found;
}

std::optional<PackedConfig> unpack_config(const ConfigFile& file) {
  const auto documents = read_yaml(file.text, kManifestBounds);
  if (!documents) return std::nullopt;
  std::vector<const YamlNode*> objects;
  for (const YamlNode& document : *documents) collect(document, objects);
  if (objects.empty()) return std::nullopt;
  if (objects.size() == 1 && is_values(*objects.front())) return unpack_values(file.name, *objects.front());
  const bool is_own = std::ranges::all_of(objects, [](const YamlNode* one) { return is_ours(*one); });
  return is_own ? std::nullopt : std::optional(unpack_objects(file.name, objects));
}

}  // namespace dhc
