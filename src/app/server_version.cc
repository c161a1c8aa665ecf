#include "app/server_version.h"

#include <array>
#include <cstddef>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_field.h"
#include "base/json_read.h"
#include "base/printable.h"
#include "base/release_numbers.h"

namespace dhc {

namespace {

constexpr std::size_t kLongestVersion = 64;

std::string version_of(std::string_view version_body) {
  return json_string(read_json<nlohmann::json>(version_body), {"gitVersion"});
}

}  // namespace

std::optional<std::string> warning_of_rules(std::string_view version_body) {
  constexpr std::array<int, 3> kFirstBad = {1, 36, 0};
  constexpr std::array<int, 3> kFirstGood = {1, 36, 3};
  const auto version = version_of(version_body);
  const auto numbers = release_numbers(version);
  if (!numbers || *numbers < kFirstBad || *numbers >= kFirstGood) return std::nullopt;
  return fmt::format(
      "the API server is {}: a kube-scheduler older than v1.36.3 panics or misses changes while there are "
      "DeviceTaintRules (kubernetes/kubernetes#139651); update it before a policy with mode: enforce taints DRA "
      "devices",
      printable_cut(version, kLongestVersion));
}

std::optional<std::string> warning_of_reports(std::string_view version_body) {
  constexpr std::array<int, 3> kOnByDefault = {1, 36, 0};
  const auto version = version_of(version_body);
  const auto numbers = release_numbers(version);
  if (!numbers || *numbers >= kOnByDefault) return std::nullopt;
  return fmt::format(
      "the API server is {}: below 1.36 no kubelet reports the health of devices, unless the gate ResourceHealthStatus "
      "is on in API server and kubelets; without reports there is nothing to act on",
      printable_cut(version, kLongestVersion));
}

}  // namespace dhc
