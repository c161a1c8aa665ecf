#pragma once
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "cli/plugin/command_tree.h"
#include "cli/plugin/options.h"

namespace CLI {
class App;
}

namespace dhc::cli {

/// What CLI11 fills in of the commands of `kubectl device-health`.
struct PluginLine {
  ViewOptions devices = {};
  ViewOptions incidents = {};
  ViewOptions lemons = {};
  ViewOptions top = {};
  AskOptions ask = {};
  std::vector<std::string> ask_words = {};  ///< Of `explain`: reasons, or a kind and a name.
  OperatorOptions deed = {};
  std::vector<std::string> deed_words = {};
  BundleOptions bundle = {};
  CompletionOptions completion = {};
};

/// Defines `--as` and `--as-group`. Both outlive the app.
void add_impersonation(CLI::App& app, std::string& user, std::vector<std::string>& groups);

/// Defines `--cluster`, `--user`, `--server` and `--request-timeout`. They outlive the app.
void add_overrides(CLI::App& app, Overrides& overrides);

/// Defines them. `line` outlives the app.
void define_plugin(CLI::App& app, PluginLine& line);

/// The command that was parsed; none: another one, as `explain` with reasons. An error says what is wrong with it.
[[nodiscard]] std::expected<std::optional<PluginCommand>, std::string> plugin_command(const CLI::App& app,
                                                                                      const PluginLine& line);

/// All that an app defines, for completion and the manual page. Commands and options without a group are hidden.
[[nodiscard]] CommandHelp help_of(const CLI::App& app);

}  // namespace dhc::cli
