#include "cli/command_line.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/nearest_word.h"
#include "cli/demo_acts.h"
#include "cli/plugin/command_line_plugin.h"
#include "domain/policy/config_duration.h"

namespace dhc::cli {

namespace {
/// The name under which kubectl asks for completions. **Source:** kubectl's "Extend kubectl with plugins".
constexpr std::string_view kPluginCompletion = "kubectl_complete-device_health";
constexpr std::string_view kComplete = "__complete";
constexpr const char* kVersionFlag = "--version";

/// `90s`, `2m`, `1h`, `500ms`.
std::optional<Millis> parse_wait(const std::string& text) {
  const auto time = parse_duration(text);
  return time && *time > Millis::zero() ? std::optional(*time) : std::nullopt;
}

/// `512Mi`, `1Gi`; whole MiB at least.
std::optional<std::int64_t> parse_size(const std::string& text) {
  std::int64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [unit, ec] = std::from_chars(text.data(), end, count);
  if (ec != std::errc() || count <= 0 || count > 1'000'000) return std::nullopt;
  const std::string_view word(unit, end);
  if (word == "Mi") return count << 20U;
  if (word == "Gi") return count << 30U;
  return std::nullopt;
}

std::optional<ConfigMapName> parse_config_map(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == 0 || slash == std::string::npos || slash + 1 == text.size()) return std::nullopt;
  if (text.find('/', slash + 1) != std::string::npos) return std::nullopt;
  return ConfigMapName{.ns = text.substr(0, slash), .name = text.substr(slash + 1)};
}

/// All that CLI11 fills in.
struct Parsed {
  RunOptions run;
  DemoOptions demo;
  ValidateOptions validate;
  TestOptions test;
  PlanOptions plan;
  ReplayOptions replay;
  TuneOptions tune;
  UninstallOptions uninstall;
  PluginLine plugin;
  std::string version_output = "text";
  bool version = false;
};

template <class T>
void add_word(CLI::App& app, const std::string& name, T& value, const std::string& help,
              const std::map<std::string, T>& words) {
  std::string all;
  std::string choice;
  for (const auto& [word, meaning] : words) {
    all += (all.empty() ? "" : ", ") + word;
    choice += (choice.empty() ? "" : "|") + word;
  }
  const auto read = [&value, name, words, all](const std::string& text) {
    const auto at = words.find(text);
    if (at == words.end()) throw CLI::ValidationError(fmt::format("{} '{}' is not one of: {}", name, text, all));
    value = at->second;
  };
  app.add_option_function<std::string>(name, read, help)->type_name(choice);
}

void add_connection(CLI::App& app, std::string& kubeconfig, std::string& context) {
  app.add_option("--kubeconfig", kubeconfig,
                 "Kubeconfig file (default: KUBECONFIG, ~/.kube/config, else the pod's service account)")
      ->type_name("FILE");
  app.add_option("--context", context, "Context of the kubeconfig (default: its current one)")->type_name("NAME");
}

CLI::Option* add_config_map(CLI::App& app, std::optional<ConfigMapName>& value, const std::string& help) {
  const auto read = [&value](const std::string& text) {
    value = parse_config_map(text);
    if (!value) throw CLI::ValidationError(fmt::format("--config-map '{}' is not NAMESPACE/NAME", text));
  };
  return app.add_option_function<std::string>("--config-map", read, help)->type_name("NAMESPACE/NAME");
}

CLI::App* add_run(CLI::App& app, RunOptions& options) {
  auto* run = app.add_subcommand("run", "Watch a cluster and act on unhealthy allocated devices");
  add_connection(*run, options.kubeconfig, options.context);
  auto* file = run->add_option("--config", options.config_file, "Configuration file, read again when it changes")
                   ->type_name("FILE");
  add_config_map(*run, options.config_map, "ConfigMap that holds the configuration, watched")->excludes(file);
  add_word<Mode>(
      *run, "--mode", options.mode,
      "The most that any policy may do: observe (default) changes no pod, node or Job, enforce lets policies "
      "act",
      {{"observe", Mode::Observe}, {"enforce", Mode::Enforce}});
  add_word<bool>(*run, "--events", options.events, "Write Events: true (default) or false",
                 {{"true", true}, {"false", false}});
  add_word<bool>(*run, "--status", options.status,
                 "Write the ConfigMap device-health-status in its own namespace, which kubectl device-health reads: "
                 "true (default) or false",
                 {{"true", true}, {"false", false}});
  add_word<std::optional<bool>>(
      *run, "--leader-elect", options.leader_elect,
      "Act only while holding the Lease in its own namespace: true (default in a pod, or with "
      "POD_NAMESPACE) or false",
      {{"true", true}, {"false", false}});
  add_word<k8s::WireFormat>(
      *run, "--wire-format", options.wire_format,
      "How watches ask for objects: protobuf (default), which costs the API server and the controller less, or json",
      {{"json", k8s::WireFormat::Json}, {"protobuf", k8s::WireFormat::Protobuf}});
  add_word<LogFormat>(*run, "--log-format", options.log_format, "text (default) or json",
                      {{"text", LogFormat::Text}, {"json", LogFormat::Json}});
  add_word<LogLevel>(
      *run, "--log-level", options.log_level, "debug, info (default), warn or error",
      {{"debug", LogLevel::Debug}, {"info", LogLevel::Info}, {"warn", LogLevel::Warn}, {"error", LogLevel::Error}});
  run->add_option("--metrics-bind-address", options.metrics_address,
                  "Where /metrics is served: IP:PORT or :PORT, port 0 for any, 0 for not at all (default :8080)")
      ->type_name("ADDRESS");
  run->add_option("--health-probe-bind-address", options.health_address,
                  "Where /healthz and /readyz are served (default :8081)")
      ->type_name("ADDRESS");
  run->add_option("--detail-bind-address", options.detail_address,
                  "Where /verdicts and the live page are served: an address of the loopback (default 127.0.0.1:8082), "
                  "0 for not at all; "
                  "reach a pod's by kubectl port-forward")
      ->type_name("ADDRESS");
  run->add_option("--record", options.record_folder,
                  "Folder in which what is seen and decided is recorded, for 'replay' (default: nothing is)")
      ->type_name("DIR");
  const auto read_size = [&options](const std::string& text) {
    const auto size = parse_size(text);
    if (!size) throw CLI::ValidationError(fmt::format("--record-max-size '{}' is not a size such as 512Mi", text));
    options.record_most_bytes = *size;
  };
  run->add_option_function<std::string>("--record-max-size", read_size,
                                        "How much the recordings in that folder may take together; the oldest go first "
                                        "(default 512Mi)")
      ->type_name("SIZE");
  return run;
}

CLI::App* add_demo(CLI::App& app, DemoOptions& options) {
  auto* demo =
      app.add_subcommand("demo", "Run the controller on a simulated cluster in this process: no cluster needed");
  const auto read_wait = [&options](const std::string& text) {
    options.duration = parse_wait(text);
    if (!options.duration)
      throw CLI::ValidationError(fmt::format("--for '{}' is not a time such as 60s or 1m30s", text));
  };
  demo->add_option("--act", options.act, "Play this act alone, by name or number (default: all): " + act_names())
      ->type_name("ACT");
  demo->add_option_function<std::string>("--for", read_wait, "End after this time (default: after the last act)")
      ->type_name("TIME");
  demo->add_flag("--repeat", options.repeat, "Begin again after the last act, with the next seed, until Ctrl-C");
  demo->add_option("--seed", options.seed, "Which devices break (default 1); the same seed tells the same story")
      ->type_name("NUMBER");
  demo->add_option("--speed", options.speed, "How fast it is told, 0.1 to 100 (default 1)")
      ->type_name("FACTOR")
      ->check(CLI::Range(0.1, 100.0).description(""));
  return demo;
}

CLI::App* add_plan(CLI::App& app, PlanOptions& options) {
  auto* plan = app.add_subcommand(
      "plan", "Show what a configuration would do to a cluster as it is now, next to the current one; read-only");
  add_connection(*plan, options.kubeconfig, options.context);
  add_overrides(*plan, options.overrides);
  add_impersonation(*plan, options.as);
  plan->add_option("-f,--filename", options.files,
                   "Files of the new configuration, - for standard input (default: only today's is shown)")
      ->type_name("FILE");
  plan->add_option("--controller-namespace,--namespace", options.ns,
                   "Where the controller runs, or would: its state is read there (default device-health-system)")
      ->type_name("NAME");
  add_config_map(*plan, options.config_map,
                 "ConfigMap of today's configuration (default device-health-controller in --namespace)");
  const auto read_wait = [&options](const std::string& text) {
    const auto wait = parse_wait(text);
    if (!wait || *wait > std::chrono::hours(24))
      throw CLI::ValidationError(fmt::format("--within '{}' is not a time such as 10m or 1h30m, at most 24h", text));
    options.horizon = *wait;
  };
  plan->add_option_function<std::string>("--within", read_wait, "How far to look ahead (default 1h)")
      ->type_name("TIME");
  add_word<PlanFormat>(
      *plan, "-o,--output", options.format, "text (default), wide, which adds each reason's message, json or yaml",
      {{"text", PlanFormat::Text}, {"wide", PlanFormat::Wide}, {"json", PlanFormat::Json}, {"yaml", PlanFormat::Yaml}});
  return plan;
}

CLI::App* add_replay(CLI::App& app, ReplayOptions& options) {
  auto* replay = app.add_subcommand(
      "replay", "Play what 'run --record' has recorded again, and compare what is decided; reads files only");
  replay->add_option("DIR", options.paths, "Folders of recordings, or single files of them")
      ->type_name("DIR")
      ->required();
  replay->add_flag("--audit", options.is_audit,
                   "DIR names audit logs of all API servers instead, one event a line (needs -f)");
  replay
      ->add_option("-f,--filename", options.files,
                   "Files of another configuration: show what it would have done, beside what was done")
      ->type_name("FILE");
  add_word<ReplayFormat>(*replay, "-o,--output", options.format, "text (default) or json",
                         {{"text", ReplayFormat::Text}, {"json", ReplayFormat::Json}});
  return replay;
}

CLI::App* add_tune(CLI::App& app, TuneOptions& options) {
  auto* tune = app.add_subcommand("tune",
                                  "Try hold, halfLife, quarantineAbove and more over known faults, and print the "
                                  "choices that no other beats; reads "
                                  "files only");
  tune->add_option("TRACE", options.paths,
                   "What 'run --record' has written, folders or files; or InfiniteHBD's fault_trace.json or Titan's "
                   "gc_full.csv")
      ->type_name("TRACE")
      ->required();
  tune->add_option("-f,--filename", options.files,
                   "Files of the running configuration, whose place is shown (default: the shipped defaults)")
      ->type_name("FILE");
  tune->add_option("--policy", options.policy, "The policy of that configuration (default: the only one)")
      ->type_name("NAME");
  tune->add_option("--sweep", options.sweep,
                   "Try these values of a key, such as hold=1h,12h,24h; may be given several times (keys: after, hold, "
                   "halfLife, quarantineAbove, brake.* and caps.*)")
      ->type_name("KEY=VALUES")
      ->allow_extra_args(false);
  add_word<bool>(*tune, "-o,--output", options.is_json, "text (default) or json", {{"text", false}, {"json", true}});
  return tune;
}

CLI::App* add_uninstall(CLI::App& app, UninstallOptions& options) {
  auto* uninstall = app.add_subcommand(
      "uninstall", "Remove from a cluster every trace of the controller, and only that; stop the controller first");
  add_connection(*uninstall, options.kubeconfig, options.context);
  uninstall
      ->add_option("--controller-namespace,--namespace", options.ns,
                   "Where the controller ran, for its ConfigMap and Lease (default device-health-system)")
      ->type_name("NAME");
  uninstall->add_flag("--dry-run", options.dry_run, "Only list what would be removed");
  return uninstall;
}

std::vector<std::string> words_of(const CLI::App& app) {
  std::vector<std::string> words;
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) words.push_back("--" + name);
  }
  for (const auto* sub : app.get_subcommands([](const CLI::App*) { return true; })) words.push_back(sub->get_name());
  return words;
}

