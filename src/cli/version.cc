#include "cli/version.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/version.h"

namespace dhc::cli {

std::string version_text(const VersionOptions& options) {
  if (!options.json) return fmt::format("device-health-controller {}\n", version());
  const nlohmann::ordered_json json = {
      {"name", "device-health-controller"}, {"version", version()}, {"compiler", __VERSION__}};
  return json.dump() + "\n";
}

}  // namespace dhc::cli
