#include <algorithm>
#include <array>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/plugin/command_tree.h"

namespace dhc::cli {

namespace {

/// What more than so many commands have alike is told once for all of them.
constexpr std::size_t kFewCommands = 2;

struct PageOf {
  std::string_view command;
  std::string_view page;
};
constexpr std::array<PageOf, 8> kPages = {{{"run", "install.md"},
                                           {"demo", "../README.md"},
                                           {"validate", "configuration.md"},
                                           {"test", "policy-tests.md"},
                                           {"plan", "configuration.md#rehearse-a-configuration"},
                                           {"replay", "replay.md"},
                                           {"tune", "tuning.md"},
                                           {"uninstall", "uninstall.md"}}};

/// In a cell of a table.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '*' || c == '<') out += '\\';
    out += c;
  }
  return out;
}

/// In a cell, as code: there nothing but the bar means anything.
std::string code_cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return fmt::format("`{}`", out);
}

bool is_alike(const OptionHelp& a, const OptionHelp& b) {
  return a.names == b.names && a.value == b.value && a.about == b.about;
}

bool has(const CommandHelp& command, const OptionHelp& option) {
  return std::ranges::any_of(command.options, [&](const auto& one) { return is_alike(one, option); });
}

std::vector<std::string> commands_with(const CommandHelp& program, const OptionHelp& option) {
  std::vector<std::string> names;
  for (const auto& command : program.commands) {
    if (has(command, option)) names.push_back(fmt::format("`{}`", command.name));
  }
  return names;
}

std::string row_of(const OptionHelp& option) {
  const auto words = option.names.empty() ? option.value : fmt::format("{}", fmt::join(option.names, ", "));
  const auto value = option.names.empty() || option.is_flag() ? std::string() : " " + option.value;
  return fmt::format("| {} | {} |", code_cell(words + value), cell(option.about));
}

std::string section_of(const CommandHelp& program, const CommandHelp& command) {
  auto text = fmt::format("\n## {}\n\n{}.", command.name, command.about);
  if (const auto page = std::ranges::find(kPages, command.name, &PageOf::command); page != kPages.end()) {
    text += fmt::format(" [{0}]({0})", page->page);
  }
  text += '\n';
  std::string rows;
  bool has_common = false;
  for (const auto& argument : command.arguments) rows += row_of(argument) + "\n";
  for (const auto& option : command.options) {
    if (commands_with(program, option).size() > kFewCommands) {
      has_common = has_common || option.names.front() != "-h";
    } else {
      rows += row_of(option) + "\n";
    }
  }
  if (!rows.empty()) text += "\n| argument or option | meaning |\n|---|---|\n" + rows;
  if (has_common) text += "\nAnd [options of several commands](#options-of-several-commands).\n";
  return text;
}

std::string common_section(const CommandHelp& program) {
  std::string text = "\n## Options of several commands\n\n| option | meaning | of |\n|---|---|---|\n";
  std::vector<const OptionHelp*> told;
  for (const auto& command : program.commands) {
    for (const auto& option : command.options) {
      const auto commands = commands_with(program, option);
      if (commands.size() <= kFewCommands) continue;
      if (std::ranges::any_of(told, [&](const auto* one) { return is_alike(*one, option); })) continue;
      told.push_back(&option);
      const bool is_of_all = commands.size() == program.commands.size();
      text += fmt::format("{} {} |\n", row_of(option),
                          is_of_all ? "every command" : fmt::format("{}", fmt::join(commands, ", ")));
    }
  }
  return text;
}

constexpr std::string_view kHead = R"(# Command line

Every command with its arguments and options, as `device-health-controller COMMAND --help` prints them; `man --output markdown` prints this page. Under the name `kubectl-device_health` the program is a kubectl plugin: [kubectl.md](kubectl.md).

| exit code | meaning |
|---|---|
| 0 | Done, or help was asked for. |
| 1 | It could not be done, or a configuration has mistakes; standard error says why. |
| 2 | The command line is wrong. |
| 3 | There is no status to read: no controller has written the ConfigMap `device-health-status` in that namespace. |
| 4 | A replay decides otherwise than was recorded. |

| without a command | meaning |
|---|---|
)";

}  // namespace

std::string command_page(const CommandHelp& program) {
  auto text = std::string(kHead);
  for (const auto& option : program.options) text += row_of(option) + "\n";
  for (const auto& command : program.commands) text += section_of(program, command);
  return text + common_section(program);
}

}  // namespace dhc::cli
