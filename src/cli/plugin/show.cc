#include "cli/plugin/show.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/clock.h"
#include "app/signals.h"
#include "base/json_text.h"
#include "base/rfc3339.h"
#include "cli/plugin/own_pods.h"
#include "cli/plugin/status_reader.h"
#include "k8s-client/protocol/object_path.h"

namespace dhc::cli {

namespace {
using OrderedJson = nlohmann::ordered_json;
using View = ViewOptions::View;

std::string formatted(const OrderedJson& json, OutputFormat format) {
  return format == OutputFormat::Yaml ? yaml_text(json)
                                      : json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

bool is_for_people(OutputFormat format) { return format == OutputFormat::Text || format == OutputFormat::Wide; }

std::vector<Line> lines_of(const Sight& sight, const ViewOptions& options) {
  const bool is_wide = options.format == OutputFormat::Wide;
  switch (options.view) {
    case View::Devices:
    case View::Top:
      return devices_lines(sight, options.ns, is_wide);
    case View::Incidents:
      return incidents_lines(sight, options.ns, is_wide);
    case View::Lemons:
      return lemons_lines(sight, is_wide);
  }
  return {};
}

OrderedJson json_of(const Sight& sight, const ViewOptions& options) {
  switch (options.view) {
    case View::Devices:
    case View::Top:
      return devices_json(sight, options.ns);
    case View::Incidents:
      return incidents_json(sight, options.ns);
    case View::Lemons:
      return lemons_json(sight);
  }
  return {};
}

std::string_view nothing_of(View view) {
  switch (view) {
    case View::Devices:
    case View::Top:
      return "No device is bad.\n";
    case View::Incidents:
      return "No incident is open.\n";
    case View::Lemons:
      return "No device has failed before.\n";
  }
  return {};
}

Printed printed(const Sight& sight, const ViewOptions& options) {
  Printed printed;
  if (!is_for_people(options.format))
    return {.code = 0, .out = formatted(json_of(sight, options), options.format), .err = {}};
  for (const auto& note : notes_of(sight)) printed.err += note + "\n";
  const auto lines = lines_of(sight, options);
  printed.out = lines.size() == 1 ? std::string(nothing_of(options.view)) : table_of(lines);
  return printed;
}

void put(const Printed& printed) {
  std::fputs(printed.err.c_str(), stderr);
  std::fputs(printed.out.c_str(), stdout);
  (void)std::fflush(stdout);
}

/// Without what passes with time alone: how old, how soon.
Sight without_time(Sight sight) {
  sight.now = {};
  sight.lease_ends.reset();
  return sight;
}

/// What is watched: how it looks without the time, and in full. An error ends it.
struct Watched {
  std::function<Result<std::string>(const Sight& still)> fingerprint;
  std::function<Printed(const Sight&)> text;
  std::function<OrderedJson(const Sight&)> json;
};

/// Prints the whole again when something in it changes; JSON one object a line.
Printed watch(const Connection& connection, const std::string& ns, OutputFormat format, const Watched& watched,
              const std::stop_token& stop) {
  std::string before;
  bool is_first = true;
  std::optional<Error> wrong;
  const auto show = [&](const Sight& sight) {
    auto now = watched.fingerprint(without_time(sight));
    if (!now) {
      wrong = std::move(now.error());
      return false;
    }
    if (!is_first && *now == before) return true;
    before = *std::move(now);
    if (format == OutputFormat::Json) {
      put({.code = 0, .out = json_text(watched.json(sight)) + "\n", .err = {}});
    } else {
      const auto separator = is_first                       ? std::string()
                             : format == OutputFormat::Yaml ? "---\n"
                                                            : fmt::format("\n{}\n", format_rfc3339(sight.now));
      auto one = watched.text(sight);
      one.out = separator + one.out;
      put(one);
    }
    is_first = false;
    return std::ferror(stdout) == 0;
  };
  const auto followed = follow_status(connection.client, ns, show, stop);
  if (wrong) return without_status(*wrong);
  return followed ? Printed{} : without_status(followed.error());
}

Printed watch_view(const Connection& connection, const ViewOptions& options, const std::stop_token& stop) {
  const Watched watched{.fingerprint = [&](const Sight& sight) { return table_of(lines_of(sight, options)); },
                        .text = [&](const Sight& sight) { return printed(sight, options); },
                        .json = [&](const Sight& sight) { return json_of(sight, options); }};
  return watch(connection, options.cluster.controller_ns, options.format, watched, stop);
}

/// For those who may not read the status: our condition on the pods of one namespace.
Printed show_own(const Connection& connection, const ViewOptions& options, const Error& refused,
                 const std::stop_token& stop) {
  if (!k8s::is_path_segment(options.ns)) return without_status(refused);
  const auto answer = connection.client->call(
      k8s::read_request(fmt::format("/api/v1/namespaces/{}/pods", k8s::percent_encode(options.ns))), stop);
  if (!answer) return without_status(refused);
  const auto pods = own_pods(answer->body);
  if (!pods) return without_status(pods.error());
  const auto now = time_of(k8s::header(*answer, "date"), wall_now());
  return {.code = 0,
          .out = pods->empty() ? std::string("No pod carries the condition.\n") : table_of(own_pods_lines(*pods, now)),
          .err =
              "note: the status may not be read: this is our condition on the pods, which an observed pod does not "
              "carry\n"};
}

/// The pod's own condition and Events.
Printed ask_pod(const Connection& connection, const Asked& asked, const std::stop_token& stop) {
  const auto path = k8s::pod_path(asked.ns, asked.name);
  if (!path) return without_status(path.error());
  const auto answer = connection.client->call(k8s::read_request(*path), stop);
  if (!answer) {
    return failure(answer.error().kind == ErrorKind::NotFound ? fmt::format("there is no {}", to_string(asked))
                                                              : answer.error().message);
  }
  const auto pods = own_pods(answer->body);
  if (!pods) return without_status(pods.error());
  const auto events = connection.client->call(
      k8s::read_request(fmt::format("/api/v1/namespaces/{}/events?fieldSelector=involvedObject.name%3D{}",
                                    k8s::percent_encode(asked.ns), k8s::percent_encode(asked.name))),
      stop);
  const auto lines = events ? own_events(events->body) : Result<std::vector<std::string>>(std::vector<std::string>());
  auto text = own_pod_text(*pods, lines.value_or(std::vector<std::string>()));
  if (text.empty())
    text = fmt::format("Nothing: the controller knows of no bad device that {} holds.\n", to_string(asked));
  return {.code = 0, .out = std::move(text), .err = {}};
}

Printed answer_of(const Sight& sight, const Explanation& explanation, OutputFormat format) {
  if (!is_for_people(format))
    return {.code = 0, .out = formatted(explanation_json(sight, explanation), format), .err = {}};
  Printed printed{.code = 0, .out = explanation_text(sight, explanation), .err = {}};
  for (const auto& note : notes_of(sight)) printed.err += note + "\n";
  return printed;
}

std::string nothing_known(const Asked& asked) {
  return fmt::format("nothing is known of {}: no device of it is bad, and none has been", to_string(asked));
}

Printed watch_subject(const Connection& connection, const AskOptions& options, const Asked& asked,
                      const std::stop_token& stop) {
  const auto explained = [&](const Sight& sight) -> Result<Explanation> {
    auto explanation = explain_subject(sight, asked);
    if (!explanation) return fail(ErrorKind::Invalid, explanation.error());
    return *std::move(explanation);
  };
  const auto text = [&](const Sight& sight, const Explanation& explanation) {
    return explanation.is_empty() ? nothing_known(asked) + "\n" : explanation_text(sight, explanation);
  };
  // What cannot be explained has ended the watch by its fingerprint.
  const Watched watched{.fingerprint = [&](const Sight& sight) -> Result<std::string> {
                          const auto explanation = explained(sight);
                          if (!explanation) return std::unexpected(explanation.error());
                          return text(sight, *explanation);
                        },
                        .text =
                            [&](const Sight& sight) {
                              const auto explanation = *explained(sight);
                              if (explanation.is_empty() && is_for_people(options.format))
                                return Printed{.code = 0, .out = text(sight, explanation), .err = {}};
                              return answer_of(sight, explanation, options.format);
                            },
                        .json = [&](const Sight& sight) { return explanation_json(sight, *explained(sight)); }};
  return watch(connection, options.cluster.controller_ns, options.format, watched, stop);
}
}  // namespace

Printed show(const ViewOptions& options) {
  const Signals signals;
  const auto token = signals.token();
  const auto connection = connect_to(options.cluster);
  if (!connection) return failure("no access to a cluster: " + connection.error().message);
  if (options.watch) return watch_view(*connection, options, token);
  const auto sight = read_status(*connection->client, options.cluster.controller_ns, token);
  if (sight) return printed(*sight, options);
  if (sight.error().kind == ErrorKind::Forbidden && !options.ns.empty() && is_for_people(options.format))
    return show_own(*connection, options, sight.error(), token);
  return without_status(sight.error());
}

Printed ask(const AskOptions& options) {
  const Signals signals;
  const auto token = signals.token();
  const auto connection = connect_to(options.cluster);
  if (!connection) return failure("no access to a cluster: " + connection.error().message);
  auto asked = options.asked;
  const bool has_ns = asked.kind == SubjectKind::Pod || asked.kind == SubjectKind::Job;
  if (!has_ns) asked.ns.clear();
  if (has_ns && asked.ns.empty()) asked.ns = connection->access.ns.empty() ? "default" : connection->access.ns;
  if (options.watch) return watch_subject(*connection, options, asked, token);
  const auto sight = read_status(*connection->client, options.cluster.controller_ns, token);
  const bool is_pod = asked.kind == SubjectKind::Pod;
  if (!sight && is_pod && sight.error().kind == ErrorKind::Forbidden) return ask_pod(*connection, asked, token);
  if (!sight) return without_status(sight.error());
  const auto explanation = explain_subject(*sight, asked);
  if (!explanation) return failure(explanation.error());
  if (!explanation->is_empty()) return answer_of(*sight, *explanation, options.format);
  if (is_pod && is_for_people(options.format)) return ask_pod(*connection, asked, token);
  return failure(nothing_known(asked));
}

}  // namespace dhc::cli
