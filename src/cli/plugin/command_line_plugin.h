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
  ManualOptions manual = {};
};

/// Defines `--as`, `--as-group` and `--as-uid`. It outlives the app.
void add_impersonation(CLI::App& app, Impersonation& as);

/// Defines `--cluster`, `--user`, `--server`, `--request-timeout` and those of kubectl's options that stand in the
/// place of a kubeconfig's credentials. It outlives the app.
void add_overrides(CLI::App& app, Overrides& overrides);

/// Defines them. `line` outlives the app.
void define_plugin(CLI::App& app, PluginLine& line);

/// The command that was parsed; none: another one, as `explain` with reasons. An error says what is wrong with it.
[[nodiscard]] std::expected<std::optional<PluginCommand>, std::string> plugin_command(const CLI::App& app,
                                                                                      const PluginLine& line);

/// All that an app defines, for completion and the manual page. Commands and options without a group are hidden.
[[nodiscard]] CommandHelp help_of(const CLI::App& app);

}  // namespace dhc::cli
