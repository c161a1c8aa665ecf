#include <algorithm>

#include <fmt/format.h>

#include "cli/plugin/command_tree.h"
#include "domain/contract/reasons.h"

namespace dhc::cli {

namespace {

// cobra's: 4 means that no files are meant.
constexpr int kFiles = 0;
constexpr int kNoFiles = 4;

constexpr std::string_view kBash = R"(# bash completion for device-health-controller and kubectl-device_health
_device_health_complete() {
  local line directive=4
  COMPREPLY=()
  while IFS= read -r line; do
    case "$line" in
      :*) directive="${line#:}" ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  if [[ $directive == 0 ]]; then
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
  fi
}
complete -F _device_health_complete device-health-controller kubectl-device_health
)";

constexpr std::string_view kZsh = R"(#compdef device-health-controller kubectl-device_health
# zsh completion for device-health-controller and kubectl-device_health
_device_health_complete() {
  local -a candidates
  local line directive=4
  while IFS= read -r line; do
    case "$line" in
      :*) directive="${line#:}" ;;
      *) candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
    esac
  done < <("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
  _describe 'device-health' candidates
  if [[ $directive == 0 ]]; then _files; fi
}
compdef _device_health_complete device-health-controller kubectl-device_health
# Found by its name in fpath, this file is the function of the first Tab itself.
if [[ "${funcstack[1]}" == _device-health-controller || "${funcstack[1]}" == _kubectl-device_health ]]; then
  _device_health_complete
fi
)";

constexpr std::string_view kFish = R"(# fish completion for device-health-controller and kubectl-device_health
function __device_health_complete
    set -l words (commandline -opc)
    set -l program $words[1]
    set -e words[1]
    set -l lines ($program __complete $words (commandline -ct) 2>/dev/null)
    string match -v ':*' -- $lines
    if contains -- ':0' $lines
        __fish_complete_path (commandline -ct)
    end
end
for program in device-health-controller kubectl-device_health
    complete -c $program -f -a '(__device_health_complete)'
end
)";

class Completer {
 public:
  Completer(const CommandHelp& program, const std::vector<std::string>& words) : at_(&program) {
    for (std::size_t i = 0; i + 1 < words.size(); ++i) pass(words[i]);
    if (!words.empty()) last_ = words.back();
  }

  Completion run() {
    if (awaiting_ != nullptr) {
      offer_value(*awaiting_);
    } else if (last_.starts_with("-")) {
      offer_options();
    } else {
      for (const auto& command : at_->commands) offer(command.name, command.about);
      offer_argument();
    }
    std::ranges::sort(completion_.candidates);
    return std::move(completion_);
  }

 private:
  /// A word before the last.
  void pass(const std::string& word) {
    if (awaiting_ != nullptr) {
      awaiting_ = nullptr;
      return;
    }
    if (word.starts_with("-")) {
      const auto* option = named(word);
      if (option != nullptr && !option->is_flag() && word.find('=') == std::string::npos) awaiting_ = option;
      return;
    }
    const auto command = std::ranges::find(at_->commands, word, &CommandHelp::name);
    if (command != at_->commands.end()) {
      at_ = &*command;
    } else {
      ++arguments_;
    }
  }

  [[nodiscard]] const OptionHelp* named(const std::string& word) const {
    const auto name = word.substr(0, word.find('='));
    const auto found = std::ranges::find_if(
        at_->options, [&](const auto& option) { return std::ranges::find(option.names, name) != option.names.end(); });
    return found == at_->options.end() ? nullptr : &*found;
  }

  void offer(const std::string& word, const std::string& about) {
    if (word.starts_with(last_)) completion_.candidates.push_back(about.empty() ? word : word + "\t" + about);
  }

  void offer_value(const OptionHelp& option) {
    for (const auto& word : words_of_value(option.value)) offer(word, {});
    completion_.files = completion_.files || option.value == "FILE" || option.value == "DIR";
  }

  void offer_options() {
    for (const auto& option : at_->options) {
      for (const auto& name : option.names) {
        if (name.starts_with("--")) offer(name, option.about);
      }
    }
  }

  void offer_argument() {
    if (at_->arguments.empty()) return;
    const auto& argument = at_->arguments[std::min(arguments_, at_->arguments.size() - 1)];
    offer_value(argument);
    if (at_->name != "explain" || arguments_ > 0) return;
    for (const auto& info : all_reasons()) offer(std::string(info.word), std::string(info.meaning));
  }

  const CommandHelp* at_;
  const OptionHelp* awaiting_ = nullptr;
  std::size_t arguments_ = 0;
  std::string last_;
  Completion completion_;
};

}  // namespace

std::vector<std::string> words_of_value(std::string_view value) {
  std::vector<std::string> words;
  if (value.find('|') == std::string_view::npos) return words;
  while (true) {
    const auto end = value.find('|');
    words.emplace_back(value.substr(0, end));
    if (end == std::string_view::npos) return words;
    value.remove_prefix(end + 1);
  }
}

Completion complete(const CommandHelp& program, const std::vector<std::string>& words) {
  return Completer(program, words).run();
}

std::string completion_text(const Completion& completion) {
  std::string text;
  for (const auto& candidate : completion.candidates) text += candidate + "\n";
  return text + fmt::format(":{}\n", completion.files ? kFiles : kNoFiles);
}

std::string completion_script(std::string_view shell) {
  if (shell == "bash") return std::string(kBash);
  if (shell == "zsh") return std::string(kZsh);
  if (shell == "fish") return std::string(kFish);
  return {};
}

}  // namespace dhc::cli