/// What is unknown in the arguments, and what may have been meant; empty if nothing is.
std::string unknown_argument(const CLI::App& app, const std::vector<std::string>& arguments) {
  const auto used = app.get_subcommands();
  const CLI::App& at = used.empty() ? app : *used.front();
  const auto known = words_of(at);
  for (const auto& argument : arguments) {
    const auto word = argument.substr(0, argument.find('='));
    const bool is_option = word.starts_with('-') && word.size() > 1;
    if (word == at.get_name() || std::ranges::find(known, word) != known.end()) continue;
    if (!is_option && !used.empty()) continue;  // may be the value of an option
    const auto near = nearest_word(word, std::vector<std::string_view>(known.begin(), known.end()));
    return fmt::format("unknown {} '{}'{}", is_option ? "option" : "command", word,
                       near.empty() ? "" : fmt::format(", did you mean '{}'?", near));
  }
  return {};
}

Leave complain(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& arguments) {
  std::string message = error.what();
  // By code: CLI11 gives an ExtrasError the command's name instead of its own.
  const auto code = error.get_exit_code();
  if (code == static_cast<int>(CLI::ExitCodes::ExtrasError) ||
      code == static_cast<int>(CLI::ExitCodes::RequiredError)) {
    if (auto better = unknown_argument(app, arguments); !better.empty()) message = std::move(better);
  }
  if (arguments.empty()) message = "a command is missing";
  const auto used = app.get_subcommands();
  const auto& program = app.get_name();
  const auto command = used.empty() ? program : fmt::format("{} {}", program, used.front()->get_name());
  return {.code = kUsage, .out = {}, .err = fmt::format("error: {}\nSee '{} --help'.\n", message, command)};
}
/// What CLI11 is to parse: `help COMMAND` is `COMMAND --help`.
std::vector<const char*> without_help(const CLI::App& app, std::span<const char* const> arguments) {
  std::vector<const char*> all(arguments.begin(), arguments.end());
  if (all.size() < 2 || all[1] != std::string_view("help")) return all;
  all.erase(all.begin() + 1);
  const auto is_asked = [&](const CLI::App* command) { return all.size() > 1 && command->get_name() == all[1]; };
  if (all.size() == 1 || !app.get_subcommands(is_asked).empty()) all.push_back("--help");
  return all;
}

