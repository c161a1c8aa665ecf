#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace dhc::cli {

/// An option or an argument, as the command line defines it.
struct OptionHelp {
  std::vector<std::string> names = {};  ///< With their dashes; empty: an argument without a name.
  std::string value = {};               ///< What stands for its value, `FILE` or `json|text`; empty: a flag.
  std::string about = {};
  [[nodiscard]] bool is_flag() const { return value.empty(); }
};

/// A command with its options and commands of its own.
struct CommandHelp {
  std::string name = {};
  std::string about = {};
  std::vector<OptionHelp> options = {};
  std::vector<OptionHelp> arguments = {};
  std::vector<CommandHelp> commands = {};
};

/// The words that a value may be, from `json|text`; none: any.
[[nodiscard]] std::vector<std::string> words_of_value(std::string_view value);

/// What may stand in place of the last of these words (which may be empty), with a description behind a tab. The
/// program's own name is not among the words.
struct Completion {
  std::vector<std::string> candidates;
  bool files = false;  ///< Files may stand there as well.
};
[[nodiscard]] Completion complete(const CommandHelp& program, const std::vector<std::string>& words);

/// As kubectl reads it of a plugin's `kubectl_complete-NAME`: a candidate a line, then `:` and what else to do.
/// **Source:** kubectl's "Extend kubectl with plugins", cobra's ShellCompDirective.
[[nodiscard]] std::string completion_text(const Completion& completion);

/// The script for one shell, which asks the program itself for candidates; empty: no such shell.
[[nodiscard]] std::string completion_script(std::string_view shell);

/// The page of `docs/` about the command line, as Markdown: every command with its options.
[[nodiscard]] std::string command_page(const CommandHelp& program);

/// The manual page, as roff: commands, their options, exit codes.
[[nodiscard]] std::string manual_page(const CommandHelp& program, std::string_view version);

}  // namespace dhc::cli
