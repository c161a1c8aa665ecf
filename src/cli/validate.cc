#include "cli/validate.h"

#include <fmt/format.h>

#include "cli/config_files.h"
#include "domain/policy/config_text.h"

namespace dhc::cli {

Printed validate(const ValidateOptions& options) {
  const auto read = read_config_pieces(options.files);
  if (!read) return {.code = 1, .out = {}, .err = fmt::format("error: {}\n", read.error().message)};
  Printed printed;
  for (const auto& skipped : read->skipped) printed.err += skipped + "\n";
  for (const auto& presets : read->presets) printed.err += fmt::format("not read: {}\n", presets);
  if (const auto& config = read->config) {
    printed.out = format_config(*config);
    for (const auto& warning : config->warnings) printed.err += format_warning(warning) + "\n";
    return printed;
  }
  const auto& mistakes = read->config.error();
  printed.code = 1;
  for (const auto& mistake : mistakes) printed.out += format_mistake(mistake) + "\n";
  printed.err += fmt::format("{} {}\n", mistakes.size(), mistakes.size() == 1 ? "mistake" : "mistakes");
  return printed;
}

}  // namespace dhc::cli
