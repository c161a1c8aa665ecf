#include "cli/plugin/command_line_plugin.h"

#include <algorithm>
#include <charconv>
#include <expected>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/plugin/writes.h"
#include "domain/policy/config_duration.h"

namespace dhc::cli {

namespace {

using Deed = OperatorOptions::Deed;

/// `90s`, `2m`, `1h`, `7d`.
std::expected<Millis, std::string> parse_pause(const std::string& text) {
  std::int64_t days = 0;
  const char* const end = text.data() + text.size();
  const auto [unit, ec] = std::from_chars(text.data(), end, days);
  const bool is_days = ec == std::errc() && std::string_view(unit, end) == "d" && days >= 0 && days <= 1'000;
  const auto time = parse_duration(is_days ? fmt::format("{}h", days * 24) : text);
  if (!time && !is_days)
    return std::unexpected(fmt::format("'{}' is not a time such as 30m, 2h30m or 7d: {}", text, time.error()));
  if (!time || *time > kLongestPause) return std::unexpected(fmt::format("'{}' is longer than 30d", text));
  if (*time == Millis::zero()) return std::unexpected(fmt::format("'{}' is no time", text));
  return *time;
}

/// `5s`, `1m30s`, or seconds without a unit, as kubectl reads it.
std::optional<Millis> parse_timeout(const std::string& text) {
  const bool is_number = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  const auto time = parse_duration(is_number ? text + "s" : text);
  return time ? std::optional(*time) : std::nullopt;
}

void add_cluster(CLI::App& app, ClusterFlags& flags) {
  app.add_option("--kubeconfig", flags.kubeconfig,
                 "Kubeconfig file (default: KUBECONFIG, ~/.kube/config, else the pod's service account)")
      ->type_name("FILE");
  app.add_option("--context", flags.context, "Context of the kubeconfig (default: its current one)")->type_name("NAME");
  add_overrides(app, flags.overrides);
  add_impersonation(app, flags.as);
  app.add_option("--controller-namespace", flags.controller_ns,
                 "Where the controller runs (default device-health-system)")
      ->type_name("NAME");
}

void add_format(CLI::App& app, OutputFormat& format) {
  const auto read = [&format](const std::string& text) {
    static const std::map<std::string, OutputFormat> kFormats = {{"text", OutputFormat::Text},
                                                                 {"wide", OutputFormat::Wide},
                                                                 {"json", OutputFormat::Json},
                                                                 {"yaml", OutputFormat::Yaml}};
    const auto at = kFormats.find(text);
    if (at == kFormats.end())
      throw CLI::ValidationError(fmt::format("--output '{}' is not one of: text, wide, json, yaml", text));
    format = at->second;
  };
  app.add_option_function<std::string>("-o,--output", read, "text (default), wide, json or yaml")
      ->type_name("text|wide|json|yaml");
}

CLI::App* add_view(CLI::App& app, const std::string& name, const std::string& about, ViewOptions& view) {
  auto* command = app.add_subcommand(name, about);
  add_cluster(*command, view.cluster);
  add_format(*command, view.format);
  command->add_flag("-w,--watch", view.watch, "Go on, and print what changes");
  return command;
}

void add_namespace(CLI::App& command, std::string& ns) {
  auto* option = command.add_option("-n,--namespace", ns, "Only what pods of this namespace hold (default: all)");
  option->type_name("NAME");
  command.add_flag("-A,--all-namespaces")->excludes(option)->description("All namespaces (the default)");
}

void add_views(CLI::App& app, PluginLine& line) {
  line.devices.view = ViewOptions::View::Devices;
  line.incidents.view = ViewOptions::View::Incidents;
  line.lemons.view = ViewOptions::View::Lemons;
  line.top.view = ViewOptions::View::Top;
  add_namespace(*add_view(app, "devices", "List bad devices: who holds them, the next step and when", line.devices),
                line.devices.ns);
  add_namespace(
      *add_view(app, "incidents", "List open incidents, devices on probation and in quarantine", line.incidents),
      line.incidents.ns);
  (void)add_view(app, "lemons", "List devices that have failed before, the worst first", line.lemons);
  auto* top = app.add_subcommand("top", "Show bad devices on the terminal, live");
  add_cluster(*top, line.top.cluster);
}

void add_ask(CLI::App& app, PluginLine& line) {
  auto* explain = app.add_subcommand(
      "explain",
      "Explain a pod, device, node or Job: why, why not, which gate holds and until when; or a verdict's reason");
  explain->add_option("WORD", line.ask_words, "pod|device|node|job NAME, or reasons such as BlockedByBudget")
      ->type_name("pod|device|node|job");
  add_cluster(*explain, line.ask.cluster);
  explain->add_option("-n,--namespace", line.ask.asked.ns, "Of the pod or Job (default: the context's)")
      ->type_name("NAME");
  add_format(*explain, line.ask.format);
  explain->add_flag("-w,--watch", line.ask.watch, "Go on, and print what changes");
}

void add_deed(CLI::App& command, OperatorOptions& deed) {
  add_cluster(command, deed.cluster);
  command.add_flag("--dry-run", deed.dry_run, "Let the API server check the change, and change nothing");
}

void add_config_map(CLI::App& command, OperatorOptions& deed) {
  const auto read = [&deed](const std::string& text) {
    const auto slash = text.find('/');
    if (slash == 0 || slash == std::string::npos || slash + 1 == text.size())
      throw CLI::ValidationError(fmt::format("--config-map '{}' is not NAMESPACE/NAME", text));
    deed.config_map = ConfigMapName{.ns = text.substr(0, slash), .name = text.substr(slash + 1)};
  };
  command
      .add_option_function<std::string>(
          "--config-map", read,
          "ConfigMap of the configuration (default device-health-controller where the controller runs)")
      ->type_name("NAMESPACE/NAME");
}

void add_scope(CLI::App& command, PauseScope& scope) {
  const auto add = [&](const std::string& name, std::vector<std::string>& names, const std::string& about) {
    command.add_option(name, names, about)->type_name("NAME")->expected(1)->take_all();
  };
  add("--node", scope.nodes, "Only on this node; * is wild; may be given several times, as the next");
  add("--driver", scope.drivers, "Only devices of this DRA driver");
  add("--resource", scope.resources, "Only devices of this device-plugin resource");
  add("--namespace", scope.namespaces, "Only pods of this namespace, and devices that they hold");
  command.add_option("--node-selector", scope.node_selector, "Only on nodes with these labels, such as pool=a,!spot")
      ->type_name("LABELS");
}

void add_deeds(CLI::App& app, PluginLine& line) {
  auto* ack = app.add_subcommand(
      "ack", "Acknowledge a device, all of a node's, or a suspected workload: you vouch for them, and taints go");
  ack->add_option("TARGET", line.deed_words, "device NAME, node NAME, or a suspected workload's kind and NAME")
      ->type_name("device|node|deployment|statefulset|replicaset|job|pod")
      ->required();
  ack->add_option("-n,--namespace", line.deed.ns, "Of the workload (default: the context's)")->type_name("NAME");
  ack->add_option("--reason", line.deed.reason, "What was done, for whoever reads it on the rule")->type_name("TEXT");
  add_deed(*ack, line.deed);
  auto* release = app.add_subcommand(
      "release-brake", "Release the brakes of a node, or the cluster's: you have checked that the reports are right");
  release->add_option("SCOPE", line.deed_words, "node NAME, or cluster")->type_name("node|cluster")->required();
  add_deed(*release, line.deed);
  add_config_map(*release, line.deed);
  auto* pause =
      app.add_subcommand("pause", "Stop evictions, retry credits and new taints for a time, in all or a part");
  const auto read = [&line](const std::string& text) {
    const auto time = parse_pause(text);
    if (!time) throw CLI::ValidationError("--for " + time.error());
    line.deed.pause_for = *time;
  };
  pause->add_option_function<std::string>("--for", read, "How long, at most 30d")->type_name("TIME")->required();
  pause->add_option("--reason", line.deed.reason, "Why; every verdict Paused says so")->type_name("TEXT");
  add_scope(*pause, line.deed.scope);
  add_deed(*pause, line.deed);
  add_config_map(*pause, line.deed);
  auto* resume = app.add_subcommand("resume", "End the pause of everything, or of the same part");
  resume->add_flag("--all", line.deed.all, "Every pause that stands in an annotation");
  add_scope(*resume, line.deed.scope);
  add_deed(*resume, line.deed);
  add_config_map(*resume, line.deed);
}

/// `pod NAME` or `pod/NAME`; none: neither.
std::optional<Asked> asked_of(std::vector<std::string> words) {
  if (words.size() == 1) {
    const auto slash = words[0].find('/');
    if (slash == std::string::npos) return std::nullopt;
    words = {words[0].substr(0, slash), words[0].substr(slash + 1)};
  }
  const auto kind = words.size() == 2 ? parse_subject_kind(words[0]) : std::nullopt;
  if (!kind || words[1].empty()) return std::nullopt;
  return Asked{.kind = *kind, .ns = {}, .name = words[1]};
}

std::expected<std::optional<PluginCommand>, std::string> ask_of(const PluginLine& line) {
  const auto& words = line.ask_words;
  if (words.empty() && !line.ask.watch) return std::nullopt;
  auto asked = asked_of(words);
  if (!asked && words.size() == 1 && parse_subject_kind(words[0]))
    return std::unexpected(fmt::format("explain {} needs a name", words[0]));
  if (!asked && line.ask.watch) return std::unexpected("--watch needs pod, device, node or job and a NAME");
  if (!asked) return std::nullopt;
  auto ask = line.ask;
  asked->ns = ask.asked.ns;
  ask.asked = *std::move(asked);
  return ask;
}

std::expected<std::optional<PluginCommand>, std::string> deed_of(const CLI::App& app, const PluginLine& line) {
  auto deed = line.deed;
  const auto& words = line.deed_words;
  const bool names = words.size() == 2 && !words[1].empty();
  if (names) deed.name = words[1];
  if (app.got_subcommand("pause")) {
    deed.deed = Deed::Pause;
    if (deed.scope != PauseScope{} && deed.reason.empty())
      return std::unexpected("a pause of a part needs a --reason: it stands in every verdict that the pause holds");
  } else if (app.got_subcommand("resume")) {
    deed.deed = Deed::Resume;
    if (deed.all && deed.scope != PauseScope{}) return std::unexpected("resume takes --all or a part, not both");
  } else if (app.got_subcommand("ack")) {
    const bool is_workload = names && is_workload_kind(words[0]);
    if (!names || (words[0] != "device" && words[0] != "node" && !is_workload))
      return std::unexpected(
          "ack needs 'device NAME', 'node NAME', or 'deployment', 'statefulset', 'replicaset', 'job' or 'pod' and a "
          "NAME");
    if (!is_workload && !deed.ns.empty()) return std::unexpected("a device or node is in no namespace");
    deed.kind = words[0];
    deed.deed = is_workload ? Deed::AckWorkload : words[0] == "device" ? Deed::AckDevice : Deed::AckNode;
  } else if (words.size() == 1 && words[0] == "cluster") {
    deed.deed = Deed::ReleaseCluster;
  } else if (names && words[0] == "node") {
    deed.deed = Deed::ReleaseNode;
  } else {
    return std::unexpected("release-brake needs 'node NAME' or 'cluster'");
  }
  return deed;
}

OptionHelp option_help(const CLI::Option& option) {
  OptionHelp help{.names = {}, .value = {}, .about = option.get_description()};
  for (const auto& name : option.get_snames()) help.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) help.names.push_back("--" + name);
  if (option.get_type_size_max() > 0) help.value = option.get_type_name();
  if (help.names.empty() && (help.value.empty() || help.value.starts_with("TEXT"))) help.value = option.get_name();
  return help;
}

}  // namespace

