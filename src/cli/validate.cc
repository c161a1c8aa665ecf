#include "cli/validate.h"

#include <fmt/format.h>

#include "cli/config_files.h"
#include "domain/policy/config_text.h"

namespace dhc::cli {

Printed validate(const ValidateOptions& options) {
  const auto config = read_config_files(options.files);
  if (!config) return {.code = 1, .out = {}, .err = fmt::format("error: {}\n", config.error().message)};
  Printed printed;
  if (*config) {
    printed.out = format_config(**config);
    for (const auto& warning : (*config)->warnings) printed.err += format_warning(warning) + "\n";
    return printed;
  }
  const auto& mistakes = config->error();
  printed.code = 1;
  for (const auto& mistake : mistakes) printed.out += format_mistake(mistake) + "\n";
  printed.err = fmt::format("{} {}\n", mistakes.size(), mistakes.size() == 1 ? "mistake" : "mistakes");
  return printed;
}

}  // namespace dhc::cli