std::string_view file_name(std::span<const char* const> arguments) {
  const std::string_view path = arguments.empty() ? kProgramName : arguments.front();
  return path.substr(path.rfind('/') + 1);
}

/// The commands that are not the plugin's.
struct Commands {
  CLI::App* run = nullptr;
  CLI::App* demo = nullptr;
  CLI::App* validate = nullptr;
  CLI::App* test = nullptr;
  CLI::App* plan = nullptr;
  CLI::App* replay = nullptr;
  CLI::App* tune = nullptr;
  CLI::App* uninstall = nullptr;
};

Commands define(CLI::App& app, Parsed& parsed, bool is_plugin) {
  app.require_subcommand(1);
  app.add_flag(kVersionFlag, parsed.version, "Print the version");
  Commands commands;
  commands.run = add_run(app, parsed.run);
  commands.demo = add_demo(app, parsed.demo);
  commands.validate = app.add_subcommand("validate", "Check configuration files and print every mistake");
  commands.validate->add_option("FILE", parsed.validate.files, "Files to read, - for standard input")
      ->type_name("FILE")
      ->required();
  commands.test =
      app.add_subcommand("test", "Play the cases of PolicyTest files, and say which configuration fails them");
  commands.test->add_option("FILE", parsed.test.files, "Files with PolicyTest documents")
      ->type_name("FILE")
      ->required();
  commands.test->add_option("--junit", parsed.test.junit, "Write a JUnit report to this file")->type_name("FILE");
  define_plugin(app, parsed.plugin);
  commands.plan = add_plan(app, parsed.plan);
  commands.replay = add_replay(app, parsed.replay);
  commands.tune = add_tune(app, parsed.tune);
  commands.uninstall = add_uninstall(app, parsed.uninstall);
  auto* version = app.add_subcommand("version", "Print the version");
  version->add_option("--output", parsed.version_output, "text (default) or json")
      ->type_name("json|text")
      ->check(CLI::IsMember({"text", "json"}).description(""));
  app.add_subcommand("help", "Print the help of the program, or of one of its commands");
  // They work, and are not what a kubectl plugin is looked up for.
  if (is_plugin) {
    for (auto* command : {commands.run, commands.demo, commands.validate, commands.test, commands.replay, commands.tune,
                          commands.uninstall})
      command->group("");
  }
  return commands;
}