void add_impersonation(CLI::App& app, Impersonation& as) {
  app.add_option("--as", as.user, "User to impersonate")->type_name("NAME");
  app.add_option("--as-uid", as.uid, "UID to impersonate")->type_name("UID");
  app.add_option("--as-group", as.groups, "Group to impersonate; may be given several times")
      ->type_name("NAME")
      ->expected(1)
      ->take_all();
}

void add_overrides(CLI::App& app, Overrides& overrides) {
  auto& context = overrides.context;
  app.add_option("--cluster", context.cluster, "Cluster of the kubeconfig (default: the context's)")->type_name("NAME");
  app.add_option("--user", context.user, "User of the kubeconfig (default: the context's)")->type_name("NAME");
  app.add_option("-s,--server", context.server, "Address of the API server (default: the cluster's)")->type_name("URL");
  app.add_option("--token", context.token, "Bearer token for the API server")->type_name("TOKEN");
  app.add_option("--client-certificate", context.client_certificate, "Client certificate, as PEM")->type_name("FILE");
  app.add_option("--client-key", context.client_key, "Its key, as PEM")->type_name("FILE");
  app.add_option("--certificate-authority", context.ca, "Whom to trust to name the API server, as PEM")
      ->type_name("FILE");
  app.add_option("--tls-server-name", context.tls_server_name,
                 "Name in the API server's certificate (default: its host)")
      ->type_name("NAME");
  app.add_flag("--insecure-skip-tls-verify", context.insecure_skip_tls_verify,
               "Do not check the API server's certificate: whoever answers may be anybody");
  const auto read = [&overrides](const std::string& text) {
    overrides.request_timeout = parse_timeout(text);
    if (!overrides.request_timeout)
      throw CLI::ValidationError(fmt::format("--request-timeout '{}' is not a time such as 5s or 1m30s, nor 0", text));
  };
  app.add_option_function<std::string>("--request-timeout", read,
                                       "How long one request may take, watches excepted; 0: any time (default 30s)")
      ->type_name("TIME");
}

