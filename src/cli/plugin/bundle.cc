#include "cli/plugin/bundle.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_field.h"

namespace dhc::cli {

namespace {
using Json = nlohmann::ordered_json;
using Header = std::array<char, 512>;

constexpr std::string_view kRedacted = "<redacted>";
constexpr std::string_view kOurs = "device-health.io/";

void put(Header& header, std::size_t at, std::string_view text) {
  std::ranges::copy(text, header.begin() + static_cast<std::ptrdiff_t>(at));
}

/// The places of a ustar header: name, mode, owner, size, time, sum, type, magic.
Header header_of(const std::string& name, std::size_t size, WallTime at) {
  Header header{};
  const auto seconds = std::chrono::floor<Seconds>(at).time_since_epoch().count();
  put(header, 0, std::string_view(name).substr(0, 99));
  put(header, 100, "0000644");
  put(header, 108, "0000000");
  put(header, 116, "0000000");
  put(header, 124, fmt::format("{:011o}", size));
  put(header, 136, fmt::format("{:011o}", std::max<std::int64_t>(seconds, 0)));
  put(header, 148, "        ");
  header[156] = '0';
  put(header, 257, "ustar");
  put(header, 263, "00");
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(header, 148, fmt::format("{:06o}", sum));
  header[154] = '\0';
  return header;
}

Json redacted_variables(const Json& variables) {
  Json kept = Json::array();
  for (const auto& variable : variables) {
    kept.push_back({{"name", json_string(variable, {"name"})}, {"value", kRedacted}});
  }
  return kept;
}

Json our_annotations(const Json& annotations) {
  Json kept = Json::object();
  for (const auto& [name, value] : annotations.items()) {
    if (name.starts_with(kOurs)) kept[name] = value;
  }
  return kept;
}

/// Of a configuration's text: what follows a URL's host may be a token.
std::string without_paths_of_urls(std::string_view text) {
  constexpr std::string_view kEnds = " \t\r\n\"'`,}]";
  constexpr std::string_view kBlanks = " \t\r\n\"'>|-";
  constexpr std::string_view kScheme = "://";
  std::string kept;
  while (true) {
    auto host = std::min(text.find(kScheme), text.size());
    // In YAML or JSON.
    const auto key = std::min(text.find("url:"), text.find("url\":"));
    if (key != std::string_view::npos) {
      const auto colon = text.find(':', key);
      const auto value = std::min(text.find_first_not_of(kBlanks, colon + 1), text.size());
      const auto end = std::min(text.find_first_of(kEnds, value), text.size());
      // Without a scheme it is https.
      if (value < host && host >= end) host = value;
    }
    if (host == text.size()) return kept.append(text);
    if (text.substr(host).starts_with(kScheme)) host += kScheme.size();
    const auto path = std::min(text.find_first_of("/?", host), text.size());
    const auto end = std::min(text.find_first_of(kEnds, host), text.size());
    kept.append(text.substr(0, std::min(path, end)));
    if (path < end) kept.append("/").append(kRedacted);
    text.remove_prefix(end);
  }
}

Json redacted_data(const Json& data) {
  Json kept = Json::object();
  for (const auto& [key, value] : data.items())
    kept[key] = value.is_string() ? Json(without_paths_of_urls(value.get_ref<const std::string&>())) : value;
  return kept;
}

}  // namespace

std::string tar_of(const std::string& folder, const std::vector<BundleFile>& files, WallTime at) {
  constexpr std::size_t kBlock = 512;
  std::string tar;
  for (const auto& file : files) {
    const auto header = header_of(folder + "/" + file.name, file.text.size(), at);
    tar.append(header.data(), header.size());
    tar += file.text;
    tar.append((kBlock - file.text.size() % kBlock) % kBlock, '\0');
  }
  return tar.append(2 * kBlock, '\0');
}

Json redacted(const Json& json) {
  if (json.is_array()) {
    Json kept = Json::array();
    for (const auto& value : json) kept.push_back(redacted(value));
    return kept;
  }
  if (!json.is_object()) return json;
  Json kept = Json::object();
  for (const auto& [key, value] : json.items()) {
    if (key == "managedFields" || key == "envFrom") continue;
    if (key == "env" && value.is_array()) {
      kept[key] = redacted_variables(value);
    } else if (key == "data" && value.is_object()) {
      kept[key] = redacted_data(value);
    } else if (key == "annotations" && value.is_object()) {
      kept[key] = our_annotations(value);
    } else {
      kept[key] = redacted(value);
    }
  }
  return kept;
}

Json node_summary(const Json& list) {
  Json nodes = Json::array();
  for (const auto& node : json_list(list, {"items"})) {
    Json one = {{"name", json_string(node, {"metadata", "name"})}, {"uid", json_string(node, {"metadata", "uid"})}};
    const auto keep = [&](std::string_view name, JsonPath path) {
      if (const auto* found = json_field(node, path)) one[name] = *found;
    };
    keep("unschedulable", {"spec", "unschedulable"});
    keep("taints", {"spec", "taints"});
    keep("conditions", {"status", "conditions"});
    keep("capacity", {"status", "capacity"});
    keep("allocatable", {"status", "allocatable"});
    nodes.push_back(std::move(one));
  }
  return nodes;
}

}  // namespace dhc::cli
