#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "domain/policy/config.h"
#include "domain/policy/config_duration.h"
#include "domain/policy/config_text.h"

// Any bytes as a configuration file: either a valid configuration, which is sorted and within its bounds, or at least
// one mistake, each with a place in the text and a remedy. The same bytes say the same a second time.

namespace {

using namespace dhc;

void must(bool holds) {
  if (!holds) std::abort();
}

void check_config(const Config& config) {
  const auto before = [](const DevicePolicy& a, const DevicePolicy& b) {
    return a.priority != b.priority ? a.priority > b.priority : a.name < b.name;
  };
  must(std::ranges::is_sorted(config.policies, before));
  for (const DevicePolicy& policy : config.policies) {
    must(!policy.name.empty());
    must(parse_duration(format_duration(policy.after)) == policy.after);
    must(!policy.match.health.empty() || !policy.match.claim_conditions.empty());
  }
  must(config.limits.max_in_flight >= 1 && config.limits.per_node >= 1 && config.limits.brake_percent <= 100);
  must(format_config(config).ends_with('\n'));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::array files = {ConfigFile{"f", std::string(reinterpret_cast<const char*>(data), size)}};
  const auto lines = std::ranges::count(files[0].text, '\n') + 2;
  const auto config = parse_config(files);
  must(parse_config(files) == config);
  if (config) {
    check_config(*config);
    return 0;
  }
  must(!config.error().empty() && config.error().size() <= 200);
  for (const ConfigMistake& mistake : config.error()) {
    must(mistake.line >= 1 && mistake.line <= lines && mistake.column >= 1);
    must(!mistake.message.empty() && !mistake.remedy.empty());
    must(format_mistake(mistake).starts_with("f:"));
  }
  return 0;
}