void define_plugin(CLI::App& app, PluginLine& line) {
  add_views(app, line);
  add_ask(app, line);
  add_deeds(app, line);
  auto* bundle = app.add_subcommand("support-bundle", "Write what a bug report needs into an archive, without secrets");
  add_cluster(*bundle, line.bundle.cluster);
  bundle->add_option("-f,--filename", line.bundle.file, "Archive to write (default: device-health-TIME.tar)")
      ->type_name("FILE");
  auto* completion = app.add_subcommand("completion", "Print the completion script of a shell");
  completion->add_option("SHELL", line.completion.shell, "bash, zsh or fish")
      ->type_name("bash|fish|zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""));
  auto* manual = app.add_subcommand("man", "Print the manual page");
  const auto read = [&line](const std::string& text) { line.manual.is_markdown = text == "markdown"; };
  manual->add_option_function<std::string>("-o,--output", read, "roff (default) or markdown")
      ->type_name("roff|markdown")
      ->check(CLI::IsMember({"roff", "markdown"}).description(""));
}

std::expected<std::optional<PluginCommand>, std::string> plugin_command(const CLI::App& app, const PluginLine& line) {
  for (const auto* view : {&line.devices, &line.incidents, &line.lemons, &line.top}) {
    static const std::map<ViewOptions::View, const char*> kNames = {{ViewOptions::View::Devices, "devices"},
                                                                    {ViewOptions::View::Incidents, "incidents"},
                                                                    {ViewOptions::View::Lemons, "lemons"},
                                                                    {ViewOptions::View::Top, "top"}};
    if (app.got_subcommand(kNames.at(view->view))) return *view;
  }
  if (app.got_subcommand("explain")) return ask_of(line);
  for (const auto* name : {"ack", "release-brake", "pause", "resume"}) {
    if (app.got_subcommand(name)) return deed_of(app, line);
  }
  if (app.got_subcommand("support-bundle")) return line.bundle;
  if (app.got_subcommand("completion")) return line.completion;
  if (app.got_subcommand("man")) return line.manual;
  return std::nullopt;
}

CommandHelp help_of(const CLI::App& app) {
  CommandHelp help{.name = app.get_name(), .about = app.get_description()};
  for (const auto* option : app.get_options()) {
    auto one = option_help(*option);
    (one.names.empty() ? help.arguments : help.options).push_back(std::move(one));
  }
  for (const auto* command : app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
    help.commands.push_back(help_of(*command));
  }
  return help;
}

}  // namespace dhc::cli
