#include "domain/contract/ground_names.h"

#include "base/printable.h"

namespace dhc {

namespace {

constexpr std::string_view kGroundMark = "at ";
constexpr std::string_view kNodeGround = "at node/";
constexpr std::string_view kReleaseGround = "at release/";
constexpr std::size_t kLongestGround = 600;

}  // namespace

std::string ground_of_node(std::string_view node) { return std::string(kNodeGround) + std::string(node); }

std::string ground_of_release(const ReleaseName& release) {
  std::string name(kReleaseGround);
  return name.append(release.ns).append("/").append(release.name).append("/").append(release.revision);
}

bool is_ground_name(std::string_view name) { return name.starts_with(kGroundMark); }

std::optional<std::string_view> node_of_ground(std::string_view name) {
  return name.starts_with(kNodeGround) ? std::optional(name.substr(kNodeGround.size())) : std::nullopt;
}

std::optional<ReleaseName> release_of_ground(std::string_view name) {
  if (!name.starts_with(kReleaseGround)) return std::nullopt;
  name.remove_prefix(kReleaseGround.size());
  const auto first = name.find('/');
  const auto last = name.rfind('/');
  if (first == last) return std::nullopt;
  return ReleaseName{
      .ns = name.substr(0, first), .name = name.substr(first + 1, last - first - 1), .revision = name.substr(last + 1)};
}

std::string words_of_ground(std::string_view name) {
  if (const auto node = node_of_ground(name)) return printable_cut("node " + std::string(*node), kLongestGround);
  const auto release = release_of_ground(name);
  if (!release) return printable_cut(name, kLongestGround);
  std::string words("revision ");
  words.append(release->revision).append(" of DaemonSet ").append(release->ns).append("/").append(release->name);
  return printable_cut(words, kLongestGround);
}

}  // namespace dhc
