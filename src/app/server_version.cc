#include "app/server_version.h"

#include <array>
#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_field.h"
#include "base/json_read.h"
#include "base/printable.h"

namespace dhc {

namespace {

constexpr std::size_t kLongestVersion = 64;

/// Major, minor and patch. What follows them (`-rc.1`, `+k3s1`, `-gke.1000`) is the distributor's: a pre-release of a
/// good patch does not exist, so nothing is lost by leaving it out.
std::optional<std::array<int, 3>> numbers_of(std::string_view text) {
  std::array<int, 3> numbers{};
  for (char before = 'v'; int& number : numbers) {
    if (!text.starts_with(before)) return std::nullopt;
    text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || number < 0) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    before = '.';
  }
  return numbers;
}

std::string version_of(std::string_view version_body) {
  return json_string(read_json<nlohmann::json>(version_body), {"gitVersion"});
}

}  // namespace

std::optional<std::string> warning_of_rules(std::string_view version_body) {
  constexpr std::array<int, 3> kFirstBad = {1, 36, 0};
  constexpr std::array<int, 3> kFirstGood = {1, 36, 3};
  const auto version = version_of(version_body);
  const auto numbers = numbers_of(version);
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
  const auto numbers = numbers_of(version);
  if (!numbers || *numbers >= kOnByDefault) return std::nullopt;
  return fmt::format(
      "the API server is {}: below 1.36 no kubelet reports the health of devices, unless the gate ResourceHealthStatus "
      "is on in API server and kubelets; without reports there is nothing to act on",
      printable_cut(version, kLongestVersion));
}

}  // namespace dhc
