#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "domain/policy/config.h"
#include "domain/policy/config_documents.h"

namespace dhc {

namespace {

constexpr std::size_t kMostReason = 200;

std::vector<std::string> read_node_globs(const YamlNode& node, const std::string& path, MistakeList& mistakes) {
  std::vector<std::string> globs;
  for (auto& [glob, place] : read_texts(node, path, false, mistakes)) {
    std::string name = glob;  // as if its wild characters stood for letters
    std::ranges::replace_if(name, [](char c) { return c == '*' || c == '?'; }, 'x');
    if (is_dns_subdomain(name)) {
      globs.push_back(std::move(glob));
    } else {
      mistakes.add(place, fmt::format("{}: {} can match no node", path, shown(glob)),
                   "write a node's name, or part of one with * for the rest");
    }
  }
  return globs;
}

std::string read_words(const YamlNode& node, const std::string& path, MistakeList& mistakes) {
  auto text = read_text(node, path, mistakes).value_or("");
  if (text.size() > kMostReason) {
    mistakes.add(node.place, fmt::format("{} is longer than {} bytes", path, kMostReason),
                 "write less: it stands in every verdict that the pause holds");
  }
  return printable_cut(text, kMostReason);
}

void read_until(const YamlNode& node, const std::string& path, ScopedPause& pause, MistakeList& mistakes) {
  const auto text = read_text(node, path, mistakes);
  if (!text) return;
  const auto until = parse_rfc3339(*text);
  if (until) {
    pause.until = *until;
  } else {
    mistakes.add(node.place, fmt::format("{} is {}, which is no RFC 3339 time", path, shown(*text)),
                 "write a time with its offset, such as 2026-11-20T12:00:00Z");
  }
}

void read_pause_scope(const YamlNode& node, const std::string& path, ScopedPause& pause, MistakeList& mistakes) {
  if (const YamlNode* given = node.find("nodes")) pause.nodes = read_node_globs(*given, path + ".nodes", mistakes);
  if (const YamlNode* given = node.find("nodeSelector")) {
    pause.node_labels = read_selector(*given, path + ".nodeSelector", mistakes);
    if (given->kind == YamlNode::Kind::Map && given->items.empty()) {
      mistakes.add(given->place, path + ".nodeSelector selects every node",
                   "name a label, or write paused: true to pause everything");
    }
  }
  if (const YamlNode* given = node.find("drivers")) {
    pause.drivers = read_device_globs(*given, path + ".drivers", false, mistakes);
  }
  if (const YamlNode* given = node.find("resources")) {
    pause.resources = read_device_globs(*given, path + ".resources", true, mistakes);
  }
  if (const YamlNode* given = node.find("namespaces")) {
    pause.namespaces = read_namespace_globs(*given, path + ".namespaces", mistakes);
  }
  const auto selects = [&](std::string_view key) { return node.find(key) != nullptr; };
  if (!selects("nodes") && !selects("nodeSelector") && !selects("drivers") && !selects("resources") &&
      !selects("namespaces")) {
    mistakes.add(node.place, path + " says nothing of what it pauses",
                 "add nodes, nodeSelector, drivers, resources or namespaces; to pause everything write paused: true");
  }
}

}  // namespace

ScopedPause read_pause(const YamlNode& node, const std::string& path, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 8> kKeys = {"nodes",      "nodeSelector", "drivers", "resources",
                                                            "namespaces", "until",        "reason",  "by"};
  ScopedPause pause;
  if (!check_map(node, path, kKeys, mistakes)) return pause;
  read_pause_scope(node, path, pause, mistakes);
  for (const std::string_view key : {"until", "reason"}) {
    if (node.find(key) != nullptr) continue;
    mistakes.add(node.place, fmt::format("{} has no {}", path, key),
                 "a pause of a part needs an end and a reason: add until: 2026-11-20T12:00:00Z and reason: ...");
  }
  if (const YamlNode* given = node.find("until")) read_until(*given, path + ".until", pause, mistakes);
  if (const YamlNode* given = node.find("reason")) pause.reason = read_words(*given, path + ".reason", mistakes);
  if (const YamlNode* given = node.find("by")) pause.by = read_words(*given, path + ".by", mistakes);
  return pause;
}

std::expected<ScopedPause, ConfigMistake> parse_pause(const ConfigFile& file) {
  std::vector<ConfigMistake> all;
  MistakeList mistakes(file.name, all);
  const auto documents = read_yaml(file.text);
  ScopedPause pause;
  if (!documents) {
    mistakes.add(documents.error().place, documents.error().message, documents.error().remedy);
  } else if (documents->size() != 1) {
    mistakes.add({}, "the pause is no single document", "write {nodes: [...], until: ..., reason: ...}, or remove it");
  } else {
    pause = read_pause(documents->front(), "pause", mistakes);
  }
  if (!all.empty()) return std::unexpected(std::move(all.front()));
  return pause;
}

}  // namespace dhc
