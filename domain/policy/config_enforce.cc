#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "domain/policy/config_documents.h"

namespace dhc {

namespace {

/// `10%`: whole, without a sign or a leading zero.
std::optional<std::int64_t> read_share(const YamlNode& node, std::string_view path, MistakeList& mistakes) {
  const std::string_view text = node.kind == YamlNode::Kind::Scalar && !node.tagged ? node.text : std::string_view();
  std::int64_t share = -1;
  const auto digits = text.substr(0, text.size() - (text.ends_with('%') ? 1 : 0));
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), share);
  const bool is_whole = error == std::errc{} && end == digits.data() + digits.size() && digits.size() < text.size();
  const bool is_plain = !digits.empty() && digits.front() != '-' && (digits.size() == 1 || digits.front() != '0');
  if (is_whole && is_plain && share <= 100) return share;
  mistakes.add(node.place, fmt::format("{} is {}, but should be a share from 0% to 100%", path, shown(text)),
               "write a whole number and a percent sign, such as 10%");
  return std::nullopt;
}

}  // namespace

std::vector<std::string> read_namespace_globs(const YamlNode& node, const std::string& path, MistakeList& mistakes) {
  constexpr std::size_t kMostName = 63;
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '*' || c == '?';
  };
  std::vector<std::string> globs;
  for (auto& [glob, place] : read_texts(node, path, false, mistakes)) {
    if (glob.size() <= kMostName && std::ranges::all_of(glob, fits)) {
      globs.push_back(std::move(glob));
    } else {
      mistakes.add(place, fmt::format("{}: {} can match no namespace", path, shown(glob)),
                   "write a name, or part of one with * for the rest");
    }
  }
  return globs;
}

EnforceOn read_enforce_on(const YamlNode& node, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 3> kKeys = {"namespaces", "nodeSelector", "devices"};
  EnforceOn found;
  if (!check_map(node, "spec.enforceOn", kKeys, mistakes)) return found;
  if (node.items.empty()) {
    mistakes.add(node.place, "spec.enforceOn is empty: it would hold everywhere",
                 "write namespaces, nodeSelector or devices, or remove the key");
  }
  if (const YamlNode* given = node.find("namespaces")) {
    found.namespaces = read_namespace_globs(*given, "spec.enforceOn.namespaces", mistakes);
  }
  if (const YamlNode* given = node.find("nodeSelector")) {
    found.nodes = read_selector(*given, "spec.enforceOn.nodeSelector", mistakes);
  }
  if (const YamlNode* given = node.find("devices")) {
    set(found.percent, read_share(*given, "spec.enforceOn.devices", mistakes));
  }
  return found;
}

}  // namespace dhc