std::string name_of_program(bool is_plugin) { return is_plugin ? "kubectl device-health" : std::string(kProgramName); }

constexpr const char* kAbout = "Reacts to unhealthy allocated devices in a Kubernetes cluster";

/// What is to be completed; none: nothing is.
std::optional<CompleteOptions> completion_of(std::span<const char* const> arguments) {
  const bool by_name = file_name(arguments) == kPluginCompletion;
  const bool by_word = arguments.size() > 1 && arguments[1] == kComplete;
  if (!by_name && !by_word) return std::nullopt;
  const auto words = arguments.subspan(by_word ? 2 : 1);
  return CompleteOptions{.program = std::string(file_name(arguments)), .words = {words.begin(), words.end()}};
}

}  // namespace

Command parse_command_line(std::span<const char* const> arguments) {
  if (auto completion = completion_of(arguments)) return *std::move(completion);
  Parsed parsed;
  const bool is_plugin = file_name(arguments) == kPluginName;
  CLI::App app(kAbout, name_of_program(is_plugin));
  const auto commands = define(app, parsed, is_plugin);
  const std::vector<std::string> given(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end());
  try {
    const auto asked = without_help(app, arguments);
    app.parse(static_cast<int>(asked.size()), asked.data());
  } catch (const CLI::CallForHelp&) {
    return Leave{.code = 0, .out = app.help(), .err = {}};
  } catch (const CLI::ParseError& error) {
    // Without a command, which is required otherwise.
    if (given == std::vector<std::string>{kVersionFlag}) return VersionOptions{};
    return complain(app, error, given);
  }
  if (commands.run->parsed()) return parsed.run;
  if (commands.demo->parsed()) return parsed.demo;
  if (commands.validate->parsed()) return parsed.validate;
  if (commands.test->parsed()) return parsed.test;
  if (commands.plan->parsed()) return parsed.plan;
  if (commands.replay->parsed()) return parsed.replay;
  if (commands.tune->parsed()) return parsed.tune;
  if (commands.uninstall->parsed()) return parsed.uninstall;
  auto command = plugin_command(app, parsed.plugin);
  if (!command) {
    return Leave{.code = kUsage,
                 .out = {},
                 .err = fmt::format("error: {}\nSee '{} {} --help'.\n", command.error(), app.get_name(),
                                    app.get_subcommands().front()->get_name())};
  }
  if (*command) return **std::move(command);
  if (app.got_subcommand("explain")) return ExplainOptions{.reasons = parsed.plugin.ask_words};
  return VersionOptions{.json = parsed.version_output == "json"};
}

CommandHelp describe_command_line(std::string_view program) {
  Parsed parsed;
  const bool is_plugin = program == kPluginName || program == kPluginCompletion;
  CLI::App app(kAbout, name_of_program(is_plugin));
  (void)define(app, parsed, is_plugin);
  return help_of(app);
}

}  // namespace dhc::cli
