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
